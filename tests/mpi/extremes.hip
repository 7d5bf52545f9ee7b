// SPDX-License-Identifier: MIT
// min and max reduces of floats that are no numbers, have no size, or have a sign and nothing else, against IEEE
// 754-2019 minimum and maximum: every value at every member with every other, for each type and way of a reduce. All
// checks are of bits, for this file is compiled with -ffast-math as well.
#include <xio/team.h>

#include "rig.hpp"

namespace {

// The bits of a format with one sign bit and `fraction` bits of fraction.
template <class T>
struct format;
template <>
struct format<float> {
  using bits = uint32_t;
  static constexpr int fraction = 23;
};
template <>
struct format<double> {
  using bits = uint64_t;
  static constexpr int fraction = 52;
};
template <>
struct format<xio_half_t> {
  using bits = uint16_t;
  static constexpr int fraction = 10;
};
template <>
struct format<xio_bfloat16_t> {
  using bits = uint16_t;
  static constexpr int fraction = 7;
};
template <class T>
using bits_of = typename format<T>::bits;

constexpr int k_values = 11;

// +0, the smallest, 1.0 or so, the largest, infinity, quiet NaNs with and without a payload: with either sign but one.
template <class T>
__host__ __device__ bits_of<T> value(int which) {
  constexpr uint64_t one = uint64_t{1}, sign = one << (sizeof(T) * 8 - 1),
                     infinity = sign - (one << format<T>::fraction);
  constexpr uint64_t quiet = one << (format<T>::fraction - 1);
  const uint64_t sizes[] = {0, 1, infinity / 2, infinity - 1, infinity, infinity | quiet | 3};
  return static_cast<bits_of<T>>(which == 10 ? infinity | quiet : sizes[which / 2] | (which % 2 == 0 ? 0 : sign));
}

// Element i at member pe: the members' values are the digits of i, so that all combinations come by.
template <class T>
__host__ __device__ bits_of<T> element(size_t i, int pe) {
  for (; pe > 0; --pe) i /= k_values;
  return value<T>(static_cast<int>(i % k_values));
}

template <class T>
__device__ bool is_nan(bits_of<T> x) {
  constexpr auto sign = static_cast<bits_of<T>>(uint64_t{1} << (sizeof(T) * 8 - 1));
  return (x & static_cast<bits_of<T>>(~sign)) > value<T>(8);
}

// Whether x is less than y: by sign, and then by the rest, which grows with the size. Of numbers only.
template <class T>
__device__ bool is_less(bits_of<T> x, bits_of<T> y) {
  const bool x_negative = x >> (sizeof(T) * 8 - 1) != 0, y_negative = y >> (sizeof(T) * 8 - 1) != 0;
  if (x_negative != y_negative) return x_negative;
  return x_negative ? y < x : x < y;
}

// Whether `found` is what IEEE 754-2019 and docs/teams.md ask for: a NaN of one of the members if there is one.
template <xio_reduction Op, class T>
__device__ bool is_right(bits_of<T> found, size_t i, int n) {
  bits_of<T> best = element<T>(i, 0);
  bool nan = is_nan<T>(best), had = false;
  for (int pe = 0; pe < n; ++pe) {
    const bits_of<T> x = element<T>(i, pe);
    nan = nan || is_nan<T>(x);
    had = had || x == found;
    if (Op == xio_reduction::min ? is_less<T>(x, best) : is_less<T>(best, x)) best = x;
  }
  return nan ? is_nan<T>(found) && had : found == best;
}

template <xio_reduction Op, class T>
__global__ void reduces(xio_ctx_t ctx, xio_team_t t, T* dst, T* src, uint64_t* sums, size_t count, bool scatter,
                        int* bad) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  auto* const in = reinterpret_cast<bits_of<T>*>(src);
  auto* const out = reinterpret_cast<bits_of<T>*>(dst);
  const size_t all = scatter ? count * static_cast<size_t>(n) : count;
  for (size_t i = threadIdx.x; i < all; i += blockDim.x) in[i] = element<T>(i, me);
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) out[i] = 0x55;
  __syncthreads();
  if (xio_team_barrier_wg(ctx, t) != XIO_OK) *bad = 1;
  const xio_status_t s =
      scatter ? xio_reduce_scatter_wg<Op, T>(ctx, t, dst, src, count) : xio_reduce_wg<Op, T>(ctx, t, dst, src, count);
  if (s != XIO_OK) *bad = 2;
  const size_t first = scatter ? count * static_cast<size_t>(me) : 0;
  for (size_t i = threadIdx.x; i < count; i += blockDim.x)
    if (!is_right<Op, T>(out[i], first + i, n)) *bad = 3;
  __syncthreads();
  // The same bits at all members, of NaNs too.
  if (threadIdx.x == 0 && !scatter) {
    sums[n] = 0;
    for (size_t i = 0; i < count; ++i) sums[n] = sums[n] * 31 + out[i];
  }
  if (xio_fcollect_wg(ctx, t, sums, sums + n, sizeof *sums) != XIO_OK) *bad = 4;
  for (int m = 0; m < n && !scatter; ++m)
    if (sums[m] != sums[n]) *bad = 5;
}

template <xio_reduction Op, class T>
void all_ways(const rig::team& t, xio_team_t team, unsigned char* room, const char* name) {
  auto* const sums = reinterpret_cast<uint64_t*>(room);
  unsigned char* const dst = room + 4096;
  // Packets, parts, shares or rounds; the last two not in whole words, and once from an odd place on.
  for (const size_t count : {size_t{3}, size_t{121}, size_t{1331}, size_t{15001}})
    for (const bool scatter : {false, true}) {
      const size_t shift = count == 1331 ? sizeof(T) : 0;
      auto* const to = reinterpret_cast<T*>(dst + shift);
      const std::string what = rig::text("%s of %zu %s, %s", Op == xio_reduction::min ? "min" : "max", count, name,
                                         scatter ? "scattered" : "whole");
      rig::expect_steps(t, what, reduces<Op, T>, 1, 64, t.ctx, team, to, to + 15104, sums, count, scatter);
    }
}

template <class T>
void both(const rig::team& t, xio_team_t team, unsigned char* room, const char* name) {
  all_ways<xio_reduction::min, T>(t, team, room, name);
  all_ways<xio_reduction::max, T>(t, team, room, name);
}

}  // namespace

int main() {
  // Small, so that the largest goes in shares or rounds.
  setenv("XIO_TEAM_AREA", "16k", 0);
  const rig::team t;
  xio_team_t team{};
  MUST(xio_team_world(t.world(), &team));
  auto* const room = t.symmetric<unsigned char>(8192 + 15104 * 8 * static_cast<size_t>(t.n + 1));
  both<float>(t, team, room, "floats");
  both<double>(t, team, room, "doubles");
  both<xio_half_t>(t, team, room, "halves");
  both<xio_bfloat16_t>(t, team, room, "bfloat16s");
  return rig::verdict("extremes", t);
}
