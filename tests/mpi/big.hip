// SPDX-License-Identifier: MIT
// One put and one get of 4 GiB + 1 byte, by every scope and at odd addresses: sizes that 32 bits cannot hold.
// Wants 9 GiB of heap on one PE; run.sh asks the machine first.
#include <cstdint>
#include <vector>

#include "rig.hpp"

namespace {

constexpr uint64_t k_big = (uint64_t{4} << 30) + 1;
constexpr uint64_t k_room = k_big + 64;

XIO_HOST_DEVICE unsigned char big_pattern(uint64_t i) {
  const uint64_t x = (i / 8 + 1) * 0x9e3779b97f4a7c15ull;
  return static_cast<unsigned char>(x >> (56 - 8 * (i % 8)));
}

__global__ void fill(unsigned char* to, uint64_t bytes, bool with_pattern) {
  const uint64_t me = blockIdx.x * blockDim.x + threadIdx.x, count = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t at = me * 4096; at < bytes; at += count * 4096)
    for (uint64_t i = at; i < at + 4096 && i < bytes; ++i) to[i] = with_pattern ? big_pattern(i) : rig::k_poison;
}

__global__ void check(const unsigned char* got, uint64_t shift, uint64_t* wrong) {
  const uint64_t me = blockIdx.x * blockDim.x + threadIdx.x, count = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  uint64_t bad = 0;
  for (uint64_t at = me * 4096; at < k_room; at += count * 4096) {
    for (uint64_t i = at; i < at + 4096 && i < k_room; ++i) {
      const bool inside = i >= shift && i < shift + k_big;
      bad += got[i] != (inside ? big_pattern(i - shift + 1) : rig::k_poison);
    }
  }
  if (bad != 0) atomicAdd(reinterpret_cast<unsigned long long*>(wrong), static_cast<unsigned long long>(bad));
}

__global__ void put_big(xio_ctx_t ctx, unsigned char* dst, const unsigned char* src, int pe, int* status) {
  *status = xio_put_wg(ctx, dst, src, k_big, pe);
}
__global__ void get_big(xio_ctx_t ctx, unsigned char* dst, const unsigned char* src, int pe, int* status) {
  *status = xio_get(ctx, dst, src, k_big, pe);
}

}  // namespace

int main() {
  rig::options o;
  o.heap_bytes = 2 * k_room + (64 << 20);
  const rig::team t(o);
  auto* dst = t.symmetric<unsigned char>(k_room);
  auto* src = t.symmetric<unsigned char>(k_room);
  const int pe = (t.me + 1) % t.n;
  RUN(fill, 4, 64, src, k_room, true);
  for (const bool by_put : {true, false}) {
    const uint64_t shift = by_put ? 3 : 1;
    const rig::device_array<int> status(1);
    const rig::device_array<uint64_t> wrong(1);
    RUN(fill, 4, 64, dst, k_room, false);
    t.barrier();
    if (by_put)
      RUN(put_big, 1, 64, t.ctx, dst + shift, src + 1, pe, status.data());
    else
      RUN(get_big, 1, 1, t.ctx, dst + shift, src + 1, pe, status.data());
    t.barrier();
    RUN(check, 4, 64, dst, shift, wrong.data());
    const char* what = by_put ? "put of 4 GiB + 1" : "get of 4 GiB + 1";
    rig::expect_status(static_cast<xio_status_t>(status.get()[0]), XIO_OK, what);
    rig::expect(wrong.get()[0] == 0, "%s: %llu bytes wrong", what, static_cast<unsigned long long>(wrong.get()[0]));
  }
  return rig::verdict("big", t, false);
}
