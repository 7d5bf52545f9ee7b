// SPDX-License-Identifier: MIT
// How fence, quiet and barrier are done.
#pragma once
#include <type_traits>

#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/hdp.hpp"
#include "xio/device/impl/signal.hpp"

namespace xio::dev {

// --- Fence -------------------------------------------------------------------------------------------

// One queue keeps its order by itself. Only where ops to a PE can overtake each other on different engines or queues
// must the earlier ones be complete first.
XIO_DEVICE void fence_peer(const ctx_view& c, const peer_view& p, waited* all) {
  if (takes_several_ways(p)) quiet_queues(p, *c.world, all);
}

XIO_DEVICE xio_status_t fence_all(const ctx_view& c) {
  waited all{0, XIO_OK};
  const bool several = k_has_rings && c.one_way == 0 && load<scope::agent, order::relaxed>(c.used) != 0;
  for (u32 pe = 0; several && pe < c.world->n_pes; ++pe) fence_peer(c, c.peers[pe], &all);
  fence<scope::system, order::release>();
  return all.status;
}
XIO_DEVICE xio_status_t fence_all(const xio_ctx_t& ctx) {
  const ctx_view* c = view_of(ctx);
  return c == nullptr ? XIO_ERR_STATE : fence_all(*c);
}

// Of a PE that is named alone. A ctx without holes is one look at what the kernel was given.
XIO_DEVICE xio_status_t check_pe(const xio_ctx_t& ctx, int pe) {
  if (static_cast<u32>(pe) >= ctx.n_pes) return XIO_ERR_PE;
  const bool holes = (ctx.flags & ctx_has_holes) != 0;
  return holes && is_excluded(ctx_of(ctx).peers[pe].small) ? XIO_ERR_PEER : XIO_OK;
}

XIO_DEVICE xio_status_t fence_one(const xio_ctx_t& ctx, int pe) {
  const ctx_view* c = view_of(ctx);
  if (c == nullptr) return XIO_ERR_STATE;
  if (const xio_status_t wrong = check_pe(ctx, pe); wrong != XIO_OK)
    return ctx_fail(*c, wrong, call_of(call_kind::fence_pe, nullptr, nullptr, 0, pe));
  waited all{0, XIO_OK};
  fence_peer(*c, c->peers[pe], &all);
  fence<scope::system, order::release>();
  return all.status;
}

// --- Quiet -------------------------------------------------------------------------------------------

// Everything has one deadline, see deadline::in.
XIO_DEVICE waited quiet_engines(const ctx_view& c) {
  waited all{0, XIO_OK};
  for_used_rings(c, [&](const ring_view& r) { quiet_next(r, *view_field(c.world), &all); });
  const bool drives = k_has_nvme && load<scope::agent, order::relaxed>(&c.storages_used) != 0;
  if (drives && all.status != XIO_ERR_TIMEOUT) {
    const xio_status_t one = storage_quiet(c, &all.since);
    if (all.status == XIO_OK) all.status = one;
  }
  if (hdp_is_on(c)) [[unlikely]] {
    const xio_status_t one = hdp_flush_all(c, drives);
    if (all.status == XIO_OK) all.status = one;
  }
  return all;
}

// When a barrier behind that quiet began to wait: a fifth of the time is left for members that come a little later,
// also where the quiet has taken all of it.
XIO_DEVICE u64 since_after(const waited& quiet, const xio_ctx_t& ctx) {
  if (quiet.since == 0) return 0;
  const u64 least = deadline_clock() - ticks_of(world_of(ctx), own_timeout_of(ctx)) / 5 * 4;
  return static_cast<i64>(least - quiet.since) > 0 ? least : quiet.since;
}

// With rings, drives, or an error that was kept.
XIO_SLOW_PATH waited quiet_slow(const ctx_view& c) {
  waited all = quiet_engines(c);
  // Sequentially consistent: what the caller reads from now on is read after its stores can be seen.
  fence<scope::system, order::seq_cst>();
  const xio_status_t kept = ctx_take_error(c);
  if (kept != XIO_OK) all.status = kept;
  if (!k_has_rings && is_gone(c)) all.status = XIO_ERR_STATE;
  return all;
}

// Where loads and stores do it all, these words, of one line, are all there is to look at.
struct quiet_words {
  u32 rings, drives, error;

