// SPDX-License-Identifier: MIT
#include "fake_hip.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

namespace xio::test::fake_hip {

fake g;
thread_local hipStreamCaptureMode t_mode = hipStreamCaptureModeGlobal;

namespace {

// As clr has it (hip_internal.hpp): what is refused beside a capture ends the capture, too.
bool disturbs_capture(bool even_relaxed) {
  if (!g.capturing || (!even_relaxed && t_mode == hipStreamCaptureModeRelaxed)) return false;
  return g.disturbed = true;
}

hipError_t take(void** out, std::size_t bytes, bool on_host, unsigned flags) {
  if (disturbs_capture(false)) return hipErrorStreamCaptureUnsupported;
  if (!on_host && g.refuses.count(flags) != 0) return hipErrorInvalidValue;
  const int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
  const std::size_t whole = (bytes + 4095) / 4096 * 4096;
  if (ftruncate(fd, static_cast<off_t>(whole)) != 0) return hipErrorOutOfMemory;
  *out = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const std::lock_guard hold(g.lock);
  g.live[*out] = {whole, on_host, flags, fd, false};
  if (bytes != sizeof(std::uint64_t)) g.taken.push_back(g.live[*out]);
  return hipSuccess;
}

struct found {
  const char* base;
  allocation is;
};

std::optional<found> around(const void* p) {
  const std::lock_guard hold(g.lock);
  for (const auto& [base, a] : g.live) {
    const auto offset = static_cast<const char*>(p) - static_cast<const char*>(base);
    if (offset >= 0 && static_cast<std::size_t>(offset) < a.bytes) return found{static_cast<const char*>(base), a};
  }
  return {};
}

}  // namespace

hipError_t give_back(void* p) {
  if (disturbs_capture(false)) return hipErrorStreamCaptureUnsupported;
  const std::lock_guard hold(g.lock);
  const auto at = g.live.find(p);
  if (at == g.live.end()) return hipErrorInvalidValue;
  munmap(p, at->second.bytes);
  close(at->second.fd);
  g.live.erase(at);
  return hipSuccess;
}

allocation allocation_at(void* p) {
  const std::lock_guard hold(g.lock);
  return g.live.at(p);
}

}  // namespace xio::test::fake_hip

using namespace xio::test::fake_hip;

#pragma GCC visibility push(default)

extern "C" {

hipError_t hipRuntimeGetVersion(int* out) { return *out = g.version, hipSuccess; }
hipError_t hipGetDeviceCount(int* out) { return *out = 1, hipSuccess; }
hipError_t hipSetDevice(int) { return hipSuccess; }
hipError_t hipGetDevice(int* out) { return *out = 0, hipSuccess; }
hipError_t hipGetLastError(void) { return hipSuccess; }
const char* hipGetErrorString(hipError_t) { return "refused on purpose"; }
hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int) {
  *out = {};
  std::strncpy(out->gcnArchName, g.arch.c_str(), sizeof out->gcnArchName - 1);
  return hipSuccess;
}
hipError_t hipDeviceGetAttribute(int* out, hipDeviceAttribute_t, int) { return *out = 0, hipSuccess; }
hipError_t hipDeviceGetPCIBusId(char* out, int bytes, int) {
  return std::snprintf(out, static_cast<std::size_t>(bytes), "0000:c1:00.0"), hipSuccess;
}
hipError_t hipDeviceGetByPCIBusId(int* out, const char*) { return *out = 0, hipSuccess; }
hipError_t hipDeviceGetStreamPriorityRange(int* a, int* b) { return *a = *b = 0, hipSuccess; }
hipError_t hipStreamCreateWithPriority(hipStream_t* out, unsigned, int) { return *out = nullptr, hipSuccess; }
hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
hipError_t hipStreamSynchronize(hipStream_t) {
  return g.capturing && g.streams_refuse ? hipErrorStreamCaptureUnsupported : hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t, hipStream_t) { return hipSuccess; }
