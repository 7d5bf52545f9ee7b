// SPDX-License-Identifier: MIT
// bad_access freed|unmapped|trap|spin|unwritten|own_lane|memory: a kernel that does what none should.
#include <hip/hip_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

__global__ void touch(std::uint32_t* at) { at[threadIdx.x] = 1; }
__global__ void trap() { __builtin_trap(); }
__global__ void spin(const std::uint32_t* flag, std::uint32_t* running) {
  __hip_atomic_store(running, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0) __builtin_amdgcn_s_sleep(1);
}

#if defined(__AMDGCN__)
// The register is the kernel's, and nothing has written it.
__global__ void store_unwritten(std::uint32_t* at) {
  asm volatile("global_store_dword %0, v60, off" ::"v"(at + threadIdx.x) : "v60", "memory");
}
#else
__global__ void store_unwritten(std::uint32_t*) {}
#endif
// The lane that has the lock cannot give it back before the others have left the loop.
__global__ void lock_by_lane(std::uint32_t* lock) {
  while (atomicCAS(lock, 0u, 1u) != 0) {
  }
  lock[1] += 1;
  atomicExch(lock, 0u);
}

// Takes memory until there is none, gives one piece back, and has the GPU write to it. The first kernel is run before
// that: it takes a queue, threads and a decoder, for which no address may be left.
int take_all() {
  constexpr std::size_t k_piece = 64 << 20;
  void *last = nullptr, *one = nullptr;
  if (hipMalloc(&one, k_piece) != hipSuccess) return 3;
  touch<<<1, 64>>>(static_cast<std::uint32_t*>(one));
  hipError_t end = hipDeviceSynchronize();
  if (end != hipSuccess) return 3;
  int pieces = 0;
  for (; pieces < 4096 && (end = hipMalloc(&one, k_piece)) == hipSuccess; ++pieces) last = one;
  std::printf("%d pieces: %s\n", pieces, hipGetErrorName(end));
  static_cast<void>(hipGetLastError());
  if (end != hipErrorOutOfMemory || last == nullptr || hipFree(last) != hipSuccess) return 3;
  if (hipMalloc(&one, k_piece) != hipSuccess) return 3;
  touch<<<1, 64>>>(static_cast<std::uint32_t*>(one));
  return hipDeviceSynchronize() == hipSuccess ? 0 : 1;
}

// Says when the kernel runs: the host sees this memory while it does.
void tell_that_it_spins(const std::uint32_t* running) {
  while (__atomic_load_n(running, __ATOMIC_RELAXED) == 0) usleep(1000);
  std::puts("the kernel spins");
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "memory") == 0) return take_all();
  std::uint32_t *memory = nullptr, *running = nullptr;
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
    if (hipHostMalloc(reinterpret_cast<void**>(&running), sizeof *running, hipHostMallocCoherent) != hipSuccess)
      return 3;
    *running = 0;
    spin<<<1, 64>>>(memory, running);
  } else if (std::strcmp(what, "unwritten") == 0) {
    store_unwritten<<<1, 64>>>(memory);
  } else if (std::strcmp(what, "own_lane") == 0) {
    alarm(10);  // it has no end
    lock_by_lane<<<1, 64>>>(memory);
  } else {
    std::puts("bad_access freed|unmapped|trap|spin|unwritten|own_lane|memory");
    return 2;
  }
  // HIP before 5.7 ends the process where the program has no code for this GPU.
  if (const hipError_t begun = hipGetLastError(); begun != hipSuccess) {
    std::printf("the kernel did not begin: %s\n", hipGetErrorName(begun));
    return 1;
  }
  if (running != nullptr) tell_that_it_spins(running);
  const hipError_t end = hipDeviceSynchronize();
  std::printf("the kernel ended: %s\n", hipGetErrorString(end));
  return end == hipSuccess ? 0 : 1;
}
