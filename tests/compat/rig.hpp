// SPDX-License-Identifier: MIT
// What the programs of this folder share. They are written for rocSHMEM: its header, its names, and the verdict here.
#pragma once
#include <rocshmem/rocshmem.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace rocshmem;

namespace rig {

inline int failures = 0, checks = 0;
inline void expect(bool good, const char* what, long long got, long long wanted) {
  ++checks;
  if (good || ++failures > 10) return;
  std::fprintf(stderr, "FAIL PE %d: %s: %lld, expected %lld\n", rocshmem_my_pe(), what, got, wanted);
}

inline void must(hipError_t error) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "%s\n", hipGetErrorString(error));
  std::exit(2);
}

// Symmetric, with a value in every byte.
template <class T>
T* symmetric(std::size_t count, int byte) {
  T* block = static_cast<T*>(rocshmem_malloc(count * sizeof(T)));
  if (block == nullptr) std::exit(2);
  must(hipMemset(block, byte, count * sizeof(T)));
  must(hipDeviceSynchronize());
  return block;
}
template <class T>
std::vector<T> read(const T* block, std::size_t count) {
  std::vector<T> out(count);
  must(hipMemcpy(out.data(), block, count * sizeof(T), hipMemcpyDeviceToHost));
  return out;
}
#define RUN(kernel, blocks, threads, ...)                                             \
  do {                                                                                \
    hipLaunchKernelGGL(kernel, dim3(blocks), dim3(threads), 0, nullptr, __VA_ARGS__); \
    rig::must(hipDeviceSynchronize());                                                \
  } while (0)

// Ends the program. No call of a kernel may have failed.
inline int verdict(const char* program) {
  const int me = rocshmem_my_pe(), n = rocshmem_n_pes();
  rocshmem_barrier_all();
  expect(rocshmem_status() == XIO_OK, "the status that was kept", rocshmem_status(), XIO_OK);
  rocshmem_finalize();
  std::printf("%s: PE %d of %d: %d checks, %d failed\n", program, me, n, checks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace rig