hipError_t hipEventSynchronize(hipEvent_t) {
  return g.capturing && g.streams_refuse ? hipErrorStreamCaptureUnsupported : hipSuccess;
}
hipError_t hipEventQuery(hipEvent_t) { return ++g.looks % 2 == 1 ? hipErrorNotReady : hipSuccess; }
hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned) { return *out = nullptr, hipSuccess; }
hipError_t hipEventDestroy(hipEvent_t) { return hipSuccess; }
hipError_t hipDeviceSynchronize(void) { return disturbs_capture(true) ? hipErrorStreamCaptureUnsupported : hipSuccess; }
hipError_t hipHostRegister(void*, std::size_t, unsigned) {
  g.pages.emplace_back("register");
  if (disturbs_capture(false)) return hipErrorStreamCaptureUnsupported;
  return g.register_refuses ? hipErrorInvalidValue : hipSuccess;
}
hipError_t hipHostUnregister(void*) {
  g.pages.emplace_back("unregister");
  return disturbs_capture(false) ? hipErrorStreamCaptureUnsupported : hipSuccess;
}
hipError_t hipHostGetDevicePointer(void** out, void* p, unsigned) {
  return *out = static_cast<char*>(p) + g.host_memory_moves_by, hipSuccess;
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return std::swap(*mode, t_mode), hipSuccess;
}
hipError_t hipMalloc(void** out, std::size_t bytes) { return take(out, bytes, false, 0); }
hipError_t hipExtMallocWithFlags(void** out, std::size_t bytes, unsigned flags) {
  return take(out, bytes, false, flags);
}
hipError_t hipHostMalloc(void** out, std::size_t bytes, unsigned flags) { return take(out, bytes, true, flags); }
hipError_t hipFree(void* p) { return give_back(p); }
hipError_t hipHostFree(void* p) { return give_back(p); }
hipError_t hipMemGetInfo(std::size_t* free, std::size_t* total) { return *free = *total = 1 << 30, hipSuccess; }
hipError_t hipMemsetAsync(void* p, int value, std::size_t bytes, hipStream_t) {
  return ++g.kernels, std::memset(p, value, bytes), hipSuccess;
}
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind, hipStream_t) {
  return std::memcpy(to, from, bytes), hipSuccess;
}
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* out, const void* p) {
  const auto a = around(p);
  if (!a) return hipErrorInvalidValue;
  *out = {};
  const auto type = a->is.on_host ? hipMemoryTypeHost : hipMemoryTypeDevice;
#if HIP_VERSION_MAJOR >= 6
  out->type = type;
#else
  out->memoryType = type;
#endif
  return hipSuccess;
}
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* out, void* p) {
  ++g.exports;
  if (g.ipc_refuses_all) return hipErrorInvalidValue;
  if (g.ipc_refuses_uncached && allocation_at(p).flags == 0x3) return hipErrorInvalidValue;
  std::memset(out, 0, sizeof *out);
  const allocation a = allocation_at(p);
  std::memcpy(out, &a, sizeof a);
  return hipSuccess;
}
hipError_t hipIpcOpenMemHandle(void** out, hipIpcMemHandle_t h, unsigned) {
  if (g.import_fails_with != hipSuccess) return g.import_fails_with;
  allocation a{};
  std::memcpy(&a, &h, sizeof a);
  *out = mmap(nullptr, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
  return *out == MAP_FAILED ? hipErrorInvalidValue : hipSuccess;
}
hipError_t hipIpcCloseMemHandle(void*) { return hipSuccess; }
// The only kernel that is started here adds or reads a word: see change_word in accelerator.hpp.
hipError_t __hipPushCallConfiguration(dim3, dim3, std::size_t, hipStream_t) { return hipSuccess; }
hipError_t __hipPopCallConfiguration(dim3*, dim3*, std::size_t*, hipStream_t*) { return hipSuccess; }
hipError_t hipLaunchKernel(const void*, dim3, dim3, void** args, std::size_t, hipStream_t) {
  auto* word = *static_cast<std::uint64_t**>(args[0]);
  **static_cast<std::uint64_t**>(args[5]) = *word;
  *word += *static_cast<std::uint64_t*>(args[3]);
  return hipSuccess;
}

// libhsa-runtime64's, which hip_memory.hpp looks up. Agent 1 is the host with pools 10 (coarse) and 11 (fine), 2 the
// GPU.
struct fake_handle {
  std::uint64_t value;
};
int hsa_iterate_agents(int (*each)(fake_handle, void*), void* data) {
  for (const std::uint64_t agent : {2, 1})
    if (const int stop = each({agent}, data); stop != 0) return stop;
  return 0;
}
int hsa_agent_get_info(fake_handle agent, int what, void* out) {
  if (what != 17) return 1;  // HSA_AGENT_INFO_DEVICE
  *static_cast<std::uint32_t*>(out) = agent.value == 1 ? 0 : 1;
  return 0;
}
int hsa_amd_agent_iterate_memory_pools(fake_handle agent, int (*each)(fake_handle, void*), void* data) {
  for (const std::uint64_t pool : {10, 11})
    if (const int stop = each({agent.value == 1 ? pool : 20}, data); stop != 0) return stop;
  return 0;
}
int hsa_amd_memory_pool_get_info(fake_handle pool, int what, void* out) {
  // HSA_AMD_MEMORY_POOL_INFO_SEGMENT: global; _GLOBAL_FLAGS: 2 is fine-grained, 4 coarse.
  *static_cast<std::uint32_t*>(out) = what == 0 ? 0 : pool.value == 11 ? 2 : 4;
  return 0;
}
int hsa_amd_pointer_info(const void*, void* info, void*, void*, void*) {
  const std::uint64_t gpu = 2;
  std::memcpy(static_cast<char*>(info) + 40, &gpu, sizeof gpu);  // agentOwner
  return 0;
}
int hsa_amd_memory_lock_to_pool(void* page, std::size_t, fake_handle* agents, int count, fake_handle pool,
                                std::uint32_t flags, void** seen) {
  g.pages.push_back("lock for " + std::to_string(agents->value) + " in " + std::to_string(pool.value));
  if (count != 1 || flags != 0 || g.lock_refuses) return 0x1008;
  *seen = static_cast<char*>(page) + 0x1000000;
  return 0;
}
int hsa_amd_memory_unlock(void*) { return g.pages.emplace_back("unlock"), 0; }
int hsa_amd_portable_export_dmabuf_v2(const void* p, std::size_t, int* fd, std::uint64_t* offset, std::uint64_t) {
  const auto a = around(p);
  if (!g.dmabufs || !a) return 1;
  if (a->is.mapped) return 0x1003;  // it looks among allocations alone (ROCR runtime.cpp, DmaBufExport)
  *fd = dup(a->is.fd);
  *offset = static_cast<std::uint64_t>(static_cast<const char*>(p) - a->base);
  return 0;
}
// Of a mapping's first address alone (ROCR runtime.cpp, VMemoryRetainAllocHandle).
int hsa_amd_vmem_retain_alloc_handle(std::uint64_t* out, void* va) {
  const auto at = g.live.find(va);
  if (at == g.live.end() || !at->second.mapped) return 0x1003;
  ++g.retained;
  *out = static_cast<std::uint64_t>(at->second.fd) + 1000;
  return 0;
}
int hsa_amd_vmem_export_shareable_handle(int* fd, std::uint64_t handle, std::uint64_t) {
  if (!g.dmabufs) return 0x1008;
  *fd = dup(static_cast<int>(handle - 1000));
  return 0;
}
int hsa_amd_vmem_handle_release(std::uint64_t) { return --g.retained, 0; }
hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes, hipDeviceptr_t p) {
  const auto a = around(p);
  if (!a) return hipErrorNotFound;
  return *base = const_cast<char*>(a->base), *bytes = a->is.bytes, hipSuccess;
}
hipError_t hipImportExternalMemory(hipExternalMemory_t* out, const hipExternalMemoryHandleDesc* wish) {
  void* p = mmap(nullptr, wish->size, PROT_READ | PROT_WRITE, MAP_SHARED, wish->handle.fd, 0);
  if (p == MAP_FAILED) return hipErrorInvalidValue;
  *out = reinterpret_cast<hipExternalMemory_t>(p);
  return hipSuccess;
}
hipError_t hipExternalMemoryGetMappedBuffer(void** out, hipExternalMemory_t memory,
                                            const hipExternalMemoryBufferDesc*) {
  return *out = reinterpret_cast<void*>(memory), hipSuccess;
}
hipError_t hipDestroyExternalMemory(hipExternalMemory_t) { return hipSuccess; }

}  // extern "C"

#pragma GCC visibility pop
