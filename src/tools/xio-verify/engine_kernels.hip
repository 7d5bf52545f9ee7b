// SPDX-License-Identifier: MIT
#include <xio/hip.h>
#include <xio/xio_device.hpp>

#include "tools/xio-verify/engine.hpp"

namespace xio::verify {
namespace {

__device__ inline void keep(const engine_work& w, xio_status_t status) {
  int none = XIO_OK;
  if (status != XIO_OK)
    dev::compare_exchange<dev::scope::agent, dev::order::relaxed>(&w.result->status, none, static_cast<int>(status));
}

__device__ inline int right(const engine_work& w) { return (w.me + 1) % w.n; }
__device__ inline int left(const engine_work& w) { return (w.me + w.n - 1) % w.n; }

__device__ inline xio_status_t copy(const engine_work& w, bool get, caller who) {
  if (who == caller::thread)
    return get ? xio_get(w.ctx, w.dst, w.src, w.bytes, right(w)) : xio_put(w.ctx, w.dst, w.src, w.bytes, right(w));
  if (who == caller::wave)
    return get ? xio_get_wave(w.ctx, w.dst, w.src, w.bytes, right(w))
               : xio_put_wave(w.ctx, w.dst, w.src, w.bytes, right(w));
  return get ? xio_get_wg(w.ctx, w.dst, w.src, w.bytes, right(w)) : xio_put_wg(w.ctx, w.dst, w.src, w.bytes, right(w));
}

__device__ inline xio_req_t start_copy(const engine_work& w, bool get, caller who) {
  if (who == caller::thread)
    return get ? xio_get_nbi(w.ctx, w.dst, w.src, w.bytes, right(w))
               : xio_put_nbi(w.ctx, w.dst, w.src, w.bytes, right(w));
  if (who == caller::wave)
    return get ? xio_get_nbi_wave(w.ctx, w.dst, w.src, w.bytes, right(w))
               : xio_put_nbi_wave(w.ctx, w.dst, w.src, w.bytes, right(w));
  return get ? xio_get_nbi_wg(w.ctx, w.dst, w.src, w.bytes, right(w))
             : xio_put_nbi_wg(w.ctx, w.dst, w.src, w.bytes, right(w));
}

// One thread, one wave or one workgroup.
__global__ void copies(engine_work w, bool get, bool blocking, caller who) {
  if (blocking) {
    keep(w, copy(w, get, who));
  } else {
    (void)start_copy(w, get, who);
  }
  keep(w, xio_quiet(w.ctx));
}

__device__ inline xio_status_t send(const engine_work& w, flag_by how, std::uint64_t turn) {
  const std::size_t bytes = k_message_words * sizeof(std::uint64_t);
  if (how == flag_by::put_signal)
    return xio_put_signal(w.ctx, w.dst, w.src, bytes, &w.words->flag, turn, XIO_SIGNAL_SET, right(w));
  (void)xio_put_nbi(w.ctx, w.dst, w.src, bytes, right(w));
  if (const xio_status_t status = xio_fence(w.ctx); status != XIO_OK) return status;
  return how == flag_by::fence_and_value ? xio_p<std::uint64_t>(w.ctx, &w.words->flag, turn, right(w))
                                         : xio_atomic_add<std::uint64_t>(w.ctx, &w.words->flag, 1, right(w));
}

// One thread. The words that were sent last are read first; the next turn begins when the reader has done.
__global__ void messages(engine_work w, flag_by how) {
  auto* out = reinterpret_cast<std::uint64_t*>(w.src);
  const auto* in = reinterpret_cast<const std::uint64_t*>(w.dst);
  for (std::uint64_t turn = 1; turn <= w.turns && w.result->status == XIO_OK; ++turn) {
    for (std::uint32_t i = 0; i < k_message_words; ++i) out[i] = turn * 1000 + i;
    keep(w, send(w, how, turn));
    keep(w, xio_wait_until(w.ctx, &w.words->flag, XIO_CMP_EQ, turn));
    for (std::uint32_t i = k_message_words; i-- > 0;) w.result->wrong += in[i] != turn * 1000 + i ? 1 : 0;
    keep(w, xio_quiet(w.ctx));
    keep(w, xio_signal_op(w.ctx, &w.words->turn, turn, XIO_SIGNAL_SET, left(w)));
    keep(w, xio_signal_wait_until(w.ctx, &w.words->turn, XIO_CMP_GE, turn));
  }
}

// One thread. x is what the even PE of a pair writes, y what the odd one writes; each lies with the other. misses of
// the even PE: [turn][which of the pair].
__global__ void buffering(engine_work w) {
  const int odd = w.me % 2, other = w.me ^ 1;
  if (other >= w.n) return;
  std::uint64_t* mine = odd == 0 ? &w.words->x : &w.words->y;
  std::uint64_t* theirs = odd == 0 ? &w.words->y : &w.words->x;
  for (std::uint64_t turn = 1; turn <= w.turns && w.result->status == XIO_OK; ++turn) {
    keep(w, xio_p<std::uint64_t>(w.ctx, mine, turn, other));
    keep(w, xio_quiet(w.ctx));
    const bool missed = xio_atomic_fetch<std::uint64_t>(w.ctx, theirs, w.me) < turn;
    keep(w, xio_p<std::uint64_t>(w.ctx, w.misses + 2 * (turn - 1) + odd, missed ? 1 : 0, w.me & ~1));
    keep(w, xio_quiet(w.ctx));
    keep(w, xio_signal_op(w.ctx, &w.words->turn, turn, XIO_SIGNAL_SET, other));
    keep(w, xio_signal_wait_until(w.ctx, &w.words->turn, XIO_CMP_GE, turn));
  }
}

// The sum of what was found is that of 0, 1, .. only if no two threads found the same and no add was lost.
__global__ void additions(engine_work w) {
  const auto found = xio_atomic_fetch_add<std::uint64_t>(w.ctx, &w.words->total, 1, 0);
  keep(w, xio_atomic_add<std::uint64_t>(w.ctx, &w.words->sum, found, 0));
  keep(w, xio_quiet(w.ctx));
}

const char* finished() {
  hipError_t e = hipGetLastError();
  if (e == hipSuccess) e = hipDeviceSynchronize();
  return e == hipSuccess ? nullptr : hipGetErrorString(e);
}

unsigned threads_of(caller who) {
  if (who == caller::thread) return 1;
  int lanes = 64, device = 0;
  if (hipGetDevice(&device) == hipSuccess) (void)hipDeviceGetAttribute(&lanes, hipDeviceAttributeWarpSize, device);
  return static_cast<unsigned>(who == caller::wave ? lanes : 3 * lanes);
}

}  // namespace

const char* run_copy(const engine_work& w, bool get, bool blocking, caller who) {
  hipLaunchKernelGGL(copies, dim3(1), dim3(threads_of(who)), 0, nullptr, w, get, blocking, who);
  return finished();
}

const char* run_messages(const engine_work& w, flag_by how) {
  hipLaunchKernelGGL(messages, dim3(1), dim3(1), 0, nullptr, w, how);
  return finished();
}

const char* run_buffering(const engine_work& w) {
  hipLaunchKernelGGL(buffering, dim3(1), dim3(1), 0, nullptr, w);
  return finished();
}

const char* run_adds(const engine_work& w) {
  hipLaunchKernelGGL(additions, dim3(k_groups), dim3(k_threads), 0, nullptr, w);
  return finished();
}

}  // namespace xio::verify
