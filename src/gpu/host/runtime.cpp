// SPDX-License-Identifier: MIT
// The HIP calls of <xio/hip.h> on the host platform.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/host/handles.hpp"
#include "gpu/host/settings.hpp"
#include "gpu/host/stream.hpp"
#include "xio/hip_host.h"

using xio::host_exec::completion_ptr;
using xio::host_exec::launch;
using xio::host_exec::stream;

namespace {

using xio::host_exec::handles;
using xio::host_exec::hip_memory;

struct event {
  std::mutex guard;
  completion_ptr at;  // null: never recorded
};
using event_ptr = std::shared_ptr<event>;

// Numbers that no small integer and no address of a program is. Never destroyed: programs end their streams in exit
// handlers, too.
handles<hipStream_t, stream>& streams() {
  static auto* const all = new handles<hipStream_t, stream>(std::uintptr_t{0x5731} << 48);
  return *all;
}
handles<hipEvent_t, event>& events() {
  static auto* const all = new handles<hipEvent_t, event>(std::uintptr_t{0x57e5} << 48);
  return *all;
}

thread_local hipError_t t_last = hipSuccess;

hipError_t remember(hipError_t e) {
  if (e != hipSuccess) t_last = e;
  return e;
}

// Runs a call; exceptions become errors, and the sentence goes to the log.
template <class Body>
hipError_t call(Body&& body) noexcept {
  try {
    return remember(body());
  } catch (const xio::error& e) {
    xio::log::error("{}", e.what());
    return remember(e.status() == XIO_ERR_NO_MEMORY ? hipErrorOutOfMemory : hipErrorInvalidValue);
  } catch (const std::bad_alloc&) {
    return remember(hipErrorOutOfMemory);
  } catch (...) {
    return remember(hipErrorUnknown);
  }
}

// Null: a handle that is none, or no more.
std::shared_ptr<stream> of(hipStream_t s) { return s == nullptr ? stream::standard() : streams().find(s); }

// Calls body(stream), unless there is no such stream.
template <class Body>
hipError_t call_on(hipStream_t s, Body&& body) noexcept {
  return call([&] {
    const std::shared_ptr<stream> is = of(s);
    return is == nullptr ? hipErrorInvalidHandle : body(*is);
  });
}

hipError_t join(stream& s) {
  if (const completion_ptr last = s.last()) last->wait();
  return s.take_failure().empty() ? hipSuccess : hipErrorLaunchFailure;
}

// Failures stay with their streams.
void wait_for_all() {
  for (const auto& s : stream::all())
    if (const completion_ptr last = s->last()) last->wait();
}

completion_ptr recorded(const event_ptr& e) {
  const std::lock_guard lock(e->guard);
  return e->at;
}

hipError_t allocate(void** out, std::size_t bytes, hip_memory kind) {
  return call([&] {
    if (out == nullptr) return hipErrorInvalidValue;
    *out = nullptr;
    if (bytes == 0) return hipSuccess;
    if (bytes > SIZE_MAX - 4096) return hipErrorOutOfMemory;
    void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (p == nullptr) return hipErrorOutOfMemory;
    try {
      xio::host_exec::note_memory(p, bytes, kind);
    } catch (...) {
      std::free(p);
      throw;
    }
    *out = p;
    return hipSuccess;
  });
}

bool is_direction(hipMemcpyKind kind) {
  return static_cast<int>(kind) >= hipMemcpyHostToHost && static_cast<int>(kind) <= hipMemcpyDefault;
}

// For a copy or a fill. A range that is null or leaves the block that it begins in is refused.
bool may_touch(const void* p, std::size_t bytes) {
  return bytes == 0 || (p != nullptr && xio::host_exec::inside_memory(p, bytes));
}

}  // namespace

// --- Errors and the device ---------------------------------------------------------------------------

const char* hipGetErrorName(hipError_t error) {
  switch (error) {
#define XIO_NAME(e) \
  case e: return #e;
    XIO_NAME(hipSuccess)
    XIO_NAME(hipErrorInvalidValue)
    XIO_NAME(hipErrorOutOfMemory)
    XIO_NAME(hipErrorInvalidConfiguration)
    XIO_NAME(hipErrorInvalidMemcpyDirection)
    XIO_NAME(hipErrorInvalidDevice)
    XIO_NAME(hipErrorInvalidHandle)
    XIO_NAME(hipErrorNotReady)
    XIO_NAME(hipErrorLaunchFailure)
    XIO_NAME(hipErrorUnknown)
#undef XIO_NAME
  }
  return "hipErrorUnknown";
}

