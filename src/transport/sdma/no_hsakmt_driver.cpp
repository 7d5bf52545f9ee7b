// SPDX-License-Identifier: MIT
// open_hsakmt() of a library for another platform, which then needs nothing of AMD's, and of a build without libhsakmt.
#include "base/error.hpp"
#include "transport/sdma/kfd_driver.hpp"

namespace xio::sdma {

std::unique_ptr<kfd_driver> open_hsakmt() {
  fail(XIO_ERR_UNSUPPORTED,
       "this build was made without libhsakmt; take it from ROCm (the archive and headers of hsakmt-roct-dev, or of "
       "hsa-rocr-dev from 6.3 on, below /opt/rocm or ROCM_PATH) or from Debian 12 or 13 (libhsakmt-dev), and configure "
       "again");
}

}  // namespace xio::sdma
