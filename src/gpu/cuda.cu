// SPDX-License-Identifier: MIT
// gpu.hpp for CUDA.
#include <cuda_runtime.h>

// fmt 9 thinks that nvcc knows no constexpr, and then asks for it all the same.
#define FMT_USE_CONSTEXPR 1
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "gpu/gpu.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::gpu::hw {

namespace {

using ipc_handle = cudaIpcMemHandle_t;

// CUDA has no call that waits for all streams and lets captures be (CUDA Programming Guide, prohibited and unhandled
// operations).
cudaError_t wait_for_device() { return cudaDeviceSynchronize(); }

// Loading a kernel on first use waits for kernels that run, which may wait for that very use. Set before anybody,
// the program included, calls CUDA; a program that wants it otherwise sets the variable itself.
__attribute__((constructor)) void load_modules_at_once() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

cudaError_t make_stream(cudaStream_t* out) {
  int least = 0, greatest = 0;
  if (const cudaError_t e = cudaDeviceGetStreamPriorityRange(&least, &greatest); e != cudaSuccess) return e;
  return cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, greatest);
}
cudaError_t wait_for_stream(cudaStream_t stream, cudaEvent_t) { return cudaStreamSynchronize(stream); }
// Blocks of pinned memory, and those that nobody has any more: the next that asks for as much gets them, for freeing
// waits for all kernels, as that of the GPU's memory does (free_device), and has no call that waits for none.
struct pinned_blocks {
  std::mutex lock;
  std::map<void*, std::size_t> bytes;
  std::multimap<std::size_t, void*> kept;
};
pinned_blocks& pinned_memory() {
  static auto* const all = new pinned_blocks;
  return *all;
}
cudaError_t alloc_pinned(void** out, std::size_t bytes) {
  pinned_blocks& all = pinned_memory();
  const std::lock_guard hold(all.lock);
  if (const auto kept = all.kept.extract(bytes)) {
    *out = kept.mapped();
    return cudaSuccess;
  }
  const cudaError_t e = cudaHostAlloc(out, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
  if (e == cudaSuccess) all.bytes[*out] = bytes;
  return e;
}
cudaError_t free_pinned(void* p) {
  pinned_blocks& all = pinned_memory();
  const std::lock_guard hold(all.lock);
  all.kept.emplace(all.bytes[p], p);
  return cudaSuccess;
}
// At system scope kernels see what others write to either kind.
cudaError_t alloc_polled(void** out, std::size_t bytes, bool on_host, purpose, int) {
  return on_host ? alloc_pinned(out, bytes) : cudaMalloc(out, bytes);
}
cudaError_t alloc_tables(void** out, std::size_t bytes, int) { return cudaMalloc(out, bytes); }
cudaError_t alloc_heap(void** out, std::size_t bytes, caching) { return cudaMalloc(out, bytes); }
// cudaFree waits for all kernels, those too that start meanwhile, and keeps every other call of the process out so
// long, also one for which such a kernel waits. This waits for none.
cudaError_t free_device(void* p) {
  static cudaStream_t beside_kernels = nullptr;
  static const cudaError_t made = make_stream(&beside_kernels);
  if (made == cudaSuccess && cudaFreeAsync(p, beside_kernels) == cudaSuccess)
    return cudaStreamSynchronize(beside_kernels);
  (void)cudaGetLastError();
  return cudaFree(p);
}
memory_plan plan(purpose, bool, int) {
  return {caching::fine, caching::fine, true, "kernels see at system scope what others write"};
}
std::string uncached_heap_obstacle() { return "on NVIDIA GPUs all of their memory goes through L2"; }

// IPC handles are never refused for such memory.
struct imported {};
cudaError_t import_dmabuf(imported*, void**, int, std::size_t) { return cudaErrorNotSupported; }
void release_dmabuf(const imported&) {}
// For a heap that host threads read and write while kernels run.
cudaError_t alloc_managed(void** out, std::size_t bytes) { return cudaMallocManaged(out, bytes); }
cudaError_t memory_left(std::size_t* free, std::size_t* total) { return cudaMemGetInfo(free, total); }

bool attribute_holds(cudaDeviceAttr what, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, what, device) == cudaSuccess) return value != 0;
  (void)cudaGetLastError();
  return false;
}
bool shares_managed_memory(int device) { return attribute_holds(cudaDevAttrConcurrentManagedAccess, device); }

