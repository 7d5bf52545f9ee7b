// SPDX-License-Identifier: MIT
#include "base/error.hpp"
#include "transport/nvme/file_name.hpp"
#include "transport/nvme/nvme.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif
#if XIO_ENABLE_MODEL
#include "transport/nvme/file_controller.hpp"
#endif

namespace xio::nvme {

std::unique_ptr<controller> open_file(const opening& what) {
  if (what.opts.backend == "hw")
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: a file has no hardware behind it; set XIO_BACKEND=auto or model",
         what.name);
#if XIO_ENABLE_MODEL
  const file_name name = parse_file_name(what.rest, what.name);
  return std::make_unique<file_controller>(name.path, with_name(name, what.attr), what.opts, what.machine,
                                           what.payload);
#else
  fail(XIO_ERR_UNSUPPORTED, "cannot open {}: XIO was built with --disable-model; build it without", what.name);
#endif
}

}  // namespace xio::nvme