  XIO_DEVICE static quiet_words at(const ctx_view& c) {
    return {load<scope::agent, order::relaxed>(c.used), load<scope::agent, order::relaxed>(&c.storages_used),
            load<scope::agent, order::relaxed>(&c.error)};
  }
  XIO_DEVICE bool finds_more() const { return (rings | drives | error) != 0; }
};

// Fences, and returns whether that was all that there is to do. The look comes back while the fence waits.
template <order Order>
XIO_DEVICE bool fence_is_all(const xio_ctx_t& ctx) {
  if ((ctx.flags & ctx_all_mapped) == 0) [[unlikely]]
    return false;
  quiet_words seen = quiet_words::at(ctx_of(ctx));
  fence<scope::system, Order>();
  not_before(seen.rings), not_before(seen.drives), not_before(seen.error);
  return !seen.finds_more();
}

// Order is that of its fence. A caller that synchronises with the other PEs behind it needs only that its stores come
// first. Slow is quiet_slow, or what calls it.
template <order Order, class Slow>
XIO_DEVICE waited quiet_ctx(const xio_ctx_t& ctx, const Slow& slow) {
  if (fence_is_all<Order>(ctx)) [[likely]]
    return waited{0, XIO_OK};
  return slow(ctx_of(ctx));
}
template <order Order = order::seq_cst>
XIO_DEVICE waited quiet_ctx(const xio_ctx_t& ctx) {
  return quiet_ctx<Order>(ctx, [](const ctx_view& c) { return quiet_slow(c); });
}

XIO_DEVICE xio_status_t quiet_peer(const ctx_view& c, const peer_view& p) {
  waited all{0, XIO_OK};
  quiet_queues(p, *c.world, &all);
  xio_status_t failure = all.status;
  if (failure == XIO_OK && p.rdma != nullptr) failure = hdp_flush(c);
  fence<scope::system, order::seq_cst>();
  const xio_status_t kept = ctx_take_error(c);
  return kept != XIO_OK ? kept : failure;
}

// By all lanes: each fences what it has stored itself, so that none waits for a leader before and behind it.
XIO_DEVICE bool fence_by_lanes_is_all(const wave_group& g, const xio_ctx_t& ctx) {
  const bool all = g.members.ballot(!fence_is_all<order::seq_cst>(ctx)) == 0;
  g.sync_by_op();
  return all;
}

// A thread of the second wave looks while the leader's fence waits for the link: on one thread the fence begins when
// the look has come back.
XIO_DEVICE bool fence_of_workgroup_is_all(const workgroup_group& g, const xio_ctx_t& ctx) {
  g.sync();
  bool more = false;
  if (g.count() <= wave_size() || (ctx.flags & ctx_all_mapped) == 0) {
    if (g.leader()) more = !fence_is_all<order::seq_cst>(ctx);
  } else if (g.leader()) {
    fence<scope::system, order::seq_cst>();
  } else if (g.rank() == wave_size()) {
    more = quiet_words::at(ctx_of(ctx)).finds_more();
  }
  return !sync_workgroup_any(more);
}

// For a group that was found only just now.
template <class Group>
XIO_DEVICE xio_status_t quiet(const Group& g, const xio_ctx_t& ctx) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  const auto slow = [&] { return by_leader(g, [&] { return posted{0, quiet_slow(ctx_of(ctx)).status}; }).status; };
  if constexpr (std::is_same_v<Group, wave_group> && k_lanes_fence_as_one) {
    return fence_by_lanes_is_all(g, ctx) ? XIO_OK : slow();
  } else if constexpr (std::is_same_v<Group, workgroup_group> && k_barrier_votes) {
    return fence_of_workgroup_is_all(g, ctx) ? XIO_OK : slow();
  } else {
    return by_leader_of_found(g, [&] { return posted{0, quiet_ctx(ctx).status}; }).status;
  }
}

