// SPDX-License-Identifier: MIT
// What the host's side of examples takes from HIP, and atomics of their kernels: declared only, so that a clang without
// HIP compiles the kernels. Beside hip/hip_runtime.h of this folder, by -include.
#pragma once
#include <cstddef>
#include <cstdlib>  // before clang's wrapper of <new>, which calls malloc

#include "hip/hip_runtime.h"

enum hipError_t { hipSuccess };
enum hipMemcpyKind { hipMemcpyHostToDevice, hipMemcpyDeviceToHost };
struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1);
};
hipError_t hipHostMalloc(void** block, std::size_t bytes, unsigned flags);
hipError_t hipHostFree(void* block);
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind);
hipError_t hipDeviceSynchronize();
const char* hipGetErrorString(hipError_t error);
template <class Kernel, class... Arguments>
void hipLaunchKernelGGL(Kernel, Arguments&&...) {}

STUB_DEVICE int atomicCAS(int* at, int expected, int desired) {
  __hip_atomic_compare_exchange_strong(at, &expected, desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
STUB_DEVICE unsigned long long atomicAdd(unsigned long long* at, unsigned long long operand) {
  return __hip_atomic_fetch_add(at, operand, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
