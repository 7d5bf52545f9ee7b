// SPDX-License-Identifier: MIT
// HIP's names for CUDA's things; include <xio/hip.h>. Names only: what they do is what CUDA does.
#pragma once
// The first two declare overloads of __shfl, which becomes a macro below.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>

// --- Inside a kernel ---------------------------------------------------------------------------------

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char xio_dynamic_shared[]; \
  type* name = reinterpret_cast<type*>(xio_dynamic_shared);
#if defined(__CUDACC__)
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

// Wave operations take the lanes that are active at the call.
#define __ballot(predicate) static_cast<unsigned long long>(__ballot_sync(__activemask(), (predicate)))
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)

__device__ inline int __lane_id() {
  int id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}
// Nanoseconds.
__device__ inline long long wall_clock64() {
  long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}
#endif

// --- Errors and the device ---------------------------------------------------------------------------

using hipError_t = cudaError_t;
using hipDeviceProp_t = cudaDeviceProp;
constexpr hipError_t hipSuccess = cudaSuccess;
constexpr hipError_t hipErrorInvalidValue = cudaErrorInvalidValue;
constexpr hipError_t hipErrorOutOfMemory = cudaErrorMemoryAllocation;
constexpr hipError_t hipErrorInvalidConfiguration = cudaErrorInvalidConfiguration;
constexpr hipError_t hipErrorInvalidDevice = cudaErrorInvalidDevice;
constexpr hipError_t hipErrorInvalidHandle = cudaErrorInvalidResourceHandle;
constexpr hipError_t hipErrorNotReady = cudaErrorNotReady;
constexpr hipError_t hipErrorLaunchFailure = cudaErrorLaunchFailure;
constexpr hipError_t hipErrorPeerAccessAlreadyEnabled = cudaErrorPeerAccessAlreadyEnabled;
constexpr hipError_t hipErrorIllegalState = cudaErrorIllegalState;
constexpr hipError_t hipErrorStreamCaptureUnsupported = cudaErrorStreamCaptureUnsupported;
constexpr hipError_t hipErrorStreamCaptureInvalidated = cudaErrorStreamCaptureInvalidated;
constexpr hipError_t hipErrorStreamCaptureUnmatched = cudaErrorStreamCaptureUnmatched;
constexpr hipError_t hipErrorStreamCaptureUnjoined = cudaErrorStreamCaptureUnjoined;
constexpr hipError_t hipErrorStreamCaptureImplicit = cudaErrorStreamCaptureImplicit;
constexpr hipError_t hipErrorCapturedEvent = cudaErrorCapturedEvent;
constexpr hipError_t hipErrorUnknown = cudaErrorUnknown;

inline const char* hipGetErrorString(hipError_t error) { return cudaGetErrorString(error); }
inline const char* hipGetErrorName(hipError_t error) { return cudaGetErrorName(error); }
inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline hipError_t hipPeekAtLastError() { return cudaPeekAtLastError(); }
inline hipError_t hipGetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
inline hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  return cudaDeviceCanAccessPeer(can, device, peer);
}
inline hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return cudaDeviceEnablePeerAccess(peer, flags);
}
inline hipError_t hipSetDevice(int device) { return cudaSetDevice(device); }
inline hipError_t hipGetDevice(int* device) { return cudaGetDevice(device); }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int device) {
  return cudaGetDeviceProperties(out, device);
}
inline hipError_t hipDeviceSynchronize() { return cudaDeviceSynchronize(); }

enum hipDeviceAttribute_t {
  hipDeviceAttributeWarpSize = cudaDevAttrWarpSize,
  hipDeviceAttributeMultiprocessorCount = cudaDevAttrMultiProcessorCount,
  hipDeviceAttributeMaxThreadsPerBlock = cudaDevAttrMaxThreadsPerBlock,
  hipDeviceAttributeWallClockRate = -1  // kHz of wall_clock64(); CUDA has no name for it
};
inline hipError_t hipDeviceGetAttribute(int* out, hipDeviceAttribute_t what, int device) {
  if (what != hipDeviceAttributeWallClockRate)
    return cudaDeviceGetAttribute(out, static_cast<cudaDeviceAttr>(what), device);
  *out = 1000000;
  return cudaSuccess;
}

using hipFuncAttributes = cudaFuncAttributes;
inline hipError_t hipFuncGetAttributes(hipFuncAttributes* out, const void* kernel) {
  return cudaFuncGetAttributes(out, kernel);
}

// --- Memory ------------------------------------------------------------------------------------------

