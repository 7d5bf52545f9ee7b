// SPDX-License-Identifier: MIT
// HIP on CPU threads; include <xio/hip.h>. The executor behind it is described in docs/architecture.md.
//
// __shared__ variables are thread-local statics: a workgroup's GPU threads are fibers of one OS thread, which runs one
// workgroup at a time. They are therefore not for XIO_HOST_EXEC=threads; XIO_SHARED and HIP_DYNAMIC_SHARED always are.
#pragma once
#if __cplusplus <= 201703L
#error "XIO's device headers need C++20: compile with -std=c++20"
#endif
#include <cassert>  // as HIP brings it
#include <cstddef>
#include <cstdint>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xio/device/platform/host_exec.hpp"
#include "xio/export.h"
#include "xio/hip_host_atomics.h"
#include "xio/hip_host_math.h"
#include "xio/hip_host_wave.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(const ::xio::host_exec::index3& i) : x(i.x), y(i.y), z(i.z) {}
};

// --- Inside a kernel ---------------------------------------------------------------------------------

// Of the GPU thread that runs.
extern XIO_EXPORT __thread ::xio::host_exec::index3 threadIdx XIO_HOST_SYMBOL(threadIdx);
extern XIO_EXPORT __thread ::xio::host_exec::index3 blockIdx XIO_HOST_SYMBOL(blockIdx);
extern XIO_EXPORT __thread ::xio::host_exec::index3 blockDim XIO_HOST_SYMBOL(blockDim);
extern XIO_EXPORT __thread ::xio::host_exec::index3 gridDim XIO_HOST_SYMBOL(gridDim);
// As older programs write them.
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

struct xio_host_warp_size {
  operator int() const { return static_cast<int>(::xio::host_exec::current->wave_size); }
};
inline constexpr xio_host_warp_size warpSize;

#define HIP_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::xio::host_exec::dynamic_shared());

inline void __syncthreads() { ::xio::host_exec::sync_workgroup(); }
inline int __lane_id() { return static_cast<int>(::xio::host_exec::current->lane_id); }

// Ordinary functions of the library: ThreadSanitizer does not know fences.
XIO_EXPORT void __threadfence_block() XIO_HOST_SYMBOL(threadfence_block);
XIO_EXPORT void __threadfence() XIO_HOST_SYMBOL(threadfence);
XIO_EXPORT void __threadfence_system() XIO_HOST_SYMBOL(threadfence_system);

// Nanoseconds; see hipDeviceAttributeWallClockRate.
XIO_EXPORT long long wall_clock64() XIO_HOST_SYMBOL(wall_clock64);
inline long long clock64() { return wall_clock64(); }

// --- Errors and the device ---------------------------------------------------------------------------

// Numbered as in HIP.
enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidMemcpyDirection = 21,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidHandle = 400,
  hipErrorIllegalState = 401,
  hipErrorNotReady = 600,
  hipErrorLaunchFailure = 719,
  hipErrorCooperativeLaunchTooLarge = 720,
  hipErrorStreamCaptureUnsupported = 900,
  hipErrorStreamCaptureInvalidated = 901,
  hipErrorStreamCaptureMerge = 902,
  hipErrorStreamCaptureUnmatched = 903,
  hipErrorStreamCaptureUnjoined = 904,
  hipErrorStreamCaptureIsolation = 905,
  hipErrorStreamCaptureImplicit = 906,
  hipErrorCapturedEvent = 907,
  hipErrorStreamCaptureWrongThread = 908,
  hipErrorUnknown = 999
};

struct hipDeviceProp_t {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int multiProcessorCount;
  char gcnArchName[256];
};

enum hipDeviceAttribute_t {
  hipDeviceAttributeWarpSize,
  hipDeviceAttributeMultiprocessorCount,
  hipDeviceAttributeMaxThreadsPerBlock,
  hipDeviceAttributeWallClockRate,   // kHz of wall_clock64()
  hipDeviceAttributeHdpMemFlushCntl  // the address of a word, which may be written
};

