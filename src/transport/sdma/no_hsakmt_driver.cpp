// SPDX-License-Identifier: MIT
// kfd_driver.hpp of a library for another platform, which then needs nothing of AMD's, and of a build without libhsakmt.
#include "base/error.hpp"
#include "transport/sdma/kfd_driver.hpp"

namespace xio::sdma {

std::unique_ptr<kfd_driver> open_kfd() {
  fail(
      XIO_ERR_UNSUPPORTED,
      "queues of the GPU's copy engines need libhsakmt, which this build was made without; take it from ROCm up to 6.3 "
      "(below /opt/rocm, or set ROCM_PATH) or from Debian 12 or 13 (libhsakmt-dev), and configure again");
}

}  // namespace xio::sdma
