// SPDX-License-Identifier: MIT
// Blocks of other sizes for every member, a block of a reduce for each member, numbers of two bytes, and contexts that
// kernels choose by a number.
#include "rig.hpp"

namespace {

// Elements that PE `from` has for PE `to`.
__host__ __device__ int count_of(int from, int to) { return (3 * from + 2 * to) % 5 * 70; }
constexpr int k_most = 4 * 70, k_gap = 3;
template <class T>
__host__ __device__ T value_of(int from, int to, int i) {
  return static_cast<T>(from * 50 + to * 10 + i % 7 + 1);
}

// Blocks lie k_most + k_gap elements apart, at the receiver in the opposite order. numbers: four arrays of n.
template <class T>
__device__ void fill(int me, int n, T* from, std::size_t* numbers) {
  for (int m = static_cast<int>(threadIdx.x); m < n; m += static_cast<int>(blockDim.x)) {
    numbers[m] = static_cast<std::size_t>(count_of(m, me));
    numbers[n + m] = static_cast<std::size_t>((n - 1 - m) * (k_most + k_gap));
    numbers[2 * n + m] = static_cast<std::size_t>(count_of(me, m));
    numbers[3 * n + m] = static_cast<std::size_t>(m * (k_most + k_gap));
    for (int i = 0; i < count_of(me, m); ++i) from[m * (k_most + k_gap) + i] = value_of<T>(me, m, i);
  }
  __syncthreads();
}
#define TYPE(NAME, T)                                                                                    \
  __global__ void varied_##NAME(T* to, T* from, std::size_t* numbers) {                                  \
    const int n = rocshmem_n_pes();                                                                      \
    fill<T>(rocshmem_my_pe(), n, from, numbers);                                                         \
    rocshmem_##NAME##_alltoallv_wg(ROCSHMEM_TEAM_WORLD, to, numbers, numbers + n, from, numbers + 2 * n, \
                                   numbers + 3 * n);                                                     \
  }                                                                                                      \
  void blocks_##NAME(int me, int n) {                                                                    \
    const auto room = static_cast<std::size_t>(n * (k_most + k_gap));                                    \
    T* to = rig::symmetric<T>(room, 0x55);                                                               \
    T* from = rig::symmetric<T>(room, 0);                                                                \
    auto* numbers = rig::symmetric<std::size_t>(static_cast<std::size_t>(4 * n), 0);                     \
    const T guard = rig::read(to, 1)[0];                                                                 \
    rocshmem_barrier_all();                                                                              \
    RUN(varied_##NAME, 1, 96, to, from, numbers);                                                        \
    const auto got = rig::read(to, room);                                                                \
    for (int m = 0; m < n; ++m)                                                                          \
      for (int i = 0; i < k_most + k_gap; ++i) {                                                         \
        const T wanted = i < count_of(m, me) ? value_of<T>(m, me, i) : guard;                            \
        const T found = got[static_cast<std::size_t>((n - 1 - m) * (k_most + k_gap) + i)];               \
        rig::expect(found == wanted, "alltoallv of " #NAME, static_cast<long long>(found),               \
                    static_cast<long long>(wanted));                                                     \
      }                                                                                                  \
    rocshmem_barrier_all();                                                                              \
  }
TYPE(int, int)
TYPE(double, double)
TYPE(uint8, std::uint8_t)

// Member m gets the sums and the largest of element m * count + i.
__global__ void scatters(int* sums, int* most, int* from, int count, int* bad) {
  int status = rocshmem_ctx_int_sum_reduce_scatter_wg(ROCSHMEM_CTX_DEFAULT, ROCSHMEM_TEAM_WORLD, sums, from, count);
  if (threadIdx.x / warpSize == 0)
    status |= rocshmem_ctx_int_max_reduce_scatter_wave(ROCSHMEM_CTX_DEFAULT, ROCSHMEM_TEAM_WORLD, most, from, count);
  if (status != ROCSHMEM_SUCCESS) *bad = 1;
}
void scattered(int me, int n) {
  for (const int count : {1, 100, 3000}) {
    const auto all = static_cast<std::size_t>(n * count), one = static_cast<std::size_t>(count);
    int *from = rig::symmetric<int>(all, 0), *sums = rig::symmetric<int>(one + 1, 0x55);
    int *most = rig::symmetric<int>(one + 1, 0x55), *bad = rig::symmetric<int>(1, 0);
    std::vector<int> mine;
    for (int i = 0; i < n * count; ++i) mine.push_back((me + 1) * 1000 + i);
    rig::must(hipMemcpy(from, mine.data(), all * sizeof(int), hipMemcpyHostToDevice));
    rocshmem_barrier_all();
    RUN(scatters, 1, 96, sums, most, from, count, bad);
    const auto s = rig::read(sums, one + 1), m = rig::read(most, one + 1);
    for (int i = 0; i < count; ++i) {
      const int sum = n * (n + 1) / 2 * 1000 + n * (me * count + i), largest = n * 1000 + me * count + i;
      rig::expect(s[static_cast<std::size_t>(i)] == sum, "sum by reduce_scatter", s[static_cast<std::size_t>(i)], sum);
      rig::expect(m[static_cast<std::size_t>(i)] == largest, "max by reduce_scatter", m[static_cast<std::size_t>(i)],
                  largest);
    }
    rig::expect(s[one] == 0x55555555 && m[one] == 0x55555555, "behind the end", s[one], 0x55555555);
    rig::expect(rig::read(bad, 1)[0] == 0, "status of reduce_scatter", 1, 0);
    rocshmem_barrier_all();
  }
}