// Of a request that is over: what it stands for is complete.
XIO_DEVICE xio_status_t complete_request(const ctx_view& c, xio_req_t request) {
  if (request != 0) return hdp_flush_for(c, request);
  // A flag that the caller sends next may be a relaxed store.
  fence<scope::system, order::release>();
  return XIO_OK;
}

// --- Barrier -----------------------------------------------------------------------------------------

// The ring that the flags to a PE travel on, or null.
XIO_DEVICE const ring_view* flag_ring(const ctx_view& c, u32 to) {
  const peer_view& peer = c.peers[to];
  if (peer.atomic == route::rdma) return awake(rdma::queue_to(peer));
  return peer.atomic == route::sdma ? &sdma::queue_to(peer) : nullptr;
}

// A flag, which has come when it `passes`; k_looks_under_way loads of it are under way in turn.
template <class Passes>
class watched_flag {
 public:
  XIO_DEVICE watched_flag(const u64* at, const Passes& passes) : at_(at), passes_(passes) {
    if constexpr (k_looks_under_way == 2) {
      first_ = now();
      second_ = now();
    }
  }
  XIO_DEVICE bool has_come() {
    if constexpr (k_looks_under_way == 2) {
      if (passes(first_)) return true;
      first_ = now();
      if (passes(second_)) return true;
      second_ = now();
      return false;
    } else {
      return passes(now());
    }
  }
  XIO_DEVICE u64 found() const { return found_; }  // once it has come
  XIO_DEVICE u64 now() const { return load<scope::system, direct::k_watch_load>(at_); }

 private:
  XIO_DEVICE bool passes(u64 found) {
    found_ = found;
    return passes_(found);
  }

  const u64* at_;
  Passes passes_;
  u64 first_ = 0, second_ = 0, found_ = 0;
};

// Epochs only grow, and a peer may be one barrier ahead.
struct epoch_reached {
  u64 epoch;
  XIO_DEVICE bool operator()(u64 found) const { return static_cast<i64>(found - epoch) >= 0; }
};

// Whether a round's flag needs a release of its own. From the second round on it passes on what came with the flags of
// the rounds before, which is not this PE's to release unless it does so after its acquire: the models of AMD (HSA,
// LLVM) and NVIDIA (PTX) do not order it otherwise (docs/ordering.md). Up to three PEs every flag comes from where the
// data comes from. tests/unit/passing_on.cpp looks at all pairs.
XIO_HOST_DEVICE constexpr bool passes_others_on(u32 round, u32 n_pes) { return round != 0 && n_pes > 3; }

// The PE to which this one sends the flag of a round.
XIO_DEVICE u32 peer_of_round(const xio_ctx_t& ctx, u32 round) {
  const u32 ahead = ctx.my_pe + (1u << round);
  return ahead < ctx.n_pes ? ahead : ahead - ctx.n_pes;  // both are below n_pes
}

// The PE to which a flag goes in a round, the one from which one comes, and where it lies in every heap.
struct barrier_step {
  u32 to, from;
  u64 offset;
  bool passes_on;  // see passes_others_on
};
XIO_DEVICE barrier_step step_of_all(const xio_ctx_t& ctx, u32 round) {
  const u32 back = 1u << round;
  return {peer_of_round(ctx, round), ctx.my_pe >= back ? ctx.my_pe - back : ctx.my_pe + ctx.n_pes - back,
          offsetof(heap_head, barrier) + round * sizeof(u64), passes_others_on(round, ctx.n_pes)};
}

