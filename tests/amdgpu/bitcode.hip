// SPDX-License-Identifier: MIT
// The bitcode of python/xio/_device.hip in a kernel, as Triton's kernels have it: by its symbols, with the ctx as a
// word.
#include <xio/stream.h>

#include "../mpi/rig.hpp"

extern "C" {
__device__ int xio_bc_my_pe(uint64_t);
__device__ uint64_t xio_bc_ptr(uint64_t, uint64_t, int);
__device__ int xio_bc_put_wg(uint64_t, uint64_t, uint64_t, uint64_t, int);
__device__ int xio_bc_get_wg(uint64_t, uint64_t, uint64_t, uint64_t, int);
__device__ int xio_bc_put_signal_wg(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, int, int);
__device__ int xio_bc_signal_op_wg(uint64_t, uint64_t, uint64_t, int, int);
__device__ int xio_bc_signal_wait_wg(uint64_t, uint64_t, int, uint64_t);
__device__ int xio_bc_fence_wg(uint64_t);
__device__ int xio_bc_quiet_wg(uint64_t);
__device__ int xio_bc_barrier_all_wg(uint64_t);
__device__ uint64_t xio_bc_atomic_fetch_add(uint64_t, uint64_t, uint64_t, int);
}

namespace {

constexpr int k_ints = 1000;
struct shared {
  int box[k_ints], mine[k_ints], back[k_ints];
  uint64_t sig[2], count;
};

constexpr int k_threads = 256;
// threadIdx is a call of a library that is not linked beside another one.
__device__ int thread() { return __builtin_amdgcn_workitem_id_x(); }
__device__ uint64_t word(const void* p) { return reinterpret_cast<uint64_t>(p); }

__global__ void calls(uint64_t ctx, shared* s, int me, int to, int* status) {
  for (int i = thread(); i < k_ints; i += k_threads) s->mine[i] = 1000 * me + i;
  int st[10];
  st[0] = xio_bc_put_signal_wg(ctx, word(s->box), word(s->mine), sizeof s->mine, word(s->sig), 5, XIO_SIGNAL_SET, to);
  st[1] = xio_bc_signal_wait_wg(ctx, word(s->sig), XIO_CMP_EQ, 5);
  st[2] = xio_bc_quiet_wg(ctx);
  st[3] = xio_bc_barrier_all_wg(ctx);
  st[4] = xio_bc_get_wg(ctx, word(s->back), word(s->box), sizeof s->back, to);
  st[5] = xio_bc_signal_op_wg(ctx, word(s->sig + 1), 3, XIO_SIGNAL_ADD, to);
  st[6] = xio_bc_fence_wg(ctx);
  st[7] = xio_bc_signal_wait_wg(ctx, word(s->sig + 1), XIO_CMP_GE, 3);
  if (thread() == 0) xio_bc_atomic_fetch_add(ctx, word(&s->count), 7, to);
  st[8] = xio_bc_barrier_all_wg(ctx);
  st[9] = xio_bc_put_wg(0, word(s->box), word(s->mine), 4, to) - XIO_ERR_STATE;
  if (thread() == 0)
    for (int i = 0; i < 10; ++i) status[i] = st[i];
  if (thread() == 0) status[10] = xio_bc_my_pe(ctx) - me;
}

}  // namespace

int main() {
  {
    const rig::team team;
    const int to = (team.me + 1) % team.n, from = (team.me + team.n - 1) % team.n;
    auto* s = team.symmetric<shared>(1);
    const xio_ctx_t* at = nullptr;
    MUST(xio_ctx_device(team.world(), team.ctx, &at));
    const rig::device_array<int> status(11);
    RUN(calls, 1, k_threads, reinterpret_cast<uint64_t>(at), s, team.me, to, status.data());
    for (const int one : status.get()) rig::expect(one == 0, "a call: %d", one);
    const shared seen = rig::team::read(s, 1)[0];
    for (int i = 0; i < k_ints; ++i) {
      rig::expect(seen.box[i] == 1000 * from + i, "int %d of the box", i);
      rig::expect(seen.back[i] == 1000 * team.me + i, "int %d that came back", i);
    }
    rig::expect(seen.count == 7, "the count is %llu", static_cast<unsigned long long>(seen.count));
  }
  std::printf("bitcode: %d failed\n", rig::failures);
  return rig::failures == 0 ? 0 : 1;
}