// 1.0 is 3c00h as binary16 and 3f80h as bfloat16, and the sums of up to 4 ones are 4000h, 4200h, 4400h, and 4000h,
// 4040h, 4080h.
__global__ void ones(rocshmem_half_t* h, rocshmem_bfloat16_t* b) {
  rocshmem_half_sum_reduce_wg(ROCSHMEM_TEAM_WORLD, h + 1, h, 1);
  rocshmem_bfloat16_sum_reduce_wg(ROCSHMEM_TEAM_WORLD, b + 1, b, 1);
  rocshmem_half_fcollect_wg(ROCSHMEM_TEAM_WORLD, h + 2, h, 1);
}
void two_bytes(int n) {
  auto* h = rig::symmetric<rocshmem_half_t>(static_cast<std::size_t>(n) + 2, 0);
  auto* b = rig::symmetric<rocshmem_bfloat16_t>(2, 0);
  const rocshmem_half_t one{0x3c00};
  const rocshmem_bfloat16_t other{0x3f80};
  rig::must(hipMemcpy(h, &one, sizeof one, hipMemcpyHostToDevice));
  rig::must(hipMemcpy(b, &other, sizeof other, hipMemcpyHostToDevice));
  rocshmem_barrier_all();
  RUN(ones, 1, 64, h, b);
  constexpr int halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400}, brains[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
  const auto got = rig::read(h, static_cast<std::size_t>(n) + 2);
  rig::expect(got[1].bits == halves[n], "ones as half", got[1].bits, halves[n]);
  rig::expect(rig::read(b, 2)[1].bits == brains[n], "ones as bfloat16", rig::read(b, 2)[1].bits, brains[n]);
  for (int m = 0; m < n; ++m)
    rig::expect(got[static_cast<std::size_t>(m) + 2].bits == 0x3c00, "fcollect of half", got[2].bits, 0x3c00);
  rocshmem_barrier_all();
}

// Workgroup i puts through context i, and what it has put is there behind that context's quiet. One that is not there
// does nothing.
__global__ void by_number(int* to, int* from, int n, int* bad) {
  const rocshmem_ctx_t ctx = rocshmem_ctx_array[blockIdx.x];
  const int me = rocshmem_my_pe(), blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  if (threadIdx.x != 0) return;
  for (int pe = 0; pe < n; ++pe) rocshmem_ctx_int_put_nbi(ctx, to + me * blocks + block, from + block, 1, pe);
  rocshmem_ctx_quiet(ctx);
  for (int pe = 0; pe < n; ++pe)
    if (rocshmem_ctx_int_g(ctx, to + me * blocks + block, pe) != me * 100 + block) *bad = 1;
  if (rocshmem_ctx_array[32].ctx_opaque != ROCSHMEM_CTX_INVALID.ctx_opaque) *bad = 2;
}
void contexts(int me, int n) {
  constexpr int blocks = 6;
  int *to = rig::symmetric<int>(static_cast<std::size_t>(n) * blocks, 0), *bad = rig::symmetric<int>(1, 0);
  int* from = rig::symmetric<int>(blocks, 0);
  std::vector<int> mine;
  for (int i = 0; i < blocks; ++i) mine.push_back(me * 100 + i);
  rig::must(hipMemcpy(from, mine.data(), sizeof(int) * blocks, hipMemcpyHostToDevice));
  rocshmem_barrier_all();
  RUN(by_number, blocks, 64, to, from, n, bad);
  rocshmem_barrier_all();
  const auto got = rig::read(to, static_cast<std::size_t>(n) * blocks);
  for (int pe = 0; pe < n; ++pe)
    for (int i = 0; i < blocks; ++i)
      rig::expect(got[static_cast<std::size_t>(pe * blocks + i)] == pe * 100 + i, "a context by its number",
                  got[static_cast<std::size_t>(pe * blocks + i)], pe * 100 + i);
  rig::expect(rig::read(bad, 1)[0] == 0, "step of contexts by number", rig::read(bad, 1)[0], 0);
}

}  // namespace

int main() {
  rocshmem_init();
  const int n = rocshmem_n_pes(), me = rocshmem_my_pe();
  blocks_int(me, n);
  blocks_double(me, n);
  blocks_uint8(me, n);
  scattered(me, n);
  two_bytes(n);
  contexts(me, n);
  return rig::verdict("varied");
}
