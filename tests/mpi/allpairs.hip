// SPDX-License-Identifier: MIT
// Every PE puts a block to every PE, with barriers between the rounds. Small and quick: what is tried here is many PEs.
#include "rig.hpp"

namespace {

constexpr uint32_t k_words = 512;
constexpr uint32_t k_rounds = 3;

__global__ void all_pairs(xio_ctx_t ctx, uint64_t* in, uint64_t* out, int me, int n, uint32_t* wrong, int* bad) {
  const uint32_t lane = threadIdx.x, step = blockDim.x;
  for (uint64_t round = 1; round <= k_rounds; ++round) {
    for (uint32_t i = lane; i < k_words; i += step) out[i] = round << 32 | static_cast<uint64_t>(me) << 16 | i;
    __syncthreads();
    for (int pe = static_cast<int>(lane); pe < n; pe += static_cast<int>(step)) {
      // Not all to the same one at the same time.
      const int to = (pe + me) % n;
      if (xio_put(ctx, in + static_cast<uint64_t>(me) * k_words, out, k_words * sizeof *out, to) != XIO_OK) *bad = 1;
    }
    if (xio_barrier_all_wg(ctx) != XIO_OK) *bad = 2;
    for (int pe = 0; pe < n; ++pe) {
      for (uint32_t i = lane; i < k_words; i += step) {
        const uint64_t found = *static_cast<volatile uint64_t*>(in + static_cast<uint64_t>(pe) * k_words + i);
        if (found != (round << 32 | static_cast<uint64_t>(pe) << 16 | i)) atomicAdd(wrong, 1u);
      }
    }
    if (xio_sync_all_wg(ctx) != XIO_OK) *bad = 3;
  }
}

}  // namespace

int main() {
  const rig::team t;
  auto* in = t.symmetric<uint64_t>(static_cast<size_t>(t.n) * k_words);
  auto* out = t.symmetric<uint64_t>(k_words);
  const rig::device_array<uint32_t> wrong(1);
  rig::expect_steps(t, "all pairs", all_pairs, 1, 16, t.ctx, in, out, t.me, t.n, wrong.data());
  rig::expect(wrong.get()[0] == 0, "all pairs: %u words wrong", wrong.get()[0]);
  return rig::verdict("allpairs", t);
}
