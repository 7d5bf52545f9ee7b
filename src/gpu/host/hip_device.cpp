// SPDX-License-Identifier: MIT
// Of the HIP calls of the host platform those that say what failed and what the device is, and what kernels find built
// in.
#include "gpu/host/hip_errors.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "gpu/host/settings.hpp"

using xio::host_exec::call;
using xio::host_exec::remember;

namespace {

thread_local hipError_t t_last = hipSuccess;

constexpr struct {
  hipError_t error;
  const char *name, *text;
} k_errors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid launch configuration"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid direction of a copy"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "there is only device 0"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid handle"},
    {hipErrorNotReady, "hipErrorNotReady", "not finished yet"},
    {hipErrorIllegalState, "hipErrorIllegalState", "the stream is captured already, or is not"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "a kernel failed; the log says why"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge",
     "more workgroups than run at the same time"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported", "not allowed while a stream is captured"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated", "the capture ended by an earlier error"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge", "two captures would become one"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "the capture began in another stream"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined",
     "the stream does not wait for others that it captured"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "captured work would wait for work outside of the capture"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit",
     "work of the default stream would wait for a captured stream"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "the event was recorded in a captured stream"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread", "the capture began in another thread"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

}  // namespace

namespace xio::host_exec {

hipError_t remember(hipError_t e) {
  if (e != hipSuccess && e != hipErrorNotReady) t_last = e;
  return e;
}

hipError_t refuse_kernel() {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    log::error("a kernel made a call of HIP that is the host's; make it before the launch or after it");
  return hipErrorInvalidValue;
}

}  // namespace xio::host_exec

const char* hipGetErrorName(hipError_t error) {
  for (const auto& one : k_errors)
    if (one.error == error) return one.name;
  return "hipErrorUnknown";
}

const char* hipGetErrorString(hipError_t error) {
  for (const auto& one : k_errors)
    if (one.error == error) return one.text;
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
    case hipDeviceAttributeHdpMemFlushCntl: {
      // HIP writes a pointer, too. Nothing has to be flushed here.
      static std::uint32_t word = 0;
      const std::uint32_t* const at = &word;
      std::memcpy(out, &at, sizeof at);
      return hipSuccess;
    }
  }
  return remember(hipErrorInvalidValue);
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
