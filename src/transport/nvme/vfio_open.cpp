// SPDX-License-Identifier: MIT
#include "base/error.hpp"
#include "transport/nvme/vfio_controller.hpp"

namespace xio::nvme {

std::unique_ptr<controller> open_vfio(const opening& what) {
  if (what.opts.backend == option::backend::model)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: it is hardware; set XIO_BACKEND=auto or hw", what.name);
  return std::make_unique<vfio_controller>(what.name, what.attr, what.opts, what.machine);
}

}  // namespace xio::nvme
