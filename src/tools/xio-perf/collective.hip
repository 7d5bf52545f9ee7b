// SPDX-License-Identifier: MIT
// Calls of all PEs and of teams. A sample is a number of calls, one behind the other, of PE 0.
#include "tools/xio-perf/reduction.hpp"

namespace xio::perf {
namespace {

// How one kind of caller calls what has no data.
#define XIO_PERF_SYNCS(name, suffix)                                                           \
  template <test_id Id>                                                                        \
  XIO_DEVICE xio_status_t call(const name&, const team_work& w) {                              \
    if constexpr (Id == test_id::barrier) return xio_barrier_all##suffix(w.ctx);               \
    if constexpr (Id == test_id::sync) return xio_sync_all##suffix(w.ctx);                     \
    if constexpr (Id == test_id::team_barrier) return xio_team_barrier##suffix(w.ctx, w.team); \
    if constexpr (Id == test_id::team_sync) return xio_team_sync##suffix(w.ctx, w.team);       \
  }
XIO_PERF_SYNCS(by_thread, )
XIO_PERF_SYNCS(by_wave, _wave)
XIO_PERF_SYNCS(by_block, _wg)
#undef XIO_PERF_SYNCS

// And what has.
#define XIO_PERF_MOVES(name, suffix)                                                                               \
  template <test_id Id>                                                                                            \
  XIO_DEVICE xio_status_t move(const name&, const team_work& w, const operands& o) {                               \
    if constexpr (Id == test_id::alltoall) return xio_alltoall##suffix(w.ctx, w.team, o.dst, o.src, o.bytes);      \
    if constexpr (Id == test_id::fcollect) return xio_fcollect##suffix(w.ctx, w.team, o.dst, o.src, o.bytes);      \
    if constexpr (Id == test_id::collect) return xio_collect##suffix(w.ctx, w.team, o.dst, o.src, o.bytes);        \
    if constexpr (Id == test_id::broadcast) return xio_broadcast##suffix(w.ctx, w.team, o.dst, o.src, o.bytes, 0); \
    if constexpr (Id == test_id::alltoallv)                                                                        \
      return xio_alltoallv##suffix(w.ctx, w.team, o.dst, w.offsets, w.lengths, o.src, w.offsets, w.lengths);       \
  }
XIO_PERF_MOVES(by_wave, _wave)
XIO_PERF_MOVES(by_block, _wg)
#undef XIO_PERF_MOVES

constexpr std::uint64_t k_checked_syncs = 8;

template <class Scope, test_id Id>
__global__ void synchronise(team_work w) {
  if (!keep(w, batched(w, [&] { return call<Id>(Scope{}, w); }))) return;
  // Whether they are barriers: what was put before one is there after it, and before a sync what is complete.
  const auto g = Scope::group::here();
  for (std::uint64_t i = 1; i <= k_checked_syncs; ++i) {
    if (g.leader()) {
      keep(w, xio_p<std::uint64_t>(w.ctx, &w.shared->mark, w.base + i, w.peer));
      if (Id == test_id::sync || Id == test_id::team_sync) keep(w, xio_quiet(w.ctx));
    }
    if (!keep(w, call<Id>(Scope{}, w))) return;
    const auto seen = dev::load<dev::scope::system, dev::order::relaxed>(&w.shared->mark);
    if (g.leader() && seen != w.base + i) *w.bad += 1;
    if (!keep(w, call<Id>(Scope{}, w))) return;
  }
}

template <class Scope, test_id Id>
__global__ void exchange(team_work w) {
  const operands o = operands::of(w);
  keep(w, batched(w, [&] { return move<Id>(Scope{}, w, o); }));
}

template <test_id Id>
void launch_sync(scope s, unsigned threads, const team_work& w) {
  XIO_PERF_BY_SCOPE(s, dim3(1), threads_of(s, threads), synchronise, Id)
}

template <test_id Id>
void launch_exchange(scope s, unsigned threads, const team_work& w) {
  if (s == scope::wave) {
    XIO_PERF_LAUNCH(dim3(1), dim3(threads), exchange<by_wave, Id>);
  } else {
    XIO_PERF_LAUNCH(dim3(1), dim3(threads), exchange<by_block, Id>);
  }
}

}  // namespace

void launch_collective(test_id id, scope s, unsigned threads, const team_work& w) {
  switch (id) {
    case test_id::barrier: return launch_sync<test_id::barrier>(s, threads, w);
    case test_id::sync: return launch_sync<test_id::sync>(s, threads, w);
    case test_id::team_barrier: return launch_sync<test_id::team_barrier>(s, threads, w);
    case test_id::team_sync: return launch_sync<test_id::team_sync>(s, threads, w);
    case test_id::alltoall: return launch_exchange<test_id::alltoall>(s, threads, w);
    case test_id::alltoallv: return launch_exchange<test_id::alltoallv>(s, threads, w);
    case test_id::fcollect: return launch_exchange<test_id::fcollect>(s, threads, w);
    case test_id::collect: return launch_exchange<test_id::collect>(s, threads, w);
    case test_id::broadcast: return launch_exchange<test_id::broadcast>(s, threads, w);
    case test_id::reduce:
      return s == scope::wave ? launch_reduce_by_wave(threads, w) : launch_reduce_by_block(threads, w);
    default: return s == scope::wave ? launch_scatter_by_wave(threads, w) : launch_scatter_by_block(threads, w);
  }
}

}  // namespace xio::perf