XIO_EXPORT const char* hipGetErrorString(hipError_t error) XIO_HOST_SYMBOL(hipGetErrorString);
XIO_EXPORT const char* hipGetErrorName(hipError_t error) XIO_HOST_SYMBOL(hipGetErrorName);
XIO_EXPORT hipError_t hipGetLastError() XIO_HOST_SYMBOL(hipGetLastError);  // of this host thread; forgets it
XIO_EXPORT hipError_t hipPeekAtLastError() XIO_HOST_SYMBOL(hipPeekAtLastError);
XIO_EXPORT hipError_t hipGetDeviceCount(int* count) XIO_HOST_SYMBOL(hipGetDeviceCount);
XIO_EXPORT hipError_t hipSetDevice(int device) XIO_HOST_SYMBOL(hipSetDevice);
XIO_EXPORT hipError_t hipGetDevice(int* device) XIO_HOST_SYMBOL(hipGetDevice);
XIO_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int device) XIO_HOST_SYMBOL(hipGetDeviceProperties);
XIO_EXPORT hipError_t hipDeviceGetAttribute(int* out, hipDeviceAttribute_t what, int device)
    XIO_HOST_SYMBOL(hipDeviceGetAttribute);
// A kernel that failed since the last synchronisation of its stream is reported here, as hipErrorLaunchFailure.
XIO_EXPORT hipError_t hipDeviceSynchronize() XIO_HOST_SYMBOL(hipDeviceSynchronize);

// --- Memory ------------------------------------------------------------------------------------------

enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault
};
constexpr unsigned hipHostMallocDefault = 0x0;
constexpr unsigned hipHostMallocPortable = 0x1;
constexpr unsigned hipHostMallocMapped = 0x2;
constexpr unsigned hipHostMallocCoherent = 0x40000000;
constexpr unsigned hipMemAttachGlobal = 0x1;
constexpr unsigned hipMemAttachHost = 0x2;

struct ihipStream_t;
using hipStream_t = ihipStream_t*;

XIO_EXPORT hipError_t hipMalloc(void** out, std::size_t bytes) XIO_HOST_SYMBOL(hipMalloc);
XIO_EXPORT hipError_t hipFree(void* p) XIO_HOST_SYMBOL(hipFree);
XIO_EXPORT hipError_t hipHostMalloc(void** out, std::size_t bytes, unsigned flags = 0) XIO_HOST_SYMBOL(hipHostMalloc);
XIO_EXPORT hipError_t hipHostFree(void* p) XIO_HOST_SYMBOL(hipHostFree);
XIO_EXPORT hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind)
    XIO_HOST_SYMBOL(hipMemcpy);
XIO_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                     hipStream_t stream = nullptr) XIO_HOST_SYMBOL(hipMemcpyAsync);
XIO_EXPORT hipError_t hipMemset(void* to, int value, std::size_t bytes) XIO_HOST_SYMBOL(hipMemset);
XIO_EXPORT hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream = nullptr)
    XIO_HOST_SYMBOL(hipMemsetAsync);
template <class T>
hipError_t hipMalloc(T** out, std::size_t bytes) {
  return hipMalloc(reinterpret_cast<void**>(out), bytes);
}
// All memory is host memory here.
template <class T>
hipError_t hipMallocManaged(T** out, std::size_t bytes, unsigned = hipMemAttachGlobal) {
  return hipMalloc(out, bytes);
}
template <class T>
hipError_t hipHostMalloc(T** out, std::size_t bytes, unsigned flags = 0) {
  return hipHostMalloc(reinterpret_cast<void**>(out), bytes, flags);
}

// --- Streams and events ------------------------------------------------------------------------------

struct ihipEvent_t;
using hipEvent_t = ihipEvent_t*;
using hipHostFn_t = void (*)(void*);
constexpr unsigned hipStreamDefault = 0x0;
constexpr unsigned hipStreamNonBlocking = 0x1;
constexpr unsigned hipEventDefault = 0x0;
constexpr unsigned hipEventDisableTiming = 0x2;

XIO_EXPORT hipError_t hipStreamCreate(hipStream_t* out) XIO_HOST_SYMBOL(hipStreamCreate);
XIO_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* out, unsigned flags)
    XIO_HOST_SYMBOL(hipStreamCreateWithFlags);
XIO_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) XIO_HOST_SYMBOL(hipStreamDestroy);
XIO_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) XIO_HOST_SYMBOL(hipStreamSynchronize);
XIO_EXPORT hipError_t hipStreamQuery(hipStream_t stream) XIO_HOST_SYMBOL(hipStreamQuery);
XIO_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags = 0)
    XIO_HOST_SYMBOL(hipStreamWaitEvent);