// Whether what a kernel changes in host memory by an atomic is one for the host and other GPUs: by a link that has them
// all, or, where CUDA 13 says so op by op, as PCIe carries them. Among kernels of one GPU it always is.
bool atomics_hold_in_host_memory(int device, bool one_gpu) {
  if (one_gpu || attribute_holds(cudaDevAttrHostNativeAtomicSupported, device)) return true;
#if CUDART_VERSION >= 13000
  const cudaAtomicOperation needed[] = {cudaAtomicOperationIntegerAdd, cudaAtomicOperationAnd,
                                        cudaAtomicOperationOr,         cudaAtomicOperationXOR,
                                        cudaAtomicOperationExchange,   cudaAtomicOperationCAS};
  constexpr unsigned k_widths = cudaAtomicCapabilityScalar32 | cudaAtomicCapabilityScalar64;
  unsigned has[6] = {};
  if (cudaDeviceGetHostAtomicCapabilities(has, needed, 6, device) == cudaSuccess) {
    bool all = true;
    for (const unsigned capabilities : has) all = all && (capabilities & k_widths) == k_widths;
    return all;
  }
  (void)cudaGetLastError();
#endif
  return false;
}

cudaError_t ipc_export(ipc_handle* out, void* p) { return cudaIpcGetMemHandle(out, p); }
cudaError_t ipc_import(void** out, const ipc_handle& h) {
  return cudaIpcOpenMemHandle(out, h, cudaIpcMemLazyEnablePeerAccess);
}
cudaError_t ipc_release(void* p) { return cudaIpcCloseMemHandle(p); }

constexpr auto k_files_by = option::storage_files_by::cufile;
bool in_device_memory(const void* p) {
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, p) == cudaSuccess) return a.type == cudaMemoryTypeDevice;
  (void)cudaGetLastError();
  return false;
}

// Memory that the runtime knows, and on some machines all of the process.
bool kernels_reach(const void* p, int device) {
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, p) != cudaSuccess)
    (void)cudaGetLastError();
  else if (a.type != cudaMemoryTypeUnregistered)
    return true;
  return attribute_holds(cudaDevAttrPageableMemoryAccess, device);
}

std::string get_arch(int device) {
  int major = 0, minor = 0;
  (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return fmt::format("sm_{}{}", major, minor);
}
cudaError_t get_bus_id(char* out, int bytes, int device) { return cudaDeviceGetPCIBusId(out, bytes, device); }
std::string identity(int, const std::string& name) { return name; }
bool means_out_of_reach(cudaError_t e) {
  return e == cudaErrorPeerAccessUnsupported || e == cudaErrorTooManyPeers || e == cudaErrorNotSupported;
}
cudaError_t device_address(void** out, void* page) { return cudaHostGetDevicePointer(out, page, 0); }
void unmap_io(void* page) {
  if (cudaHostUnregister(page) != cudaSuccess) (void)cudaGetLastError();
}
bool map_io(void* page, std::size_t bytes, const register_export&, void** seen, std::string& why) {
  cudaError_t e = cudaHostRegister(page, bytes, cudaHostRegisterMapped | cudaHostRegisterIoMemory);
  if (e == cudaSuccess) {
    e = device_address(seen, page);
    if (e == cudaSuccess) return true;
    unmap_io(page);
  }
  (void)cudaGetLastError();
  why = fmt::format("cudaHostRegister: {}", cudaGetErrorString(e));
  return false;
}

hdp_hardware hdp(int) {
  hdp_hardware none;
  none.kernels_flush = dev::k_has_hdp;
  return none;
}
void check_device(int) {}

std::string why_no_device(cudaError_t e) {
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  if (e == cudaErrorInsufficientDriver || (driver != 0 && driver < runtime))
    return fmt::format(
        "the NVIDIA driver supports CUDA {}.{} and this build needs {}.{}; update the driver or build with an older "
        "toolkit",
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  return fmt::format(
      "no NVIDIA GPU can be used ({}); check nvidia-smi and CUDA_VISIBLE_DEVICES, or build with --with-gpu=host",
      e == cudaSuccess ? "none was found" : cudaGetErrorString(e));
}

}  // namespace

}  // namespace xio::gpu::hw

#include "gpu/cuda_memory.hpp"

// Over what stands above.
#include "gpu/accelerator_heap.hpp"
#include "gpu/accelerator_memory.hpp"
#include "gpu/accelerator_registers.hpp"

namespace xio::gpu {

const char* name() { return "cuda"; }
memory_report report_memory(purpose what, place where) {
  return {where == place::shared ? "pinned host memory" : "device memory", hw::plan(what, true, g_device).why};
}
std::uint64_t ticks_per_ms() { return 1000000; }  // %globaltimer counts nanoseconds (PTX ISA, special registers)

}  // namespace xio::gpu