using hipMemcpyKind = cudaMemcpyKind;
constexpr hipMemcpyKind hipMemcpyHostToHost = cudaMemcpyHostToHost;
constexpr hipMemcpyKind hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
constexpr hipMemcpyKind hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
constexpr hipMemcpyKind hipMemcpyDeviceToDevice = cudaMemcpyDeviceToDevice;
constexpr hipMemcpyKind hipMemcpyDefault = cudaMemcpyDefault;
constexpr unsigned hipHostMallocDefault = cudaHostAllocDefault;
constexpr unsigned hipHostMallocPortable = cudaHostAllocPortable;
constexpr unsigned hipHostMallocMapped = cudaHostAllocMapped;
constexpr unsigned hipHostMallocCoherent = 0;  // CUDA's pinned memory always is

using hipStream_t = cudaStream_t;

template <class T>
hipError_t hipMalloc(T** out, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(out), bytes);
}
inline hipError_t hipFree(void* p) { return cudaFree(p); }
template <class T>
hipError_t hipHostMalloc(T** out, std::size_t bytes, unsigned flags = 0) {
  return cudaHostAlloc(reinterpret_cast<void**>(out), bytes, flags | cudaHostAllocMapped);
}
inline hipError_t hipHostFree(void* p) { return cudaFreeHost(p); }
inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                 hipStream_t stream = nullptr) {
  return cudaMemcpyAsync(to, from, bytes, kind, stream);
}
inline hipError_t hipMemset(void* to, int value, std::size_t bytes) { return cudaMemset(to, value, bytes); }
inline hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream = nullptr) {
  return cudaMemsetAsync(to, value, bytes, stream);
}

// --- Streams and events ------------------------------------------------------------------------------

using hipEvent_t = cudaEvent_t;
using hipHostFn_t = cudaHostFn_t;
constexpr unsigned hipStreamDefault = cudaStreamDefault;
constexpr unsigned hipStreamNonBlocking = cudaStreamNonBlocking;
constexpr unsigned hipEventDefault = cudaEventDefault;
constexpr unsigned hipEventDisableTiming = cudaEventDisableTiming;

inline hipError_t hipStreamCreate(hipStream_t* out) { return cudaStreamCreate(out); }
inline hipError_t hipStreamCreateWithFlags(hipStream_t* out, unsigned flags) {
  return cudaStreamCreateWithFlags(out, flags);
}
inline hipError_t hipStreamDestroy(hipStream_t stream) { return cudaStreamDestroy(stream); }
inline hipError_t hipStreamSynchronize(hipStream_t stream) { return cudaStreamSynchronize(stream); }
inline hipError_t hipStreamQuery(hipStream_t stream) { return cudaStreamQuery(stream); }
inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags = 0) {
  return cudaStreamWaitEvent(stream, event, flags);
}
inline hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void* argument) {
  return cudaLaunchHostFunc(stream, fn, argument);
}
inline hipError_t hipEventCreate(hipEvent_t* out) { return cudaEventCreate(out); }
inline hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned flags) {
  return cudaEventCreateWithFlags(out, flags);
}
inline hipError_t hipEventDestroy(hipEvent_t event) { return cudaEventDestroy(event); }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr) {
  return cudaEventRecord(event, stream);
}
inline hipError_t hipEventSynchronize(hipEvent_t event) { return cudaEventSynchronize(event); }
inline hipError_t hipEventQuery(hipEvent_t event) { return cudaEventQuery(event); }
inline hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return cudaEventElapsedTime(milliseconds, start, stop);
}

// --- Captures and graphs -----------------------------------------------------------------------------

using hipGraph_t = cudaGraph_t;
using hipGraphExec_t = cudaGraphExec_t;
using hipStreamCaptureMode = cudaStreamCaptureMode;
constexpr hipStreamCaptureMode hipStreamCaptureModeGlobal = cudaStreamCaptureModeGlobal;
constexpr hipStreamCaptureMode hipStreamCaptureModeThreadLocal = cudaStreamCaptureModeThreadLocal;
constexpr hipStreamCaptureMode hipStreamCaptureModeRelaxed = cudaStreamCaptureModeRelaxed;
using hipStreamCaptureStatus = cudaStreamCaptureStatus;
constexpr hipStreamCaptureStatus hipStreamCaptureStatusNone = cudaStreamCaptureStatusNone;
constexpr hipStreamCaptureStatus hipStreamCaptureStatusActive = cudaStreamCaptureStatusActive;
constexpr hipStreamCaptureStatus hipStreamCaptureStatusInvalidated = cudaStreamCaptureStatusInvalidated;

inline hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return cudaStreamBeginCapture(stream, mode);
}
inline hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* out) { return cudaStreamEndCapture(stream, out); }
inline hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* out) {
  return cudaStreamIsCapturing(stream, out);
}
inline hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return cudaThreadExchangeStreamCaptureMode(mode);
}
inline hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* out, hipGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(out, graph, flags);
}
inline hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) { return cudaGraphLaunch(exec, stream); }
inline hipError_t hipGraphExecDestroy(hipGraphExec_t exec) { return cudaGraphExecDestroy(exec); }
inline hipError_t hipGraphDestroy(hipGraph_t graph) { return cudaGraphDestroy(graph); }
