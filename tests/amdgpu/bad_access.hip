// SPDX-License-Identifier: MIT
// bad_access freed|trap|spin: a kernel that does what none should.
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

__global__ void touch(std::uint32_t* at) { at[threadIdx.x] = 1; }
__global__ void trap() { __builtin_trap(); }
__global__ void spin(const std::uint32_t* flag) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0) __builtin_amdgcn_s_sleep(1);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  std::uint32_t* memory = nullptr;
  if (hipMalloc(&memory, 8 << 20) != hipSuccess || hipMemset(memory, 0, 8 << 20) != hipSuccess) return 3;
  if (std::strcmp(what, "freed") == 0) {
    if (hipFree(memory) != hipSuccess) return 3;
    touch<<<1, 64>>>(memory);
  } else if (std::strcmp(what, "trap") == 0) {
    trap<<<1, 64>>>();
  } else if (std::strcmp(what, "spin") == 0) {
    spin<<<1, 64>>>(memory);
  } else {
    std::puts("bad_access freed|trap|spin");
    return 2;
  }
  const hipError_t end = hipDeviceSynchronize();
  std::printf("the kernel ended: %s\n", hipGetErrorString(end));
  return end == hipSuccess ? 0 : 1;
}