// Sends a peer the flag that this PE has come to that round of barrier `epoch`, unless it `has_sent` it already, and
// waits for its own. `since`: see deadline::in.
XIO_DEVICE xio_status_t barrier_round(const xio_ctx_t& ctx, const barrier_step& step, u64 epoch, bool has_sent,
                                      u64* since) {
  const u32 to = step.to;
  posted p{0, XIO_OK};
  if (!has_sent) {
    if (step.passes_on) fence_before_stores<scope::system>();
    p = post_signal(ctx, to, step.offset, epoch, XIO_SIGNAL_SET);
    if (p.status != XIO_OK) return is_gone(ctx_of(ctx)) ? XIO_ERR_STATE : p.status;
  }
  const ring_view* ring = mapped_arena(ctx, to).there ? nullptr : flag_ring(ctx_of(ctx), to);
  const u64* mine = reinterpret_cast<const u64*>(reinterpret_cast<const unsigned char*>(&own_head(ctx)) + step.offset);
  xio_status_t failure = XIO_OK;
  watched_flag<epoch_reached> flag(mine, epoch_reached{epoch});
  // Queues that carry no flag do not end it: a PE that left early would leave the others waiting.
  const auto come = [&] {
    if (flag.has_come()) return true;
    if (ring == nullptr) return false;
    reap_ring(*ring);
    failure = ring_failure(*ring);
    return failure != XIO_OK;
  };
  const xio_status_t status = poll_flag_since(ctx, since, no_queues{}, come, [&](u64 lasts_since) {
    record_wait({call_kind::sync_all, step.from, mine, sizeof *mine, XIO_CMP_GE, 1, epoch, flag.now()}, ctx_of(ctx),
                lasts_since);
    return XIO_ERR_TIMEOUT;
  });
  if (failure != XIO_OK || status != XIO_OK || ring == nullptr) return failure != XIO_OK ? failure : status;
  // The next barrier's flag may go by another queue. This one, held up behind what was posted before it, must not come
  // later and put its number over that one's.
  return wait_request(ctx_of(ctx), p.request);
}

// The number of the barrier that was last. One thread of a PE at a time is in one, so counting needs no
// read-modify-write.
XIO_DEVICE u64 last_epoch(const xio_ctx_t& ctx) {
  return load<scope::agent, order::relaxed>(&world_of(ctx).barrier_epoch);
}

// Of a ctx without those that have left the world. Where others were excluded since, nobody says that all of the rest
// have done the same: an excluded PE's neighbours would know at once, and the others wait for these.
XIO_SLOW_PATH xio_status_t sync_living(XIO_GIVEN(xio_ctx_t) ctx, u64 since) {
  living_view* living = load<scope::agent, order::acquire>(&world_of(ctx).living);
  if (living == nullptr) return ctx_fail(ctx_of(ctx), XIO_ERR_PEER, call_of(call_kind::sync_all));
  const u64 epoch = load<scope::agent, order::relaxed>(&living->epoch) + 1;
  store<scope::agent, order::relaxed>(&living->epoch, epoch);
  const u32 n = living->n, place = living->place;
  for (u32 round = 0; (u64{1} << round) < n; ++round) {
    const u32 ahead = place + (1u << round), behind = place + n - (1u << round);
    const barrier_step step{living->pes[ahead < n ? ahead : ahead - n], living->pes[behind < n ? behind : behind - n],
                            living->words + round * sizeof(u64), passes_others_on(round, n)};
    const xio_status_t status = barrier_round(ctx, step, epoch, false, &since);
    if (status != XIO_OK) return status;
  }
  return XIO_OK;
}

