// SPDX-License-Identifier: MIT
// Which backend plays the copy engine.
#include "config.h"

#include "base/error.hpp"
#include "base/log.hpp"
#include "transport/sdma/model.hpp"
#include "transport/sdma/sdma.hpp"

namespace xio::sdma {

std::unique_ptr<engine> open(const options& o, model::machine& machine, const payload_agent& payload) {
  if (o.backend == "hw") {
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_BACKEND=hw: SDMA queues of the GPU itself are not in this build; set XIO_BACKEND=auto or model, or "
         "XIO_ROUTE=direct");
  }
#if defined(XIO_ENABLE_MODEL)
  auto made = open_model(o, machine, payload);
  log::info("SDMA: {}, since queues of the GPU itself are not in this build", made->backend());
  return made;
#else
  static_cast<void>(machine);
  static_cast<void>(payload);
  fail(XIO_ERR_UNSUPPORTED,
       "SDMA: this build has neither GPU queues nor the software engine; configure without --disable-model, or set "
       "XIO_ROUTE=direct");
#endif
}

}  // namespace xio::sdma