const char* hipGetErrorString(hipError_t error) {
  switch (error) {
    case hipSuccess: return "no error";
    case hipErrorInvalidValue: return "invalid argument";
    case hipErrorOutOfMemory: return "out of memory";
    case hipErrorInvalidConfiguration: return "invalid launch configuration";
    case hipErrorInvalidMemcpyDirection: return "invalid direction of a copy";
    case hipErrorInvalidDevice: return "there is only device 0";
    case hipErrorInvalidHandle: return "invalid handle";
    case hipErrorNotReady: return "not finished yet";
    case hipErrorLaunchFailure: return "a kernel failed; the log says why";
    case hipErrorUnknown: break;
  }
  return "unknown error";
}

hipError_t hipGetLastError() { return std::exchange(t_last, hipSuccess); }
hipError_t hipPeekAtLastError() { return t_last; }

hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return remember(hipErrorInvalidValue);
  *count = 1;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) { return remember(device == 0 ? hipSuccess : hipErrorInvalidDevice); }

hipError_t hipGetDevice(int* device) {
  if (device == nullptr) return remember(hipErrorInvalidValue);
  *device = 0;
  return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int device) {
  if (device != 0) return remember(hipErrorInvalidDevice);
  return call([&] {
    if (out == nullptr) return hipErrorInvalidValue;
    const auto& s = xio::host_exec::config();
    *out = hipDeviceProp_t{};
    std::strcpy(out->name, "CPU threads");
    std::strcpy(out->gcnArchName, "host");
    out->totalGlobalMem =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    out->sharedMemPerBlock = 64 * 1024;
    out->warpSize = static_cast<int>(s.wave_size);
    out->maxThreadsPerBlock = static_cast<int>(xio::host_exec::k_max_workgroup);
    out->multiProcessorCount = static_cast<int>(s.cus);
    return hipSuccess;
  });
}

hipError_t hipDeviceGetAttribute(int* out, hipDeviceAttribute_t what, int device) {
  if (out == nullptr) return remember(hipErrorInvalidValue);
  hipDeviceProp_t p;
  if (const hipError_t e = hipGetDeviceProperties(&p, device); e != hipSuccess) return e;
  switch (what) {
    case hipDeviceAttributeWarpSize: *out = p.warpSize; return hipSuccess;
    case hipDeviceAttributeMultiprocessorCount: *out = p.multiProcessorCount; return hipSuccess;
    case hipDeviceAttributeMaxThreadsPerBlock: *out = p.maxThreadsPerBlock; return hipSuccess;
    case hipDeviceAttributeWallClockRate: *out = 1000000; return hipSuccess;
  }
  return remember(hipErrorInvalidValue);
}

hipError_t hipDeviceSynchronize() {
  return call([] {
    hipError_t first = hipSuccess;
    for (const auto& s : stream::all())
      if (const hipError_t e = join(*s); e != hipSuccess) first = e;
    return stream::take_failure_of_closed().empty() ? first : hipErrorLaunchFailure;
  });
}

// --- Memory ------------------------------------------------------------------------------------------

hipError_t hipMalloc(void** out, std::size_t bytes) { return allocate(out, bytes, hip_memory::device); }
hipError_t hipHostMalloc(void** out, std::size_t bytes, unsigned) { return allocate(out, bytes, hip_memory::host); }
// Like cudaFree and hipFree: no kernel uses the memory any more when it goes. Synchronisation alone takes the failures
// of kernels, so that a caller that asks for them gets them.
hipError_t hipFree(void* p) {
  if (p == nullptr) return hipSuccess;
  return call([&] {
    if (!xio::host_exec::forget_memory(p, hip_memory::device)) return hipErrorInvalidValue;
    wait_for_all();
    std::free(p);
    return hipSuccess;
  });
}
hipError_t hipHostFree(void* p) {
  if (p == nullptr) return hipSuccess;
  return call([&] {
    if (!xio::host_exec::forget_memory(p, hip_memory::host)) return hipErrorInvalidValue;
    std::free(p);
    return hipSuccess;
  });
}

hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t s) {
  if (!is_direction(kind)) return remember(hipErrorInvalidMemcpyDirection);
  return call_on(s, [&](stream& on) {
    if (!may_touch(to, bytes) || !may_touch(from, bytes)) return hipErrorInvalidValue;
    on.run([=] { std::memmove(to, from, bytes); }, false);
    return hipSuccess;
  });
}

hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  const hipError_t e = hipMemcpyAsync(to, from, bytes, kind, nullptr);
  return e != hipSuccess ? e : hipStreamSynchronize(nullptr);
}

hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t s) {
  return call_on(s, [&](stream& on) {
    if (!may_touch(to, bytes)) return hipErrorInvalidValue;
    on.run([=] { std::memset(to, value, bytes); }, false);
    return hipSuccess;
  });
}

hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  const hipError_t e = hipMemsetAsync(to, value, bytes, nullptr);
  return e != hipSuccess ? e : hipStreamSynchronize(nullptr);
}

// --- Streams and events ------------------------------------------------------------------------------