// The rounds from `round` on, of which that one's flag is sent already if it `has_sent`.
XIO_SLOW_PATH xio_status_t sync_by_rounds(XIO_GIVEN(xio_ctx_t) ctx, u64 epoch, u32 round, bool has_sent, u64 since) {
  // Others wait at a flag that a mapped PE has not sent; only then is there time to ask.
  if (has_sent && is_gone(ctx_of(ctx))) return XIO_ERR_STATE;
  if ((ctx.flags & ctx_has_holes) != 0) return sync_living(ctx, since);
  for (; (u64{1} << round) < ctx.n_pes; ++round) {
    const xio_status_t status = barrier_round(ctx, step_of_all(ctx, round), epoch, has_sent, &since);
    if (status != XIO_OK) return status;
    has_sent = false;
  }
  return XIO_OK;
}

// --- Barrier where every PE's arena is in the ctx ----------------------------------------------------

// A lone thread waits for each of its instructions, so there are few here, and those of round 0 lie before the fence.
struct mapped_barrier {
  bool is_on;
  u64 theirs;  // the words of the rounds at the PE that round 0 sends to
  u64 mine;
};
XIO_DEVICE u64 round_words_of(const xio_ctx_t& ctx, u32 pe) {
  return reinterpret_cast<u64>(mapped_head(mapped_arena(ctx, pe))) + offsetof(heap_head, barrier);
}
XIO_DEVICE mapped_barrier prepare_barrier(const xio_ctx_t& ctx) {
  mapped_barrier b{};
  b.is_on = (ctx.flags & ctx_all_mapped) != 0 && ctx.n_pes - 2 <= XIO_CTX_MAPPED - 2;
  b.theirs = round_words_of(ctx, peer_of_round(ctx, 0));
  b.mine = reinterpret_cast<u64>(own_head(ctx).barrier);
  not_after(b.theirs), not_after(b.mine);
  return b;
}

// A flag that comes over a link is there within so many polls. Later ones are waited for with a deadline.
constexpr u32 k_first_polls = k_pauses_at_once ? 1 : 64;
XIO_DEVICE bool comes_soon(u64 at, u64 epoch) {
  const auto* mine = reinterpret_cast<const u64*>(at);
  XIO_ROLLED for (u32 i = 0; i < k_first_polls; ++i) {
    if (epoch_reached{epoch}(load<scope::system, direct::k_watch_load>(mine))) return true;
  }
  return false;
}

// Whether all rounds are over; else `round` is the one whose flag did not come soon.
XIO_DEVICE bool rounds_come_soon(const xio_ctx_t& ctx, mapped_barrier b, u64 epoch, u32& round) {
  for (u32 step = 2;; step *= 2) {
    store<scope::system, direct::k_flag_store>(reinterpret_cast<u64*>(b.theirs) + round, epoch);
    if (round == 0) store<scope::agent, order::relaxed>(&world_of(ctx).barrier_epoch, epoch);
    if (!comes_soon(b.mine + round * sizeof(u64), epoch)) return false;
    watched();
    if (step >= ctx.n_pes) return true;
    b.theirs = round_words_of(ctx, peer_of_round(ctx, ++round));
    if (passes_others_on(round, ctx.n_pes)) fence_before_stores<scope::system>();
  }
}

// Called after a fence: on every route of the flags, ordinary stores come before the flags. The number is stored behind
// the fence, which would otherwise wait for that store too.
XIO_DEVICE xio_status_t sync_all(const xio_ctx_t& ctx, const mapped_barrier& b, u64 epoch, u64 since) {
  u32 round = 0;
  if (b.is_on) {
    // Makes visible what the others put before they arrived at the barrier.
    if (rounds_come_soon(ctx, b, epoch, round)) [[likely]]
      return hdp_flush(ctx);
  } else {
    store<scope::agent, order::relaxed>(&world_of(ctx).barrier_epoch, epoch);
  }
  const xio_status_t status = sync_by_rounds(ctx, epoch, round, b.is_on, since);
  return status != XIO_OK ? status : hdp_flush(ctx);
}

