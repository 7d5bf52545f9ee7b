// SPDX-License-Identifier: MIT
#include "base/error.hpp"
#include "transport/nvme/nvme.hpp"

namespace xio::nvme {

std::unique_ptr<controller> open_vfio(const opening& what) {
  fail(XIO_ERR_UNSUPPORTED, "cannot open {}: this version drives no NVMe hardware; use file:PATH", what.name);
}

}  // namespace xio::nvme
