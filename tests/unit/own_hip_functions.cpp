// SPDX-License-Identifier: MIT
// hipMalloc, hipFree and hipLaunchKernel of a program's own, under the names that HIP has in C and that C++ makes.
#include "own_hip_functions.hpp"

#include <cstddef>

namespace {

int g_calls = 0;
constexpr int k_mine = 77;  // no error of HIP's

}  // namespace

#define SHOWN __attribute__((visibility("default"), used))
extern "C" {
SHOWN int own_malloc(void**, std::size_t) __asm__("hipMalloc");
SHOWN int own_malloc_of_cxx(void**, std::size_t) __asm__("_Z9hipMallocPPvm");
SHOWN int own_free(void*) __asm__("hipFree");
SHOWN int own_free_of_cxx(void*) __asm__("_Z7hipFreePv");
SHOWN int own_synchronize() __asm__("hipDeviceSynchronize");
SHOWN int own_synchronize_of_cxx() __asm__("_Z20hipDeviceSynchronizev");

int own_malloc(void**, std::size_t) { return ++g_calls, k_mine; }
int own_malloc_of_cxx(void**, std::size_t) { return ++g_calls, k_mine; }
int own_free(void*) { return ++g_calls, k_mine; }
int own_free_of_cxx(void*) { return ++g_calls, k_mine; }
int own_synchronize() { return ++g_calls, k_mine; }
int own_synchronize_of_cxx() { return ++g_calls, k_mine; }
}

const void* own_hip_malloc_of_c() { return reinterpret_cast<const void*>(&own_malloc); }
const void* own_hip_malloc_of_cxx() { return reinterpret_cast<const void*>(&own_malloc_of_cxx); }
int own_hip_calls() { return g_calls; }
int own_hip_call(void** out) { return own_malloc(out, sizeof(int)); }
