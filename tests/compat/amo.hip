// SPDX-License-Identifier: MIT
// Atomics: standard, extended and bitwise, and that none is lost when all threads of all PEs add at once.
#include "rig.hpp"

namespace {

constexpr int k_threads = 64;

__global__ void everybody(unsigned long long* sum, int* count) {
  rocshmem_ulonglong_atomic_add(sum, threadIdx.x + 1, 0);
  rocshmem_int_atomic_inc(count, 0);
  rocshmem_quiet();
}

// Old values in order, on the word of PE `to` that nobody else changes.
__global__ void one(uint64_t* word, float* real, uint64_t* old, float* old_real, int to) {
  int k = 0;
  old[k++] = rocshmem_uint64_atomic_swap(word, 12, to);
  old[k++] = rocshmem_uint64_atomic_fetch_add(word, 30, to);
  old[k++] = rocshmem_uint64_atomic_fetch_inc(word, to);
  old[k++] = rocshmem_uint64_atomic_compare_swap(word, 1, 99, to);
  old[k++] = rocshmem_uint64_atomic_compare_swap(word, 43, 0xf0, to);
  old[k++] = rocshmem_uint64_atomic_fetch_and(word, 0x3c, to);
  old[k++] = rocshmem_uint64_atomic_fetch_or(word, 0x03, to);
  old[k++] = rocshmem_uint64_atomic_fetch_xor(word, 0xff, to);
  rocshmem_uint64_atomic_and(word, 0xfe, to);
  rocshmem_quiet();
  old[k++] = rocshmem_uint64_atomic_fetch(word, to);
  rocshmem_uint64_atomic_or(word, 0x01, to);
  rocshmem_quiet();
  rocshmem_uint64_atomic_xor(word, 0x10, to);
  rocshmem_quiet();
  old[k++] = rocshmem_uint64_atomic_fetch(word, to);
  rocshmem_float_atomic_set(real, 2.5f, to);
  rocshmem_quiet();
  old_real[0] = rocshmem_float_atomic_swap(real, -1.0f, to);
  old_real[1] = rocshmem_float_atomic_fetch(real, to);
}

}  // namespace

int main() {
  rocshmem_init();
  const int n = rocshmem_n_pes(), me = rocshmem_my_pe();
  auto* sum = rig::symmetric<unsigned long long>(1, 0);
  auto* count = rig::symmetric<int>(1, 0);
  auto* word = rig::symmetric<uint64_t>(1, 0);
  auto* real = rig::symmetric<float>(1, 0);
  auto* old = rig::symmetric<uint64_t>(10, 0);
  auto* old_real = rig::symmetric<float>(2, 0);
  rocshmem_barrier_all();
  RUN(everybody, 2, k_threads, sum, count);
  RUN(one, 1, 1, word, real, old, old_real, (me + 1) % n);
  rocshmem_barrier_all();
  if (me == 0) {
    const long long threads = 2ll * n * k_threads, total = threads * (k_threads + 1) / 2;
    const auto got = static_cast<long long>(rig::read(sum, 1)[0]);
    rig::expect(got == total, "sum", got, total);
    rig::expect(rig::read(count, 1)[0] == threads, "count", rig::read(count, 1)[0], threads);
  }
  const long long wanted[] = {0, 12, 42, 43, 43, 0xf0, 0x30, 0x33, 0xcc, 0xdd};
  const auto got = rig::read(old, 10);
  for (int i = 0; i < 10; ++i)
    rig::expect(static_cast<long long>(got[i]) == wanted[i], "old value", static_cast<long long>(got[i]), wanted[i]);
  const auto reals = rig::read(old_real, 2);
  rig::expect(reals[0] == 2.5f && reals[1] == -1.0f, "float", static_cast<long long>(reals[0]), 2);
  return rig::verdict("amo");
}
