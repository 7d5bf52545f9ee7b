// SPDX-License-Identifier: MIT
#include "transport/sdma/vendor_text.hpp"

#include <fmt/core.h>

#include "transport/software.hpp"

namespace xio::sdma {
namespace {

// Hardware stops without a word: codes are the software engine's.
const char* text_of(std::uint32_t vendor) {
  const software::devices* devices = software::built_in();
  return devices != nullptr ? devices->copy_engine_failure(vendor) : "the engine stopped";
}

}  // namespace

std::string vendor_text(std::uint32_t vendor) {
  return fmt::format("{} (code {:#x}); look at the addresses and lengths of the op and of those right before it",
                     text_of(vendor), vendor);
}

}  // namespace xio::sdma
