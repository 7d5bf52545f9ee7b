// SPDX-License-Identifier: MIT
// Puts with signals in three scopes, waits and tests, fences, contexts of workgroups and of the host, and addresses.
#include "rig.hpp"

namespace {

constexpr int k_count = 100, k_blocks = 3;

// Every workgroup sends on a context of its own, and waits for the same of its left neighbour.
__global__ void signals(int* dst, int* source, uint64_t* sig, int* bad, int to, int from) {
  __shared__ rocshmem_ctx_t ctx;
  rocshmem_wg_init();
  if (rocshmem_wg_ctx_create(ROCSHMEM_CTX_WG_PRIVATE, &ctx) != ROCSHMEM_SUCCESS) *bad = 1;
  int* mine = dst + blockIdx.x * k_count;
  uint64_t* flag = sig + blockIdx.x;
  if (rocshmem_ctx_n_pes(ctx) != rocshmem_n_pes() || rocshmem_ctx_my_pe(ctx) != rocshmem_my_pe()) *bad = 2;
  if (blockIdx.x == 0) rocshmem_ctx_int_put_signal_wg(ctx, mine, source, k_count, flag, 7, ROCSHMEM_SIGNAL_SET, to);
  if (blockIdx.x == 1)
    rocshmem_ctx_putmem_signal_nbi_wg(ctx, mine, source, k_count * sizeof(int), flag, 7, ROCSHMEM_SIGNAL_ADD, to);
  if (blockIdx.x == 2 && threadIdx.x == 0) {
    rocshmem_ctx_int_put_nbi(ctx, mine, source, k_count, to);
    rocshmem_ctx_fence(ctx);
    rocshmem_signal_op(flag, 7, ROCSHMEM_SIGNAL_SET, to);
  }
  // The last block's signal is of the default context: its data may still be on the way until quiet.
  rocshmem_ctx_quiet(ctx);
  if (threadIdx.x == 0) {
    if (rocshmem_signal_wait_until(flag, ROCSHMEM_CMP_GE, 7) != 7 || rocshmem_signal_fetch(flag) != 7) *bad = 3;
    for (int i = 0; blockIdx.x < 2 && i < k_count; ++i)
      if (mine[i] != 1000 * from + i) *bad = 4;
  }
  __syncthreads();
  rocshmem_wg_ctx_destroy(&ctx);
  rocshmem_wg_finalize();
}

__global__ void waits(short* words, double* real, int* bad, int to) {
  const int leave_out[4] = {0, 1, 0, 0};
  short values[4] = {11, 0, 13, 14};
  size_t indices[4];
  if (rocshmem_short_test(words, ROCSHMEM_CMP_NE, 0) != 0) *bad = 1;
  rocshmem_barrier_all();
  for (short i = 0; i < 4; ++i) rocshmem_short_p(words + i, static_cast<short>(11 + i), to);
  rocshmem_double_p(real, 0.5, to);
  rocshmem_short_wait_until(words + 3, ROCSHMEM_CMP_EQ, 14);
  rocshmem_double_wait_until(real, ROCSHMEM_CMP_GE, 0.5);
  rocshmem_short_wait_until_all(words, 4, leave_out, ROCSHMEM_CMP_GT, 10);
  rocshmem_short_wait_until_all_vector(words, 4, leave_out, ROCSHMEM_CMP_EQ, values);
  if (rocshmem_short_wait_until_any(words, 4, leave_out, ROCSHMEM_CMP_GE, 12) != 2) *bad = 2;
  if (rocshmem_short_wait_until_some(words, 4, indices, leave_out, ROCSHMEM_CMP_GE, 12) != 2 || indices[1] != 3)
    *bad = 3;
  values[0] = 99;
  if (rocshmem_short_wait_until_any_vector(words, 4, leave_out, ROCSHMEM_CMP_EQ, values) != 2) *bad = 4;
  if (rocshmem_short_wait_until_some_vector(words, 4, indices, leave_out, ROCSHMEM_CMP_EQ, values) != 2) *bad = 5;
  rocshmem_quiet();
}

__global__ void host_context(rocshmem_ctx_t ctx, int* word, int to) {
  rocshmem_ctx_int_p(ctx, word, 77, to);
  rocshmem_ctx_quiet(ctx);
  rocshmem_barrier_all_wg();
}

}  // namespace

int main() {
  const int early_pe = rocshmem_my_pe(), early_n = rocshmem_n_pes();
  rocshmem_init();
  rig::expect(early_pe == rocshmem_my_pe(), "PE before init", early_pe, rocshmem_my_pe());
  rig::expect(early_n == rocshmem_n_pes(), "PEs before init", early_n, rocshmem_n_pes());
  const int n = rocshmem_n_pes(), me = rocshmem_my_pe(), right = (me + 1) % n, left = (me + n - 1) % n;
  auto* dst = rig::symmetric<int>(k_blocks * k_count, 0);
  auto* source = rig::symmetric<int>(k_count, 0);
  auto* sig = rig::symmetric<uint64_t>(k_blocks, 0);
  auto* words = rig::symmetric<short>(4, 0);
  auto* real = rig::symmetric<double>(1, 0);
  auto* bad = rig::symmetric<int>(1, 0);
  std::vector<int> mine(k_count);
  for (int i = 0; i < k_count; ++i) mine[i] = 1000 * me + i;
  rig::must(hipMemcpy(source, mine.data(), k_count * sizeof(int), hipMemcpyHostToDevice));
  rocshmem_barrier_all();
  RUN(signals, k_blocks, 96, dst, source, sig, bad, right, left);
  rig::expect(rig::read(bad, 1)[0] == 0, "signals: step", rig::read(bad, 1)[0], 0);
  rocshmem_barrier_all();
  const auto came = rig::read(dst, k_blocks * k_count);
  for (int i = 0; i < k_blocks * k_count; ++i)
    rig::expect(came[i] == 1000 * left + i % k_count, "data", came[i], 1000 * left + i % k_count);
  RUN(waits, 1, 1, words, real, bad, right);
  rig::expect(rig::read(bad, 1)[0] == 0, "waits: step", rig::read(bad, 1)[0], 0);
  rocshmem_barrier_all();
  rocshmem_ctx_t ctx;
  rig::expect(rocshmem_ctx_create(0, &ctx) == ROCSHMEM_SUCCESS, "a context of the host", 1, 0);
  RUN(host_context, 1, 1, ctx, bad, right);
  rig::expect(rig::read(bad, 1)[0] == 77, "by a context of the host", rig::read(bad, 1)[0], 77);
  rocshmem_ctx_destroy(ctx);
  rig::expect(rocshmem_ptr(bad, me) == bad, "own address", 0, 1);
  rig::expect(rocshmem_team_n_pes(ROCSHMEM_TEAM_WORLD) == n, "PEs of the world", 0, n);
  return rig::verdict("waits");
}
