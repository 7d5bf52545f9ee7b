// SPDX-License-Identifier: MIT
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "transport/sdma/failure.hpp"

#include <fmt/format.h>

#if XIO_ENABLE_MODEL
#include "model/sdma/fault.hpp"
#endif

namespace xio::sdma {

namespace {

// Hardware stops without a word: codes are the software engine's.
const char* text_of(std::uint32_t vendor) {
#if XIO_ENABLE_MODEL
  return model::sdma::text_of(static_cast<model::sdma::fault>(vendor));
#else
  (void)vendor;
  return "the engine stopped";
#endif
}

}  // namespace

std::string failure_text(std::uint32_t vendor) {
  return fmt::format("{} (code {:#x}); look at the addresses and lengths of the op and of those right before it",
                     text_of(vendor), vendor);
}

}  // namespace xio::sdma