XIO_DEVICE xio_status_t barrier_ctx(const xio_ctx_t& ctx) {
  // Asked for first: it comes together with what quiet looks at.
  const u64 last = last_epoch(ctx);
  const mapped_barrier b = prepare_barrier(ctx);
  // A failed quiet does not keep the others waiting: this PE still comes to the barrier.
  const waited mine = quiet_ctx<order::release>(ctx);
  if (mine.status == XIO_ERR_STATE && is_gone(ctx_of(ctx))) [[unlikely]] {
    // The others count this one, too.
    store<scope::agent, order::relaxed>(&world_of(ctx).barrier_epoch, last + 1);
    return mine.status;
  }
  const xio_status_t met = sync_all(ctx, b, last + 1, since_after(mine, ctx));
  // With no other PE to synchronise with this is a quiet.
  if (ctx.n_pes == 1) fence<scope::system, order::seq_cst>();
  return mine.status != XIO_OK ? mine.status : met;
}

XIO_DEVICE xio_status_t sync_ctx(const xio_ctx_t& ctx) {
  const u64 last = last_epoch(ctx);
  const mapped_barrier b = prepare_barrier(ctx);
  fence<scope::system, order::release>();
  return sync_all(ctx, b, last + 1, 0);
}

// For a group that was found only just now.
template <class Group>
XIO_DEVICE xio_status_t sync_all(const Group& g, const xio_ctx_t& ctx, bool with_quiet) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  return by_leader_of_found(g, [&] { return posted{0, with_quiet ? barrier_ctx(ctx) : sync_ctx(ctx)}; }).status;
}

}  // namespace xio::dev

// --- The calls ---------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t xio_fence(const xio_ctx_t& ctx) { return xio::dev::fence_all(ctx); }
XIO_DEVICE xio_status_t xio_fence_pe(const xio_ctx_t& ctx, int pe) { return xio::dev::fence_one(ctx, pe); }

XIO_DEFINE_FORMS(xio_status_t, xio_quiet, (const xio_ctx_t& ctx), (ctx), xio::dev::quiet(g, ctx))
XIO_DEFINE_FORMS(xio_status_t, xio_barrier_all, (const xio_ctx_t& ctx), (ctx), xio::dev::sync_all(g, ctx, true))
XIO_DEFINE_FORMS(xio_status_t, xio_sync_all, (const xio_ctx_t& ctx), (ctx), xio::dev::sync_all(g, ctx, false))

XIO_DEVICE xio_status_t xio_quiet_pe(const xio_ctx_t& ctx, int pe) {
  const xio::dev::ctx_view* c = xio::dev::view_of(ctx);
  if (c == nullptr) return XIO_ERR_STATE;
  if (const xio_status_t wrong = xio::dev::check_pe(ctx, pe); wrong != XIO_OK)
    return xio::dev::ctx_fail(*c, wrong, xio::dev::call_of(xio::dev::call_kind::quiet_pe, nullptr, nullptr, 0, pe));
  return xio::dev::quiet_peer(*c, c->peers[pe]);
}
XIO_DEVICE xio_status_t xio_wait(const xio_ctx_t& ctx, xio_req_t request) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  const xio_status_t status = xio::dev::wait_request(xio::dev::ctx_of(ctx), request);
  return status != XIO_OK ? status : xio::dev::complete_request(xio::dev::ctx_of(ctx), request);
}
XIO_DEVICE xio_status_t xio_test(const xio_ctx_t& ctx, xio_req_t request) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  const xio_status_t status = xio::dev::test_request(xio::dev::ctx_of(ctx), request);
  return status != XIO_OK ? status : xio::dev::complete_request(xio::dev::ctx_of(ctx), request);
}
XIO_DEVICE xio_status_t xio_wait_source(const xio_ctx_t& ctx, xio_req_t request) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  return request == 0 ? XIO_OK : xio_wait(ctx, request);
}
