// SPDX-License-Identifier: MIT
// The HIP calls of <xio/hip.h> on the host platform.

#include <cstdlib>
#include <cstring>

#include "gpu/host/capture.hpp"
#include "gpu/host/handles.hpp"
#include "gpu/host/hip_errors.hpp"
#include "gpu/host/settings.hpp"

using xio::host_exec::call;
using xio::host_exec::capture;
using xio::host_exec::completion_ptr;
using xio::host_exec::launch;
using xio::host_exec::remember;
using xio::host_exec::stream;

namespace {

using xio::host_exec::handles;
using xio::host_exec::hip_memory;

struct event {
  std::mutex guard;
  completion_ptr at;  // null: never recorded, or in a capture:
  std::weak_ptr<capture> captured;
  xio::host_exec::frontier reached;
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

// A graph, and one that can be launched: its work, and the end of its last run.
struct graph {
  std::mutex guard;
  std::vector<xio::host_exec::work> work;
  completion_ptr last;
};
handles<hipGraph_t, graph>& graphs() {
  static auto* const all = new handles<hipGraph_t, graph>(std::uintptr_t{0x576a} << 48);
  return *all;
}
handles<hipGraphExec_t, graph>& execs() {
  static auto* const all = new handles<hipGraphExec_t, graph>(std::uintptr_t{0x576e} << 48);
  return *all;
}

// Null: a handle that is none, or no more.
std::shared_ptr<stream> of(hipStream_t s) { return s == nullptr ? stream::standard() : streams().find(s); }

// Work of the default stream would come before and behind that of captured ones.
hipError_t refuse_by_captures(hipStream_t s) {
  return s == nullptr && capture::spoil_by_default_stream() ? hipErrorStreamCaptureImplicit : hipSuccess;
}

// Runs a call that may not be made while streams are captured.
template <class Body>
hipError_t unsafe_call(Body&& body) noexcept {
  return call([&] { return capture::spoil_by_unsafe_call() ? hipErrorStreamCaptureUnsupported : body(); });
}

// The same of one that waits for a stream, or asks for its state.
template <class Body>
hipError_t unsafe_call_on(hipStream_t s, Body&& body) noexcept {
  return unsafe_call([&] {
    const std::shared_ptr<stream> is = of(s);
    if (is == nullptr) return hipErrorInvalidHandle;
    if (const auto by = is->captured_by()) {
      by->invalidate();
      return hipErrorStreamCaptureUnsupported;
    }
    const hipError_t refused = refuse_by_captures(s);
    return refused != hipSuccess ? refused : body(*is);
  });
}

// Calls body(stream), unless there is no such stream.
template <class Body>
hipError_t call_on(hipStream_t s, Body&& body) noexcept {
  return call([&] {
    const std::shared_ptr<stream> is = of(s);
    if (is == nullptr) return hipErrorInvalidHandle;
    if (const hipError_t refused = refuse_by_captures(s); refused != hipSuccess) return refused;
    if (const auto by = is->captured_by(); by != nullptr && !by->is_valid()) return hipErrorStreamCaptureInvalidated;
    return body(*is);
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

// Null: it was not recorded in a capture that goes on.
std::shared_ptr<capture> captured(const event_ptr& e) {
  const std::lock_guard lock(e->guard);
  return e->captured.lock();
}

// An event of a capture has no time and no end.
hipError_t refuse_captured(const event_ptr& e) {
  const auto by = captured(e);
  if (by == nullptr) return hipSuccess;
  by->invalidate();
  return hipErrorCapturedEvent;
}

hipError_t allocate(void** out, std::size_t bytes, hip_memory kind) {
  return unsafe_call([&] {
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

// --- The device and memory ---------------------------------------------------------------------------

hipError_t hipDeviceSynchronize() {
  return unsafe_call([] {
    hipError_t first = hipSuccess;
    for (const auto& s : stream::all())
      if (const hipError_t e = join(*s); e != hipSuccess) first = e;
    return stream::take_failure_of_closed().empty() ? first : hipErrorLaunchFailure;
  });
}

hipError_t hipMalloc(void** out, std::size_t bytes) { return allocate(out, bytes, hip_memory::device); }
hipError_t hipHostMalloc(void** out, std::size_t bytes, unsigned) { return allocate(out, bytes, hip_memory::host); }
// Like cudaFree and hipFree: no kernel uses the memory any more when it goes. Synchronisation alone takes the failures
// of kernels, so that a caller that asks for them gets them.
hipError_t hipFree(void* p) {
  if (p == nullptr) return hipSuccess;
  return unsafe_call([&] {
    if (!xio::host_exec::forget_memory(p, hip_memory::device)) return hipErrorInvalidValue;
    wait_for_all();
    std::free(p);
    return hipSuccess;
  });
}
hipError_t hipHostFree(void* p) {
  if (p == nullptr) return hipSuccess;
  return unsafe_call([&] {
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
  const hipError_t e = unsafe_call([&] { return hipMemcpyAsync(to, from, bytes, kind, nullptr); });
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
  const hipError_t e = unsafe_call([&] { return hipMemsetAsync(to, value, bytes, nullptr); });
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
    if (const auto by = is->captured_by()) by->invalidate();
    stream::close(is);
    return hipSuccess;
  });
}

hipError_t hipStreamSynchronize(hipStream_t s) {
  return unsafe_call_on(s, [](stream& on) { return join(on); });
}

hipError_t hipStreamQuery(hipStream_t s) {
  return unsafe_call_on(s, [](stream& on) {
    const completion_ptr last = on.last();
    return last == nullptr || last->done() ? hipSuccess : hipErrorNotReady;
  });
}

hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t handle, unsigned) {
  return call_on(s, [&](stream& on) {
    const event_ptr e = events().find(handle);
    if (e == nullptr) return hipErrorInvalidHandle;
    const auto ours = on.captured_by(), theirs = captured(e);
    if (ours == nullptr && theirs == nullptr) {
      if (const completion_ptr at = recorded(e)) on.wait_for(at);
      return hipSuccess;
    }
    if (ours != nullptr && ours != theirs) {
      ours->invalidate();
      if (theirs != nullptr) theirs->invalidate();
      return theirs != nullptr ? hipErrorStreamCaptureMerge : hipErrorStreamCaptureIsolation;
    }
    on.set_capture(theirs);
    theirs->follow(on.shared_from_this(), e->reached);
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
    const auto by = on.captured_by();
    completion_ptr at = by != nullptr ? nullptr : on.run([] {}, false);
    const std::lock_guard lock(e->guard);
    e->at = std::move(at);
    e->captured = by;
    if (by != nullptr) e->reached = by->reached(&on);
    return hipSuccess;
  });
}

hipError_t hipEventSynchronize(hipEvent_t handle) {
  return unsafe_call([&] {
    const event_ptr e = events().find(handle);
    if (e == nullptr) return hipErrorInvalidHandle;
    if (const hipError_t refused = refuse_captured(e); refused != hipSuccess) return refused;
    if (const completion_ptr at = recorded(e)) at->wait();
    return hipSuccess;
  });
}

hipError_t hipEventQuery(hipEvent_t handle) {
  const event_ptr e = events().find(handle);
  if (e == nullptr) return remember(hipErrorInvalidHandle);
  if (const hipError_t refused = refuse_captured(e); refused != hipSuccess) return remember(refused);
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

// --- Captures and graphs -----------------------------------------------------------------------------

hipError_t hipStreamBeginCapture(hipStream_t s, hipStreamCaptureMode mode) {
  return call([&] {
    if (mode < hipStreamCaptureModeGlobal || mode > hipStreamCaptureModeRelaxed) return hipErrorInvalidValue;
    if (s == nullptr) return hipErrorStreamCaptureUnsupported;
    const std::shared_ptr<stream> is = of(s);
    if (is == nullptr) return hipErrorInvalidHandle;
    if (is->captured_by() != nullptr) return hipErrorIllegalState;
    is->set_capture(capture::begin(is, mode));
    return hipSuccess;
  });
}

hipError_t hipStreamEndCapture(hipStream_t s, hipGraph_t* out) {
  return call([&] {
    if (out == nullptr) return hipErrorInvalidValue;
    *out = nullptr;
    const std::shared_ptr<stream> is = s == nullptr ? nullptr : of(s);
    if (is == nullptr) return s == nullptr ? hipErrorIllegalState : hipErrorInvalidHandle;
    const auto by = is->captured_by();
    if (by == nullptr) return hipErrorIllegalState;
    auto made = std::make_shared<graph>();
    const hipError_t e = by->end(*is, &made->work);
    if (e == hipSuccess) *out = graphs().add(made);
    return e;
  });
}

hipError_t hipStreamIsCapturing(hipStream_t s, hipStreamCaptureStatus* out) {
  return call([&] {
    const std::shared_ptr<stream> is = of(s);
    if (out == nullptr || is == nullptr) return out == nullptr ? hipErrorInvalidValue : hipErrorInvalidHandle;
    if (const hipError_t refused = refuse_by_captures(s); refused != hipSuccess) return refused;
    const auto by = is->captured_by();
    *out = by == nullptr    ? hipStreamCaptureStatusNone
           : by->is_valid() ? hipStreamCaptureStatusActive
                            : hipStreamCaptureStatusInvalidated;
    return hipSuccess;
  });
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  if (mode == nullptr || *mode < hipStreamCaptureModeGlobal || *mode > hipStreamCaptureModeRelaxed)
    return remember(hipErrorInvalidValue);
  std::swap(*mode, xio::host_exec::capture_mode_of_thread());
  return hipSuccess;
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* out, hipGraph_t g, unsigned long long) {
  return call([&] {
    const std::shared_ptr<graph> is = graphs().find(g);
    if (out == nullptr || is == nullptr) return hipErrorInvalidValue;
    auto made = std::make_shared<graph>();
    made->work = is->work;
    *out = execs().add(made);
    return hipSuccess;
  });
}

// A graph's runs come one after the other, also in several streams.
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t s) {
  return call_on(s, [&](stream& on) {
    const std::shared_ptr<graph> is = execs().find(exec);
    if (is == nullptr) return hipErrorInvalidValue;
    const std::lock_guard lock(is->guard);
    if (on.captured_by() == nullptr && is->last != nullptr) on.wait_for(is->last);
    for (const auto& w : is->work) is->last = on.add(w.again());
    return hipSuccess;
  });
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return call([&] { return execs().take(exec) == nullptr ? hipErrorInvalidValue : hipSuccess; });
}

hipError_t hipGraphDestroy(hipGraph_t g) {
  return call([&] { return graphs().take(g) == nullptr ? hipErrorInvalidValue : hipSuccess; });
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
