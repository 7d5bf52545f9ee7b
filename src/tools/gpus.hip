// SPDX-License-Identifier: MIT
#include "tools/gpus.hpp"

#include <cstdio>

#include "xio/hip.h"

namespace xio::tools {
namespace {

const char* error_text(hipError_t e) { return e == hipSuccess ? nullptr : hipGetErrorString(e); }

std::string arch_of(const hipDeviceProp_t& p) {
#if defined(XIO_PLATFORM_CUDA)
  return "sm_" + std::to_string(p.major) + std::to_string(p.minor);
#else
  return p.gcnArchName;
#endif
}

std::string bus_id_of([[maybe_unused]] const hipDeviceProp_t& p) {
#if defined(XIO_PLATFORM_HOST)
  return "";
#else
  char text[16];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", static_cast<unsigned>(p.pciDomainID) & 0xffff,
                static_cast<unsigned>(p.pciBusID) & 0xff, static_cast<unsigned>(p.pciDeviceID) & 0xff);
  return text;
#endif
}

}  // namespace

const char* platform() {
#if defined(XIO_PLATFORM_HIP)
  return "hip";
#elif defined(XIO_PLATFORM_CUDA)
  return "cuda";
#else
  return "host";
#endif
}

std::uint64_t ticks_per_ms() {
#if !defined(XIO_PLATFORM_HIP)
  return 1000000;  // nanoseconds
#else
#if HIP_VERSION_MAJOR > 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 3)
  int device = 0, khz = 0;
  if (hipGetDevice(&device) == hipSuccess &&
      hipDeviceGetAttribute(&khz, hipDeviceAttributeWallClockRate, device) == hipSuccess && khz > 0)
    return static_cast<std::uint64_t>(khz);
  (void)hipGetLastError();
#endif
  return 100000;
#endif
}

const char* gpu_targets() { return XIO_GPU_TARGETS; }

const char* list_gpus(std::vector<gpu_facts>& out) {
  int count = 0;
  if (const char* wrong = error_text(hipGetDeviceCount(&count))) return wrong;
  for (int i = 0; i < count; ++i) {
    hipDeviceProp_t p{};
    if (const char* wrong = error_text(hipGetDeviceProperties(&p, i))) return wrong;
    gpu_facts f;
    f.name = p.name;
    f.arch = arch_of(p);
    f.bus_id = bus_id_of(p);
    f.memory_bytes = p.totalGlobalMem;
    f.compute_units = p.multiProcessorCount;
    f.wave_lanes = p.warpSize;
    f.threads_per_block = p.maxThreadsPerBlock;
    f.shared_bytes = p.sharedMemPerBlock;
    out.push_back(f);
  }
  return nullptr;
}

}  // namespace xio::tools
