// SPDX-License-Identifier: MIT
// bad_access freed|unmapped|trap|spin: a kernel that does what none should.
#include <hip/hip_runtime.h>
#include <sys/mman.h>

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
  } else if (std::strcmp(what, "unmapped") == 0) {
    constexpr std::size_t k_bytes = 1 << 20;
    void* const mine = mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* there = nullptr;
    if (mine == MAP_FAILED || hipHostRegister(mine, k_bytes, hipHostRegisterMapped) != hipSuccess ||
        hipHostGetDevicePointer(&there, mine, 0) != hipSuccess || munmap(mine, k_bytes) != 0)
      return 3;
    touch<<<1, 64>>>(static_cast<std::uint32_t*>(there));
  } else if (std::strcmp(what, "trap") == 0) {
    trap<<<1, 64>>>();
  } else if (std::strcmp(what, "spin") == 0) {
    spin<<<1, 64>>>(memory);
  } else {
    std::puts("bad_access freed|unmapped|trap|spin");
    return 2;
  }
  const hipError_t end = hipDeviceSynchronize();
  std::printf("the kernel ended: %s\n", hipGetErrorString(end));
  return end == hipSuccess ? 0 : 1;
}
