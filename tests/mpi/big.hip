// SPDX-License-Identifier: MIT
// One put and one get of 4 GiB + 1 byte, by every scope and at odd addresses: sizes that 32 bits cannot hold.
// Wants 9 GiB of heap on one PE; run.sh asks the machine first.
#include "rig.hpp"

namespace {

constexpr uint64_t k_big = (uint64_t{4} << 30) + 1;
constexpr uint64_t k_room = k_big + 64;

__device__ inline uint64_t big_pattern(uint64_t word) { return (word + 1) * 0x9e3779b97f4a7c15ull; }

// Eight bytes at any address.
__device__ inline uint64_t load_8(const unsigned char* at) {
  uint64_t word;
  __builtin_memcpy(&word, at, sizeof word);
  return word;
}

__global__ void fill(uint64_t* to, bool with_pattern) {
  const uint64_t me = blockIdx.x * blockDim.x + threadIdx.x, count = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t at = me * 512; at < k_room / 8; at += count * 512)
    for (uint64_t i = at; i < at + 512 && i < k_room / 8; ++i)
      to[i] = with_pattern ? big_pattern(i) : 0x0101010101010101ull * rig::k_poison;
}

// Whole words of the copy against the source, its odd last byte, and what lies before and behind it.
__global__ void check(const unsigned char* got, uint64_t shift, const unsigned char* from, uint64_t* wrong) {
  const uint64_t me = blockIdx.x * blockDim.x + threadIdx.x, count = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  uint64_t bad = 0;
  for (uint64_t at = me * 512; at < k_big / 8; at += count * 512)
    for (uint64_t i = at; i < at + 512 && i < k_big / 8; ++i)
      bad += load_8(got + shift + 8 * i) != load_8(from + 8 * i);
  if (me == 0) {
    bad += got[shift + k_big - 1] != from[k_big - 1];
    for (uint64_t i = 0; i < shift; ++i) bad += got[i] != rig::k_poison;
    for (uint64_t i = shift + k_big; i < k_room / 8 * 8; ++i) bad += got[i] != rig::k_poison;
  }
  if (bad != 0) atomicAdd(reinterpret_cast<unsigned long long*>(wrong), rig::ull(bad));
}

__global__ void put_big(xio_ctx_t ctx, unsigned char* dst, const unsigned char* src, int pe, int* status) {
  *status = xio_put_wg(ctx, dst, src, k_big, pe);
}
__global__ void get_big(xio_ctx_t ctx, unsigned char* dst, const unsigned char* src, int pe, int* status) {
  *status = xio_get(ctx, dst, src, k_big, pe);
}

}  // namespace

int main() {
  const rig::team t({.heap_bytes = 2 * k_room + (64 << 20)});
  auto* dst = t.symmetric_raw<unsigned char>(k_room);
  auto* src = t.symmetric_raw<unsigned char>(k_room);
  RUN(fill, 4, 64, reinterpret_cast<uint64_t*>(src), true);
  for (const bool by_put : {true, false}) {
    const uint64_t shift = by_put ? 3 : 1;
    const rig::device_array<uint64_t> wrong(1);
    RUN(fill, 4, 64, reinterpret_cast<uint64_t*>(dst), false);
    t.barrier();
    const int status = by_put ? rig::result_of(put_big, 1, 64, t.ctx, dst + shift, src + 1, t.right)
                              : rig::result_of(get_big, 1, 1, t.ctx, dst + shift, src + 1, t.right);
    t.barrier();
    RUN(check, 4, 64, dst, shift, src + 1, wrong.data());
    const char* what = by_put ? "put of 4 GiB + 1" : "get of 4 GiB + 1";
    rig::expect_status(status, XIO_OK, what);
    rig::expect(wrong.get()[0] == 0, "%s: %llu words wrong", what, rig::ull(wrong.get()[0]));
  }
  return rig::verdict("big", t, false);
}
