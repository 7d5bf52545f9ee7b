// SPDX-License-Identifier: MIT
// gpu.hpp for HIP.
#include <fmt/format.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

#include <cstdint>
#include <string>

namespace xio::gpu::hw {

namespace {

using ipc_handle = hipIpcMemHandle_t;

hipError_t make_stream(hipStream_t* out) {
  int least = 0, greatest = 0;
  if (const hipError_t e = hipDeviceGetStreamPriorityRange(&least, &greatest); e != hipSuccess) return e;
  return hipStreamCreateWithPriority(out, hipStreamNonBlocking, greatest);
}
hipError_t alloc_device(void** out, std::size_t bytes) { return hipMalloc(out, bytes); }
// Fine-grained: peers, engines and NICs see stores while kernels run.
hipError_t alloc_heap(void** out, std::size_t bytes) {
  return hipExtMallocWithFlags(out, bytes, hipDeviceMallocFinegrained);
}
hipError_t alloc_shared(void** out, std::size_t bytes) {
  return hipHostMalloc(out, bytes, hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent);
}
hipError_t ipc_export(ipc_handle* out, void* p) { return hipIpcGetMemHandle(out, p); }
hipError_t ipc_import(void** out, const ipc_handle& h) {
  return hipIpcOpenMemHandle(out, h, hipIpcMemLazyEnablePeerAccess);
}
hipError_t ipc_release(void* p) { return hipIpcCloseMemHandle(p); }

bool in_device_memory(const void* p) {
  hipPointerAttribute_t a{};
  if (hipPointerGetAttributes(&a, p) != hipSuccess) {
    (void)hipGetLastError();
    return false;
  }
#if HIP_VERSION_MAJOR >= 6
  return a.type == hipMemoryTypeDevice;
#else
  return a.memoryType == hipMemoryTypeDevice;
#endif
}

std::string get_arch(int device) {
  hipDeviceProp_t p{};
  if (hipGetDeviceProperties(&p, device) == hipSuccess) return p.gcnArchName;
  (void)hipGetLastError();
  return "";
}
hipError_t get_bus_id(char* out, int bytes, int device) { return hipDeviceGetPCIBusId(out, bytes, device); }
hipError_t register_io(void* page, std::size_t bytes) {
  return hipHostRegister(page, bytes, hipHostRegisterMapped | hipHostRegisterIoMemory);
}
hipError_t unregister_io(void* page) { return hipHostUnregister(page); }
hipError_t device_address(void** out, void* page) { return hipHostGetDevicePointer(out, page, 0); }

std::string why_no_device(hipError_t e) {
  return fmt::format(
      "no AMD GPU can be used ({}); check that /dev/kfd is there and open to you (group render), HIP_VISIBLE_DEVICES, "
      "or build with --with-gpu=host",
      e == hipSuccess ? "none was found" : hipGetErrorString(e));
}

}  // namespace

}  // namespace xio::gpu::hw

#include "gpu/hip_memory.hpp"

// Over what stands above.
#include "gpu/accelerator_memory.hpp"

namespace xio::gpu {

const char* name() { return "hip"; }

// The counter behind s_memrealtime runs at 100 MHz on every GPU that HIP 5.2 knows; newer ones are asked.
std::uint64_t ticks_per_ms() {
#if HIP_VERSION_MAJOR > 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 3)
  int khz = 0;
  if (hipDeviceGetAttribute(&khz, hipDeviceAttributeWallClockRate, g_device) == hipSuccess && khz > 0)
    return static_cast<std::uint64_t>(khz);
  (void)hipGetLastError();
#endif
  return 100000;
}

}  // namespace xio::gpu
