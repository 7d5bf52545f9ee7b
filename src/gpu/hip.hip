// SPDX-License-Identifier: MIT
// gpu.hpp for HIP.
#include <fmt/format.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/options.hpp"
#include "gpu/fine_grain.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "gpu/memory_choice.hpp"
#include "topology/kfd_node.hpp"

namespace xio::gpu::hw {

namespace {

// Warns of memory that is not of the kind wanted, once for each purpose and place. error: of the runtime, or null where
// it was not asked.
void warn_once(purpose what, bool on_host, const memory_plan& p, const char* error) {
  static std::atomic<unsigned> said{0};
  const unsigned bit = 1u << (2 * static_cast<unsigned>(what) + (on_host ? 1 : 0));
  if ((said.fetch_or(bit) & bit) != 0) return;
  log::warn("{} are in fine-grained {} memory{}{}{}; {}", name_of(what), on_host ? "host" : "device",
            error != nullptr ? ": the runtime refuses uncached (" : "", error != nullptr ? error : "",
            error != nullptr ? ")" : "", p.why);
}

using ipc_handle = hipIpcMemHandle_t;

// Freeing memory waits for every stream of its device, and is let through beside a capture, which hipDeviceSynchronize
// would end (clr hipamd, hip_memory.cpp and hip_device_runtime.cpp).
hipError_t wait_for_device() {
  void* word = nullptr;
  if (hipMalloc(&word, sizeof(std::uint64_t)) == hipSuccess) return hipFree(word);
  (void)hipGetLastError();
  return hipDeviceSynchronize();
}

hipError_t make_stream(hipStream_t* out) {
  int least = 0, greatest = 0;
  if (const hipError_t e = hipDeviceGetStreamPriorityRange(&least, &greatest); e != hipSuccess) return e;
  return hipStreamCreateWithPriority(out, hipStreamNonBlocking, greatest);
}
// While any thread captures in global mode HIP 5.7 refuses to wait for any stream or event, also in a thread of relaxed
// mode (clr hipamd/src/hip_stream.cpp, StreamCaptureOngoing). It says whether an event has come.
// `behind` is an event of the stream's device.
hipError_t wait_for_stream(hipStream_t stream, hipEvent_t behind) {
  const hipError_t refused = hipStreamSynchronize(stream);
  if (refused != hipErrorStreamCaptureUnsupported) return refused;
  (void)hipGetLastError();
  hipError_t e = hipEventRecord(behind, stream);
  while (e == hipSuccess && (e = hipEventQuery(behind)) == hipErrorNotReady) {
    std::this_thread::yield();
    e = hipSuccess;
  }
  return e;
}

static_assert(device_flags(caching::fine) == hipDeviceMallocFinegrained);
#ifdef hipDeviceMallocUncached
static_assert(device_flags(caching::uncached) == hipDeviceMallocUncached);
#endif
static_assert(host_flags(caching::fine) == (hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent));
#ifdef hipHostMallocUncached
static_assert(host_flags(caching::uncached) == (hipHostMallocPortable | hipHostMallocMapped | hipHostMallocUncached));
#endif

// Of the library that runs, not of the headers: one build runs with several.
hip_version runtime_version() {
  hip_version v;
  if (hipRuntimeGetVersion(&v.number) != hipSuccess) (void)hipGetLastError();
  return v;
}

std::string get_arch(int device);
memory_plan plan(purpose what, bool on_host, int device) {
  return plan_memory(get_arch(device), what == purpose::own ? purpose::flags : what, on_host, runtime_version());
}

// Memory that others write while kernels look at it.
hipError_t alloc_polled(void** out, std::size_t bytes, bool on_host, purpose what, int device) {
  if (what == purpose::own) what = purpose::flags;
  const memory_plan p = plan(what, on_host, device);
  if (p.use != p.wanted && !p.harmless) warn_once(what, on_host, p, nullptr);
  return take_planned(
      p, on_host,
      [&](unsigned flags) {
        return on_host ? hipHostMalloc(out, bytes, flags) : hipExtMallocWithFlags(out, bytes, flags);
      },
      [](hipError_t e) { return e == hipErrorOutOfMemory; },
      [&](hipError_t e) {
        (void)hipGetLastError();
        warn_once(what, on_host, p, hipGetErrorString(e));
      });
}
hipError_t alloc_tables(void** out, std::size_t bytes, int device) {
  return own_memory_is_fresh(get_arch(device)) ? hipMalloc(out, bytes)
                                               : alloc_polled(out, bytes, false, purpose::tables, device);
}
hipError_t alloc_heap(void** out, std::size_t bytes, caching kind) {
  return hipExtMallocWithFlags(out, bytes, device_flags(kind));
}
hipError_t free_device(void* p) { return hipFree(p); }
hipError_t free_pinned(void* p) { return hipHostFree(p); }
// "" if this runtime has uncached memory for the heap.
std::string uncached_heap_obstacle() {
  const hip_version v = runtime_version();
  if (v.has_uncached_device_memory()) return "";
  return fmt::format("HIP {}.{} has no uncached device memory, 5.7 and newer have", v.major_part(), v.minor_part());
}

// A peer's dma-buf in this process.
struct imported {
  hipExternalMemory_t memory = nullptr;
};
hipError_t import_dmabuf(imported* out, void** data, int fd, std::size_t bytes) {
  hipExternalMemoryHandleDesc wish{};
  wish.type = hipExternalMemoryHandleTypeOpaqueFd;
  wish.handle.fd = fd;
  wish.size = bytes;
  if (const hipError_t e = hipImportExternalMemory(&out->memory, &wish); e != hipSuccess) return e;
  hipExternalMemoryBufferDesc whole{};
  whole.size = bytes;
  const hipError_t e = hipExternalMemoryGetMappedBuffer(data, out->memory, &whole);
  if (e != hipSuccess) (void)hipDestroyExternalMemory(out->memory);
  return e;
}
void release_dmabuf(const imported& what) {
  if (hipDestroyExternalMemory(what.memory) != hipSuccess) (void)hipGetLastError();
}
hipError_t alloc_managed(void** out, std::size_t bytes) { return hipMallocManaged(out, bytes, hipMemAttachGlobal); }
hipError_t memory_left(std::size_t* free, std::size_t* total) { return hipMemGetInfo(free, total); }
hipError_t ipc_export(ipc_handle* out, void* p) { return hipIpcGetMemHandle(out, p); }
hipError_t ipc_import(void** out, const ipc_handle& h) {
  return hipIpcOpenMemHandle(out, h, hipIpcMemLazyEnablePeerAccess);
}
hipError_t ipc_release(void* p) { return hipIpcCloseMemHandle(p); }

constexpr auto k_files_by = option::storage_files_by::hipfile;
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

bool stream_is_elsewhere(void* stream, int device) {
#if HIP_VERSION_MAJOR >= 6
  hipDevice_t its = device;
  if (hipStreamGetDevice(static_cast<hipStream_t>(stream), &its) == hipSuccess) return its != device;
  (void)hipGetLastError();
#endif
  return false;
}

// Memory that the runtime knows, and on some machines all of the process.
bool kernels_reach(const void* p, int device) {
  hipPointerAttribute_t a{};
  if (hipPointerGetAttributes(&a, p) == hipSuccess) {
#if HIP_VERSION_MAJOR >= 6
    if (a.type != hipMemoryTypeUnregistered) return true;
#else
    return true;
#endif
  } else {
    (void)hipGetLastError();
  }
  int all = 0;
  if (hipDeviceGetAttribute(&all, hipDeviceAttributePageableMemoryAccess, device) == hipSuccess) return all != 0;
  (void)hipGetLastError();
  return false;
}

std::string get_arch(int device) {
  hipDeviceProp_t p{};
  if (hipGetDeviceProperties(&p, device) == hipSuccess) return p.gcnArchName;
  (void)hipGetLastError();
  return "";
}
hipError_t get_bus_id(char* out, int bytes, int device) { return hipDeviceGetPCIBusId(out, bytes, device); }
bool means_out_of_reach(hipError_t e) { return e == hipErrorPeerAccessUnsupported || e == hipErrorNotSupported; }
hipError_t device_address(void** out, void* page) { return hipHostGetDevicePointer(out, page, 0); }

bool attribute_holds(hipDeviceAttribute_t what, int device) {
  int value = 0;
  if (hipDeviceGetAttribute(&value, what, device) == hipSuccess) return value != 0;
  (void)hipGetLastError();
  return false;
}

bool shares_managed_memory(int device) { return attribute_holds(hipDeviceAttributeConcurrentManagedAccess, device); }
// Fine-grained host memory takes fetch-add, swap and compare-swap as PCIe AtomicOps; the other atomics of a GPU on PCIe
// change nothing there, with or without other devices.
bool atomics_hold_in_host_memory(int device, bool) { return attribute_holds(hipDeviceAttributeIntegrated, device); }

// The attribute's value is an address: HIP writes a pointer where it is given an int's (clr hipamd, hip_device.cpp).
std::uint32_t* flush_register(int device) {
  union {
    std::uint32_t* address;
    int first;
  } result{nullptr};
  if (hipDeviceGetAttribute(&result.first, hipDeviceAttributeHdpMemFlushCntl, device) == hipSuccess)
    return result.address;
  (void)hipGetLastError();
  return nullptr;
}

hdp_hardware hdp(int device) {
  return {true, attribute_holds(hipDeviceAttributeIntegrated, device),
          attribute_holds(hipDeviceAttributeIsLargeBar, device), flush_register(device)};
}

// Before the first kernel: what the heap needs.
void check_device(int device) {
  fine_grain_facts f;
  f.arch = get_arch(device);
  f.integrated = attribute_holds(hipDeviceAttributeIntegrated, device);
  if (const auto node = topology::find_kfd_node("", identity_of(device))) f.hive = node->hive;
  if (const char* forced = set_variable("HSA_FORCE_FINE_GRAIN_PCIE")) f.forced = forced;
  void* some = nullptr;
  f.allocates = alloc_heap(&some, 4096, caching::fine) == hipSuccess;
  if (f.allocates)
    (void)hipFree(some);
  else
    (void)hipGetLastError();
  if (const auto obstacle = fine_grain_obstacle(f)) fail(XIO_ERR_UNSUPPORTED, "{}", *obstacle);
}

std::string why_no_device(hipError_t e) {
  const auto missing = topology::missing_for_runtime("");
  return fmt::format("no AMD GPU can be used ({}): {}; or build with --with-gpu=host",
                     e == hipSuccess ? "none was found" : hipGetErrorString(e),
                     missing ? *missing
                             : "the files that libhsakmt wants are there; look at HIP_VISIBLE_DEVICES and "
                               "ROCR_VISIBLE_DEVICES, and let HSAKMT_DEBUG_LEVEL=7 say what it does");
}

}  // namespace

}  // namespace xio::gpu::hw

#include "gpu/hip_memory.hpp"

// By its lookup of calls.
#include "gpu/hip_identity.hpp"

// By both.
#include "gpu/hip_registers.hpp"

// Over what stands above.
#include "gpu/accelerator_heap.hpp"
#include "gpu/accelerator_memory.hpp"
#include "gpu/accelerator_registers.hpp"

namespace xio::gpu {

const char* name() { return "hip"; }

memory_report report_memory(purpose what, place where) {
  const bool on_host = where == place::shared;
  const memory_plan p = hw::plan(what, on_host, g_device);
  return {fmt::format("{} {} memory",
                      p.use == caching::uncached ? "uncached"
                      : on_host                  ? "coherent"
                                                 : "fine-grained",
                      on_host ? "host" : "device"),
          p.why};
}

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