XIO_EXPORT hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void* argument)
    XIO_HOST_SYMBOL(hipLaunchHostFunc);
XIO_EXPORT hipError_t hipEventCreate(hipEvent_t* out) XIO_HOST_SYMBOL(hipEventCreate);
XIO_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned flags) XIO_HOST_SYMBOL(hipEventCreateWithFlags);
XIO_EXPORT hipError_t hipEventDestroy(hipEvent_t event) XIO_HOST_SYMBOL(hipEventDestroy);
XIO_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr) XIO_HOST_SYMBOL(hipEventRecord);
XIO_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) XIO_HOST_SYMBOL(hipEventSynchronize);
XIO_EXPORT hipError_t hipEventQuery(hipEvent_t event) XIO_HOST_SYMBOL(hipEventQuery);
XIO_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop)
    XIO_HOST_SYMBOL(hipEventElapsedTime);

// --- Captures and graphs -----------------------------------------------------------------------------

// Work of a captured stream, and of streams that wait for its events, becomes a graph. A graph's work is done in the
// order in which it was captured, without a host thread. Meanwhile calls that allocate, wait, or copy at once are
// refused, as HIP and CUDA do, and end the capture.
enum hipStreamCaptureMode { hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed };
enum hipStreamCaptureStatus {
  hipStreamCaptureStatusNone,
  hipStreamCaptureStatusActive,
  hipStreamCaptureStatusInvalidated
};
struct ihipGraph;
struct hipGraphExec;
using hipGraph_t = ihipGraph*;
using hipGraphExec_t = hipGraphExec*;

XIO_EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
    XIO_HOST_SYMBOL(hipStreamBeginCapture);
XIO_EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* out) XIO_HOST_SYMBOL(hipStreamEndCapture);
XIO_EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* out)
    XIO_HOST_SYMBOL(hipStreamIsCapturing);
XIO_EXPORT hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode)
    XIO_HOST_SYMBOL(hipThreadExchangeStreamCaptureMode);
XIO_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* out, hipGraph_t graph, unsigned long long flags)
    XIO_HOST_SYMBOL(hipGraphInstantiateWithFlags);
XIO_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) XIO_HOST_SYMBOL(hipGraphLaunch);
XIO_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t exec) XIO_HOST_SYMBOL(hipGraphExecDestroy);
XIO_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) XIO_HOST_SYMBOL(hipGraphDestroy);

// Of a kernel that was compiled for the host there is nothing to say, and nothing to load.
struct hipFuncAttributes {
  int maxThreadsPerBlock, numRegs;
};
inline hipError_t hipFuncGetAttributes(hipFuncAttributes* out, const void*) {
  *out = {1024, 0};
  return hipSuccess;
}

// --- Launches ----------------------------------------------------------------------------------------

// Every GPU thread calls run(kernel); destroy(kernel) is called once, also when the launch fails. Null: no memory for
// it.
XIO_EXPORT hipError_t xio_host_launch(dim3 grid, dim3 block, std::size_t shared_bytes, hipStream_t stream,
                                      void (*run)(void*), void* kernel, void (*destroy)(void*)) XIO_HOST_SYMBOL(launch);

// `kernel` is called with copies of the arguments: the types that they have here choose among overloads, and are
// deduced from for a template, as in a launch of HIP.
template <class Kernel, class... Arguments>
hipError_t xio_host_launch_kernel(Kernel kernel, dim3 grid, dim3 block, std::size_t shared_bytes, hipStream_t stream,
                                  Arguments&&... arguments) {
  struct call {
    Kernel kernel;
    std::tuple<std::decay_t<Arguments>...> arguments;
  };
  auto* const made =
      new (std::nothrow) call{kernel, std::tuple<std::decay_t<Arguments>...>(std::forward<Arguments>(arguments)...)};
  return xio_host_launch(
      grid, block, shared_bytes, stream,
      [](void* c) { std::apply(static_cast<const call*>(c)->kernel, static_cast<const call*>(c)->arguments); }, made,
      [](void* c) { delete static_cast<call*>(c); });
}

#define HIP_KERNEL_NAME(...) __VA_ARGS__
// A function of its own for each launch, because overloads and templates cannot be passed as a value.
#define hipLaunchKernelGGL(kernel, ...) \
  xio_host_launch_kernel([=](const auto&... xio_argument) { kernel(xio_argument...); }, __VA_ARGS__)
