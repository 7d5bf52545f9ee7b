// SPDX-License-Identifier: MIT
#include "tools/xio-verify/versions.hpp"

#include <xio/hip.h>

namespace xio::verify {

std::vector<std::pair<const char*, std::string>> runtime_versions() {
  std::vector<std::pair<const char*, std::string>> all;
#if defined(XIO_PLATFORM_HIP)
  int version = 0;
  if (hipRuntimeGetVersion(&version) == hipSuccess) all.emplace_back("hip_runtime", std::to_string(version));
  if (hipDriverGetVersion(&version) == hipSuccess) all.emplace_back("hip_driver", std::to_string(version));
  all.emplace_back("hip_built_with", std::to_string(HIP_VERSION));
  all.emplace_back("device_compiler", __VERSION__);
#elif defined(XIO_PLATFORM_CUDA)
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) all.emplace_back("cuda_runtime", std::to_string(version));
  if (cudaDriverGetVersion(&version) == cudaSuccess) all.emplace_back("cuda_driver", std::to_string(version));
  all.emplace_back("device_compiler",
                   "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__));
#else
  all.emplace_back("device_compiler", __VERSION__);
#endif
  return all;
}

}  // namespace xio::verify
