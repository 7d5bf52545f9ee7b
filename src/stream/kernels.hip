// SPDX-License-Identifier: MIT
// libxio's own kernels: one for each family of calls, by a number. Each op is that of xio_device.hpp, by every route;
// nothing is done here a second time.
#include <xio/hip.h>

#include "gpu/gpu.hpp"
#include "stream/job.hpp"
#include "stream/steps.hpp"

namespace xio::stream {
namespace {

using dev::ctx_of;
using dev::ctx_view;
using dev::order;
using dev::scope;
using dev::u32;
using dev::u64;
using dev::workgroup_group;

// A kernel has its own copy of all that it calls, and is compiled for the most registers that one of its calls needs.
enum family : u32 { copies, barriers, moves, reduces, drives, moves_by_many, reduces_by_many };

__host__ __device__ constexpr family family_of(const job& j, bool by_many) {
  return j.what < call::quiet      ? copies
         : j.what < call::alltoall ? barriers
         : j.what < call::reduce   ? (by_many ? moves_by_many : moves)
         : j.what < call::read     ? (by_many ? reduces_by_many : reduces)
                                   : drives;
}

// This workgroup's part of a copy.
struct part {
  u64 at, bytes;
};
__device__ part part_of(u64 bytes) {
  const u64 each = (bytes / gridDim.x + 127) / 128 * 128, at = each * blockIdx.x;
  if (at >= bytes) return {0, 0};
  return {at, blockIdx.x + 1 == gridDim.x || bytes - at < each ? bytes - at : each};
}

template <class Body>
__device__ xio_status_t by_one(Body&& body) {
  return dev::by_leader(workgroup_group::here(), [&] { return dev::posted{0, body()}; }).status;
}

// Waits with the deadline of the call.
struct stay {
  template <class Done, class Late>
  __device__ xio_status_t operator()(const xio_ctx_t& c, Done&& done, Late&& late) const {
    u64 since = 0;
    const auto then = [&] {
      dev::watched();
      return dev::hdp_flush(c);
    };
    return dev::poll_since<0>(c, &since, dev::timed_queues{}, done, then, late);
  }
};
__device__ xio_status_t wait(const xio_ctx_t& c, const job& j, int cmp) {
  const u64* sig = j.sig;
  return dev::until<stay, u64>(c, sig, cmp, j.value, nullptr, dev::call_kind::signal_wait_until);
}

__device__ xio_status_t take(const xio_ctx_t& c, const job& j) {
  const xio_status_t come = wait(c, j, XIO_CMP_GE);
  u64 old = 0;
  return come != XIO_OK ? come
                        : dev::change<dev::amo::add, true>(c, j.sig, u64{0} - j.value, u64{0}, xio_my_pe(c), &old);
}

// An atomic that is complete on return; `dst` gets the word as it was.
__device__ xio_status_t change(const xio_ctx_t& c, const job& j) {
  using dev::amo;
  u64 old = 0;
  xio_status_t status = XIO_OK;
  switch (j.what) {
    case call::atomic_fetch: status = dev::change<amo::fetch, true>(c, j.sig, u64{0}, u64{0}, j.pe, &old); break;
    case call::atomic_set:
      status = dev::just_change<amo::set>(c, j.sig, j.value, j.pe);
      if (status == XIO_OK) status = xio_quiet(c);
      break;
    case call::atomic_fetch_add: status = dev::change<amo::add, true>(c, j.sig, j.value, u64{0}, j.pe, &old); break;
    case call::atomic_swap: status = dev::change<amo::set, true>(c, j.sig, j.value, u64{0}, j.pe, &old); break;
    default: status = dev::change<amo::compare_swap, true>(c, j.sig, j.value, j.bytes, j.pe, &old); break;
  }
  dev::store<scope::system, order::relaxed>(static_cast<u64*>(j.dst), old);
  return status;
}

// Behind the ops to that PE that come before it in the stream.
__device__ xio_status_t signal(const xio_ctx_t& c, const job& j) {
  const xio_status_t before = xio_fence_pe(c, j.pe);
  return before != XIO_OK ? before : xio_signal_op(c, j.sig, j.value, static_cast<xio_signal_op_t>(j.how), j.pe);
}

__device__ xio_status_t copy(const xio_ctx_t& c, const job& j) {
  const part mine = part_of(j.bytes);
  unsigned char* dst = static_cast<unsigned char*>(j.dst) + mine.at;
  const unsigned char* src = static_cast<const unsigned char*>(j.src) + mine.at;
  switch (j.what) {
    case call::report: return XIO_OK;
    case call::put: return xio_put_wg(c, dst, src, mine.bytes, j.pe);
    case call::get: return xio_get_wg(c, dst, src, mine.bytes, j.pe);
    case call::put_signal:
      return xio_put_signal_wg(c, j.dst, j.src, j.bytes, j.sig, j.value, static_cast<xio_signal_op_t>(j.how), j.pe);
    case call::signal_op: return by_one([&] { return signal(c, j); });
    case call::signal_wait: return by_one([&] { return wait(c, j, static_cast<int>(j.how)); });
    case call::signal_take: return by_one([&] { return take(c, j); });
    default: return by_one([&] { return change(c, j); });
  }
}

__device__ xio_status_t synchronise(const xio_ctx_t& c, const xio_team_t& t, const job& j) {
  switch (j.what) {
    case call::quiet: return xio_quiet_wg(c);
    case call::barrier_all: return xio_barrier_all_wg(c);
    case call::sync_all: return xio_sync_all_wg(c);
    case call::team_barrier: return xio_team_barrier_wg(c, t);
    default: return xio_team_sync_wg(c, t);
  }
}

// A call by many workgroups.
__device__ dev::teams::stated_move stated(const job& j) {
  using dev::teams::blocks_of, dev::teams::k_all_send, dev::teams::tag_of;
  using dev::teams::op;
  const dev::call_copy a{j.dst, j.src, j.bytes};
  if (j.what == call::alltoall)
    return {op::alltoall, tag_of(op::alltoall, a.bytes), blocks_of(a, false, a.bytes, k_all_send)};
  if (j.what == call::fcollect)
    return {op::fcollect, tag_of(op::fcollect, a.bytes), blocks_of(a, true, a.bytes, k_all_send)};
  const u32 root = static_cast<u32>(j.pe);
  return {op::broadcast, tag_of(op::broadcast, a.bytes, root), blocks_of(a, true, 0, root)};
}
__device__ void share_of_move(const xio_ctx_t& c, const xio_team_t& t, const job& j) {
  const part mine = part_of(j.bytes);
  if (mine.bytes != 0) dev::teams::store_slice(workgroup_group::here(), c, t, stated(j).b, mine.at, mine.bytes);
}

__device__ xio_status_t move(const xio_ctx_t& c, const xio_team_t& t, const job& j) {
  switch (j.what) {
    case call::alltoall: return xio_alltoall_wg(c, t, j.dst, j.src, j.bytes);
    case call::alltoallv:
      return xio_alltoallv_wg(c, t, j.dst, j.tables[0], j.tables[1], j.src, j.tables[2], j.tables[3]);
    case call::fcollect: return xio_fcollect_wg(c, t, j.dst, j.src, j.bytes);
    case call::collect: return xio_collect_wg(c, t, j.dst, j.src, j.bytes);
    default: return xio_broadcast_wg(c, t, j.dst, j.src, j.bytes, j.pe);
  }
}

__device__ dev::teams::reduce_job reduce_of(const xio_team_t& t, const job& j) {
  return {static_cast<unsigned char*>(j.dst),
          static_cast<const unsigned char*>(j.src),
          j.bytes,
          t.n_pes,
          j.what == call::reduce_scatter,
          j.how};
}
__device__ void share_of_reduce(const xio_ctx_t& c, const xio_team_t& t, const job& j) {
  const dev::teams::reduce_job r = reduce_of(t, j);
  const auto all = dev::teams::share_of(t, r);
  const part mine = part_of(all.bytes);
  if (mine.bytes == 0) return;
  dev::teams::combine_share<dev::teams::k_by_kind, dev::vec16>(workgroup_group::here(), c, t, r,
                                                               {all.from + mine.at, mine.bytes});
}

__device__ xio_status_t reduce(const xio_ctx_t& c, const xio_team_t& t, const job& j) {
  return dev::teams::reduce_by_kind(workgroup_group::here(), c, t, reduce_of(t, j));
}

__device__ xio_status_t transfer(const xio_ctx_t& c, const job& j) {
  switch (j.what) {
    case call::read: return xio_read_wg(c, j.dst, j.storage, j.value, j.bytes);
    case call::write: return xio_write_wg(c, j.src, j.storage, j.value, j.bytes);
    default: return xio_storage_sync_wg(c, j.storage);
  }
}

// Where the first failure stays that ends the launches after it: the ctx's word, or that of one call of the host.
__device__ u32* mark_of(const ctx_view& c, const job& j) {
  return j.mark != nullptr ? j.mark : const_cast<u32*>(&c.stream_failed);
}
__device__ void keep(const ctx_view& c, xio_status_t status, const job& j) {
  u32 none = 0;
  const u32 word = static_cast<u32>(static_cast<int>(status));
  if (!dev::compare_exchange<scope::agent, order::relaxed>(mark_of(c, j), none, word)) return;
  // A graph may be replayed once too often: the host's word ends with the ctx.
  if (j.failed != nullptr && !dev::is_gone(c)) dev::store<scope::system, order::release>(j.failed, word);
}

__device__ xio_status_t failure_before(const ctx_view& c, const job& j) {
  return by_one([&] {
    return static_cast<xio_status_t>(static_cast<int>(dev::load<scope::agent, order::relaxed>(mark_of(c, j))));
  });
}

__device__ void report(const ctx_view& c, const job& j, xio_status_t before, xio_status_t status) {
  const workgroup_group g = workgroup_group::here();
  if (status != before && g.leader()) keep(c, status, j);
  if (j.status == nullptr) return;
  g.sync();
  if (g.leader()) dev::store<scope::system, order::release>(reinterpret_cast<int*>(j.status), static_cast<int>(status));
}

template <family F>
__global__ void __launch_bounds__(256) calls(xio_ctx_t c, xio_team_t t, job j) {
  const ctx_view& view = ctx_of(c);
  const xio_status_t before = failure_before(view, j);
  xio_status_t status = before;
  if (before == XIO_OK) {
    if constexpr (F == copies) status = copy(c, j);
    if constexpr (F == barriers) status = synchronise(c, t, j);
    if constexpr (F == moves) status = move(c, t, j);
    if constexpr (F == reduces) status = reduce(c, t, j);
    if constexpr (F == drives) status = transfer(c, j);
  }
  report(view, j, before, status);
}

// 31 bits of what the call is.
__device__ u32 mixed(const job& j) {
  constexpr u64 odd = 0x9e3779b97f4a7c15;
  u64 word = static_cast<u64>(j.what) << 32 | (static_cast<u32>(j.pe) ^ j.how);
  for (const u64 one : {reinterpret_cast<u64>(j.dst), reinterpret_cast<u64>(j.src), u64{j.bytes}})
    word = (word ^ one) * odd;
  return static_cast<u32>(word >> 33);
}
template <family F>
__device__ xio_status_t begin_by_many(const xio_ctx_t& c, const xio_team_t& t, const job& j) {
  const workgroup_group g = workgroup_group::here();
  const xio_status_t before = failure_before(ctx_of(c), j);
  if (before != XIO_OK) return before;
  if constexpr (F == moves_by_many) return dev::teams::begin_move(g, c, t, stated(j));
  return dev::teams::begin_reduce(g, c, t, reduce_of(t, j));
}
// All do as the first workgroup finds: a failure meanwhile on the ctx, by another stream, is not of this call.
template <family F>
__global__ void __launch_bounds__(256) call_by_many(xio_ctx_t c, xio_team_t t, job j) {
  const workgroup_group g = workgroup_group::here();
  const u64 place = dev::teams::come(g, c, t);
  if (place == dev::teams::k_no_team) {
    if (blockIdx.x == 0) report(ctx_of(c), j, XIO_OK, begin_by_many<F>(c, t, j));
    return;
  }
  const u32 call = mixed(j);
  xio_status_t status =
      place != 0 ? dev::teams::wait_found(g, c, t, call) : dev::teams::say_found(g, t, call, begin_by_many<F>(c, t, j));
  if (status == XIO_OK) {
    if constexpr (F == moves_by_many) share_of_move(c, t, j);
    if constexpr (F == reduces_by_many) share_of_reduce(c, t, j);
  }
  if (!dev::teams::leaves_last(g, t, gridDim.x)) return;
  if (status == XIO_OK) {
    if constexpr (F == moves_by_many) status = dev::teams::end_move(g, c, t, stated(j).tag);
    if constexpr (F == reduces_by_many) status = dev::teams::end_reduce(g, c, t, reduce_of(t, j));
  }
  report(ctx_of(c), j, XIO_OK, status);
}
template <family F>
constexpr auto k_kernel = F < moves_by_many ? &calls<F> : &call_by_many<F>;

constexpr auto k_threads_of = [](const job& j, family f) {
  const bool alone = j.what == call::report || (j.what >= call::signal_op && j.what <= call::sync_all);
  if (alone) return 1u;
  // On the host a workgroup shares a CPU.
  if (!dev::k_splits_copies) return f == copies || f >= moves_by_many ? 1u : 8u;
  return j.bytes > 4096 ? 256u : 64u;
};

const char* text_of(hipError_t e) {
  if (e == hipSuccess) return nullptr;
  (void)hipGetLastError();
  return hipGetErrorString(e);
}

// The thread's device, for a thread that has another one.
class on_device {
 public:
  on_device() {
    if (hipGetDevice(&before_) == hipSuccess && before_ != gpu::selected_device())
      changed_ = hipSetDevice(gpu::selected_device()) == hipSuccess;
  }
  on_device& operator=(on_device&&) = delete;
  ~on_device() {
    if (changed_) (void)hipSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

template <family F>
void start(const launch& l) {
  hipLaunchKernelGGL(k_kernel<F>, dim3(l.workgroups), dim3(k_threads_of(l.what, F)), 0,
                     static_cast<hipStream_t>(l.stream), l.ctx, l.team, l.what);
}

template <family F>
hipError_t load() {
  hipFuncAttributes found;
  return hipFuncGetAttributes(&found, reinterpret_cast<const void*>(k_kernel<F>));
}

}  // namespace

const char* refusal_of(const launch& l) {
  const on_device here;
  // An error that the runtime has kept of another call is not this one's.
  (void)hipGetLastError();
  switch (family_of(l.what, l.workgroups > 1)) {
    case copies: start<copies>(l); break;
    case barriers: start<barriers>(l); break;
    case moves: start<moves>(l); break;
    case reduces: start<reduces>(l); break;
    case drives: start<drives>(l); break;
    case moves_by_many: start<moves_by_many>(l); break;
    case reduces_by_many: start<reduces_by_many>(l); break;
  }
  return text_of(hipGetLastError());
}

const char* make_stream(xio_stream_t* out) {
  const on_device here;
  hipStream_t made = nullptr;
  const char* why = text_of(hipStreamCreateWithFlags(&made, hipStreamNonBlocking));
  *out = made;
  return why;
}

const char* load_kernels() {
  const on_device here;
  for (const auto load_one : {&load<copies>, &load<barriers>, &load<moves>, &load<reduces>, &load<drives>,
                              &load<moves_by_many>, &load<reduces_by_many>})
    if (const char* why = text_of(load_one())) return why;
  return nullptr;
}

std::uint32_t most_workgroups() {
  if (!dev::k_splits_copies) return 1;
  static const std::uint32_t most = [] {
    int cus = 0;
    const hipError_t e = hipDeviceGetAttribute(&cus, hipDeviceAttributeMultiprocessorCount, gpu::selected_device());
    return text_of(e) == nullptr && cus > 4 ? static_cast<std::uint32_t>(cus) / 4 : 1u;
  }();
  return most;
}

}  // namespace xio::stream
