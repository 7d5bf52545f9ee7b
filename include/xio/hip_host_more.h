// SPDX-License-Identifier: MIT
// HIP on CPU threads: calls for machines with several GPUs, occupancy, and launches by arrays of arguments, so that
// programs which use them compile and go on. There is one device, and a thread of the CPU for each of its
// multiprocessors. Included by <xio/hip.h>.
#pragma once
#include <cstring>
#include <utility>

#include "xio/hip_host.h"

// --- Peers: there are none ---------------------------------------------------------------------------

inline hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return hipErrorInvalidValue;
  *can = 0;
  return device == 0 && peer == 0 ? hipSuccess : hipErrorInvalidDevice;
}
inline hipError_t hipDeviceEnablePeerAccess(int, unsigned) { return hipErrorInvalidDevice; }
inline hipError_t hipDeviceDisablePeerAccess(int) { return hipErrorInvalidDevice; }
inline hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  if (to_device != 0 || from_device != 0) return hipErrorInvalidDevice;
  return hipMemcpy(to, from, bytes, hipMemcpyDefault);
}

// --- Symbols -----------------------------------------------------------------------------------------

#define HIP_SYMBOL(name) name
template <class T>
hipError_t hipMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                             hipMemcpyKind = hipMemcpyHostToDevice) {
  if (offset > sizeof symbol || bytes > sizeof symbol - offset) return hipErrorInvalidValue;
  std::memcpy(reinterpret_cast<char*>(&const_cast<std::remove_const_t<T>&>(symbol)) + offset, from, bytes);
  return hipSuccess;
}
template <class T>
hipError_t hipMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                               hipMemcpyKind = hipMemcpyDeviceToHost) {
  if (offset > sizeof symbol || bytes > sizeof symbol - offset) return hipErrorInvalidValue;
  std::memcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes);
  return hipSuccess;
}

// --- Occupancy: a multiprocessor runs one workgroup --------------------------------------------------

template <class Kernel>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* out, Kernel, int block_size, std::size_t) {
  if (out == nullptr || block_size < 1 || block_size > 1024) return hipErrorInvalidValue;
  *out = 1;
  return hipSuccess;
}
template <class Kernel>
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel, std::size_t = 0, int limit = 0) {
  if (grid == nullptr || block == nullptr) return hipErrorInvalidValue;
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  return hipDeviceGetAttribute(grid, hipDeviceAttributeMultiprocessorCount, 0);
}

// --- Launches by an array of pointers to the arguments -----------------------------------------------

template <class... Parameters>
hipError_t hipLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                           std::size_t shared_bytes, hipStream_t stream) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return xio_host_launch_kernel(kernel, grid, block, shared_bytes, stream,
                                  *static_cast<std::remove_reference_t<Parameters>*>(arguments[I])...);
  }
  (std::index_sequence_for<Parameters...>{});
}

// All workgroups have to run at the same time.
template <class... Parameters>
hipError_t hipLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                      unsigned shared_bytes, hipStream_t stream) {
  int most = 0;
  if (const hipError_t e = hipDeviceGetAttribute(&most, hipDeviceAttributeMultiprocessorCount, 0); e != hipSuccess)
    return e;
  if (std::uint64_t{grid.x} * grid.y * grid.z > static_cast<std::uint64_t>(most))
    return hipErrorCooperativeLaunchTooLarge;
  return hipLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