hipError_t hipStreamCreate(hipStream_t* out) { return hipStreamCreateWithFlags(out, hipStreamDefault); }

hipError_t hipStreamCreateWithFlags(hipStream_t* out, unsigned flags) {
  return call([&] {
    if (out == nullptr) return hipErrorInvalidValue;
    *out = streams().add(stream::open((flags & hipStreamNonBlocking) == 0));
    return hipSuccess;
  });
}

// Work that was given to it still runs to its end.
hipError_t hipStreamDestroy(hipStream_t s) {
  return call([&] {
    const std::shared_ptr<stream> is = streams().take(s);
    if (is == nullptr) return hipErrorInvalidHandle;
    stream::close(is);
    return hipSuccess;
  });
}

hipError_t hipStreamSynchronize(hipStream_t s) {
  return call_on(s, [](stream& on) { return join(on); });
}

hipError_t hipStreamQuery(hipStream_t s) {
  const std::shared_ptr<stream> is = of(s);
  if (is == nullptr) return remember(hipErrorInvalidHandle);
  const completion_ptr last = is->last();
  return last == nullptr || last->done() ? hipSuccess : hipErrorNotReady;
}

hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t handle, unsigned) {
  return call_on(s, [&](stream& on) {
    const event_ptr e = events().find(handle);
    if (e == nullptr) return hipErrorInvalidHandle;
    if (const completion_ptr at = recorded(e)) on.wait_for(at);
    return hipSuccess;
  });
}

hipError_t hipLaunchHostFunc(hipStream_t s, hipHostFn_t fn, void* argument) {
  return call_on(s, [&](stream& on) {
    if (fn == nullptr) return hipErrorInvalidValue;
    on.run([=] { fn(argument); }, true);
    return hipSuccess;
  });
}

hipError_t hipEventCreate(hipEvent_t* out) { return hipEventCreateWithFlags(out, hipEventDefault); }

hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned) {
  return call([&] {
    if (out == nullptr) return hipErrorInvalidValue;
    *out = events().add(std::make_shared<event>());
    return hipSuccess;
  });
}

hipError_t hipEventDestroy(hipEvent_t handle) {
  return call([&] { return events().take(handle) == nullptr ? hipErrorInvalidHandle : hipSuccess; });
}

hipError_t hipEventRecord(hipEvent_t handle, hipStream_t s) {
  return call_on(s, [&](stream& on) {
    const event_ptr e = events().find(handle);
    if (e == nullptr) return hipErrorInvalidHandle;
    completion_ptr at = on.run([] {}, false);
    const std::lock_guard lock(e->guard);
    e->at = std::move(at);
    return hipSuccess;
  });
}

hipError_t hipEventSynchronize(hipEvent_t handle) {
  return call([&] {
    const event_ptr e = events().find(handle);
    if (e == nullptr) return hipErrorInvalidHandle;
    if (const completion_ptr at = recorded(e)) at->wait();
    return hipSuccess;
  });
}

hipError_t hipEventQuery(hipEvent_t handle) {
  const event_ptr e = events().find(handle);
  if (e == nullptr) return remember(hipErrorInvalidHandle);
  const completion_ptr at = recorded(e);
  return at == nullptr || at->done() ? hipSuccess : hipErrorNotReady;
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  if (milliseconds == nullptr) return remember(hipErrorInvalidValue);
  const event_ptr first = events().find(start), second = events().find(stop);
  if (first == nullptr || second == nullptr) return remember(hipErrorInvalidHandle);
  const completion_ptr a = recorded(first), b = recorded(second);
  if (a == nullptr || b == nullptr) return remember(hipErrorInvalidHandle);
  if (!a->done() || !b->done()) return hipErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(b->when() - a->when()).count();
  return hipSuccess;
}

// --- Launches and built-ins --------------------------------------------------------------------------

hipError_t xio_host_launch(dim3 grid, dim3 block, std::size_t shared_bytes, hipStream_t s, void (*run)(void*),
                           void* kernel, void (*destroy)(void*)) {
  std::unique_ptr<void, void (*)(void*)> given(kernel, destroy);
  if (kernel == nullptr) return remember(hipErrorOutOfMemory);
  return call_on(s, [&](stream& on) {
    auto l = std::make_shared<launch>();
    l->grid = {grid.x, grid.y, grid.z};
    l->block = {block.x, block.y, block.z};
    l->shared_bytes = shared_bytes;
    l->kernel = [run, owned = std::shared_ptr<void>(std::move(given))] { run(owned.get()); };
    if (const std::string why = check_launch(*l); !why.empty()) {
      xio::log::error("{}", why);
      return hipErrorInvalidConfiguration;
    }
    xio::host_exec::config();  // what it has to say about the environment is said here
    on.run_kernel(std::move(l));
    return hipSuccess;
  });
}

long long wall_clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long long>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
