// SPDX-License-Identifier: MIT
// Exchanges among the members of a team.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/team_members.hpp"

namespace xio::dev::teams {

// One exchange: every member writes a message to every other one. All its waits have one deadline, see deadline::in.
struct exchange {
  u64 epoch;
  u32 tag;
  u64 since;
  XIO_DEVICE u32 flag() const { return static_cast<u32>(epoch); }
  XIO_DEVICE u64 flagged(u32 value) const { return (epoch << 32) | value; }
  XIO_DEVICE u64 header() const { return flagged(tag); }
};

template <class Group>
XIO_DEVICE bool any(const Group& g, bool mine, const channel_state&, u64) {
  return g.leader() && mine;
}
XIO_DEVICE bool any(const wave_group& g, bool mine, const channel_state&, u64) {
  const bool found = g.members.ballot(mine) != 0;
  g.sync_by_op();
  return found;
}
XIO_DEVICE bool any(const workgroup_group& g, bool mine, const channel_state& s, u64 epoch) {
  if constexpr (k_barrier_votes) return sync_workgroup_any(mine);
  g.sync();
  return load<scope::agent, order::relaxed>(&s.failed_epoch) == epoch;
}

// A channel as a call finds it. It is loaded before the sync of the group, so that it comes meanwhile.
struct channel_values {
  u64 epoch, team;
  u32 broken;
};
XIO_DEVICE channel_values load_channel(const xio_team_t& t) {
  const channel_state& s = state_of(t);
  return {load<scope::agent, order::relaxed>(&s.epoch), load<scope::agent, order::relaxed>(&s.team),
          load<scope::agent, order::relaxed>(&s.broken)};
}

// Begins an exchange, behind a sync of the group that came after the loads; false if the channel is broken, or the team
// was destroyed. The number is stored now and not in the end: the next call's fence would wait for that.
template <class Group>
XIO_DEVICE bool enter(const Group& g, const xio_team_t& t, u32 tag, const channel_values& found, exchange* x) {
  *x = exchange{found.epoch + 1, tag, 0};
  if (found.broken != 0 || found.team != mark_of(t.token, t.id)) return false;
  if (g.leader()) store<scope::agent, order::relaxed>(&state_of(t).epoch, x->epoch);
  return true;
}

// The next exchange of a call, behind end() of the one before.
template <class Group>
XIO_DEVICE void go_on(const Group& g, const xio_team_t& t, exchange* x) {
  *x = exchange{x->epoch + 1, x->tag, 0};
  if (g.leader()) store<scope::agent, order::relaxed>(&state_of(t).epoch, x->epoch);
}

// enter() with the sync: all that other threads of the group wrote before is complete.
template <class Group>
XIO_DEVICE bool begin(const Group& g, const xio_team_t& t, u32 tag, exchange* x) {
  const channel_values found = load_channel(t);
  g.sync();
  return enter(g, t, tag, found, x);
}

// Ends it: the group learns how it went for each of its threads, and what they wrote is complete. An exchange that
// some members may not have ended leaves the slots in no known state.
template <class Group>
XIO_DEVICE xio_status_t end(const Group& g, const xio_team_t& t, const exchange& x, xio_status_t mine) {
  channel_state& s = state_of(t);
  if (mine != XIO_OK) {
    const u32 status = static_cast<u32>(static_cast<int>(mine));
    store<scope::agent, order::relaxed>(&s.status, status);
    if (mine != XIO_ERR_ARG) store<scope::agent, order::relaxed>(&s.broken, status);
    store<scope::agent, order::release>(&s.failed_epoch, x.epoch);
    fence<scope::agent, order::release>();
  }
  if (!any(g, mine != XIO_OK, s, x.epoch)) return XIO_OK;
  fence<scope::agent, order::acquire>();
  const u32 broken = load<scope::agent, order::relaxed>(&s.broken);
  return static_cast<xio_status_t>(
      static_cast<int>(broken != 0 ? broken : load<scope::agent, order::relaxed>(&s.status)));
}

XIO_DEVICE xio_status_t first_of(xio_status_t a, xio_status_t b) { return a != XIO_OK ? a : b; }

// Members that were heard have come, in this call or another; else nothing more of a call is waited for.
XIO_DEVICE bool was_heard(xio_status_t status) { return status == XIO_OK || status == XIO_ERR_ARG; }

// The end of a call, behind those of its exchanges: engines have done what was posted for it, so sources may change,
// and no word is lost if the program ends. A failure that is found here leaves the channel as it is.
template <class Group>
XIO_DEVICE xio_status_t complete_call(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, xio_status_t status) {
  if (!has_engines(ctx)) return status;
  const posted done = by_leader(g, [&] {
    return posted{0, was_heard(status) ? quiet_members(ctx_of(ctx), t) : XIO_OK};
  });
  return first_of(status, done.status);
}

// Whether another caller of this PE, another workgroup or kernel, has been in the channel during an exchange: it has
// begun the next one, or it has broken the channel by the one before, and then this one would not have begun.
XIO_DEVICE bool is_shared(const channel_state& s, u32 flag) {
  return static_cast<u32>(load<scope::agent, order::relaxed>(&s.epoch)) != flag ||
         (load<scope::agent, order::relaxed>(&s.broken) != 0 &&
          static_cast<u32>(load<scope::agent, order::relaxed>(&s.failed_epoch)) == flag - 1);
}
// Why a wait for member `from` is no success: it has ended with `status`, or has found the tag of another call. Says so
// in the ctx, but for what this PE's own wrong arguments are the cause of: the call that found these makes that record.
// Seldom, so it is out of line, and takes what it gets in registers; `header` is the exchange's.
XIO_OUT_OF_LINE xio_status_t tell_why(xio_team_t t, const ctx_view& c, u64 header, u32 from, u32 found,
                                      xio_status_t status) {
  const u32 pe = pe_of(t, from), tag = static_cast<u32>(header);
  if (status == XIO_ERR_TIMEOUT)
    record_wait({call_kind::team_wait, pe, reinterpret_cast<const void*>(team_word(t)), 8, XIO_CMP_EQ, tag, from,
                 is_shared(state_of(t), static_cast<u32>(header >> 32)) ? u64{1} : u64{0}},
                c, 0);
  if (status != XIO_OK) return status;
  if (is_refusal(tag)) return XIO_ERR_ARG;
  return refuse(c, t, XIO_ERR_ARG, {refusal::unlike, pe, tag, found, from, 0, 0});
}

// The status of a wait for member `from`, whose header was `head` in the end.
template <class Ctx>
XIO_DEVICE xio_status_t said_of(const Ctx& ctx, const xio_team_t& t, const exchange& x, u32 from, u64 head,
                                xio_status_t status) {
  if (status == XIO_OK && static_cast<u32>(head) == x.tag) [[likely]]
    return XIO_OK;
  return tell_why(t, ctx_of(ctx), x.header(), from, static_cast<u32>(head), status);
}

// How long a call has waited for members: since when, see deadline::in, and when their queues were drained last.
struct patience {
  u64 since, drained;
  xio_status_t status;
};
// The words by which many members synchronise, see go_round.
XIO_DEVICE u64* round_word(const xio_team_t& t, u64 epoch, u32 round) {
  auto* words = reinterpret_cast<u64*>(static_cast<unsigned char*>(t.work) + sizeof(channel_state));
  return words + (epoch & 1) * k_team_rounds + round;
}
// Up to so many members every one writes to every other, which takes the time of one word; beyond, words go round in
// log2 n rounds, and each says what its writer has heard so far.
constexpr u32 k_all_to_all = 8;

// The PE of the first member that has not said anything in the exchange of that header; k_no_pe where all have.
XIO_DEVICE u32 missing_pe(const xio_team_t& t, u64 header) {
  if (const u32 awaited = load<scope::agent, order::relaxed>(&state_of(t).awaited); awaited != 0)
    return pe_of(t, awaited - 1);
  const auto lacks = [&](const u64* word) { return (load<scope::system, order::relaxed>(word) ^ header) >> 32 != 0; };
  const u32 what = static_cast<u32>(header) >> k_tag_op_shift;
  const bool rounds = what == static_cast<u32>(op::sync) || what == static_cast<u32>(op::barrier);
  if (rounds && t.n_pes > k_all_to_all) {
    for (u32 round = 0; (u64{1} << round) < t.n_pes; ++round)
      if (lacks(round_word(t, header >> 32, round))) return pe_of(t, (t.my_pe + t.n_pes - (1u << round)) % t.n_pes);
    return k_no_pe;
  }
  for (u32 k = 0; k + 1 < t.n_pes; ++k)
    if (lacks(message(t, header >> 32, other(t, k)))) return pe_of(t, other(t, k));
  return k_no_pe;
}
XIO_OUT_OF_LINE void note_members(xio_team_t t, const ctx_view& c, u64 header, u64 since) {
  const u32 flag = static_cast<u32>(header >> 32);
  note_wait(*c.world, {static_cast<u32>(call_kind::team_wait), missing_pe(t, header), 0, 0, since, 0, team_word(t),
                       header, is_shared(state_of(t), flag) ? u64{1} : u64{0}, 0});
}

// A turn of a loop that waits for members, between many looks: as in poll_since. Out of line, for a kernel has many
// such loops, and what they wait for comes before that mostly. `header` is the exchange's.
XIO_OUT_OF_LINE patience wait_on(xio_team_t t, const ctx_view& c, patience p, u64 header, bool pauses, u32 own_ms) {
  u64 since = p.since, drained = p.drained;
  const bool first = drained == 0;
  const deadline end = deadline::in(*c.world, &since, own_ms);
  const bool over = pauses && !end.wait_more();
  const u64 now = wall_clock();
  if (first) drained = now;
  xio_status_t status = XIO_OK;
  if (over || now - drained > k_drain_ms * c.world->ticks_per_ms) {
    if (is_another_beat(drained, now)) note_members(t, c, header, since);
    drained = now;
    status = drain_members(c, t);
  }
  if (status == XIO_OK && over) status = XIO_ERR_TIMEOUT;
  return {since, drained, status != XIO_OK ? status : hdp_nudge(c)};
}

// Polls until done(), a failure of the members' queues, or the deadline; behind these it looks once more.
template <u32 InLine = k_polls_in_line, class Ctx, class Done>
XIO_DEVICE xio_status_t poll_members(const Ctx& ctx, const xio_team_t& t, exchange& x, Done&& done) {
  constexpr u32 polls = 32;
  if constexpr (InLine != 0) {
    XIO_UNROLL for (u32 i = 0; i < InLine; ++i) if (done()) return XIO_OK;
  }
  patience p{x.since, 0, XIO_OK};
  XIO_ROLLED for (u32 round = k_pauses_at_once ? 1 : 0;; ++round) {
    XIO_ROLLED for (u32 i = 0; i < polls; ++i) {
      if (done()) return XIO_OK;
      if (round != 0) pause();
    }
    if (p.status != XIO_OK) return p.status;
    if (round == 0) continue;
    p = wait_on(t, ctx_of(ctx), p, x.header(), round % 2 == 0, own_timeout_of(ctx));
    x.since = p.since;
  }
}

struct header_has_come {
  u32 flag;
  XIO_DEVICE bool operator()(u64 found) const { return static_cast<u32>(found >> 32) == flag; }
};
template <class Ctx>
XIO_DEVICE xio_status_t wait_header(const Ctx& ctx, const xio_team_t& t, exchange& x, u32 from) {
  watched_flag<header_has_come> head(message(t, x.epoch, from), header_has_come{x.flag()});
  const xio_status_t status = poll_members(ctx, t, x, [&] { return head.has_come(); });
  return said_of(ctx, t, x, from, head.found(), status);
}

// Waits for the headers of all others: the group knows after end().
template <class Group, class Ctx>
XIO_DEVICE xio_status_t hear_headers(const Group& g, const Ctx& ctx, const xio_team_t& t, exchange& x) {
  xio_status_t status = XIO_OK;
  for (u32 k = g.rank(); k + 1 < t.n_pes && was_heard(status); k += g.count())
    status = first_of(status, wait_header(ctx, t, x, other(t, k)));
  return status;
}
// The same, and what came before them is visible to the group after end().
template <class Group>
XIO_DEVICE xio_status_t wait_headers(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x) {
  const xio_status_t status = hear_headers(g, ctx, t, x);
  if (g.rank() + 1 >= t.n_pes) return status;
  fence<scope::system, order::acquire>();
  return first_of(status, hdp_flush(ctx));
}

// Sends a word to member `to`, behind all that this thread's group has stored.
template <class Ctx>
XIO_DEVICE xio_status_t send_word(const Ctx& ctx, const xio_team_t& t, u64* word, u64 value, u32 to) {
  const u32 pe = pe_of(t, to);
  if (is_hole(ctx, pe)) return refuse_hole(t, ctx_of(ctx), static_cast<u32>(value));
  if (unsigned char* at = direct_place(ctx, word, pe)) {
    store<scope::system, direct::k_flag_store>(reinterpret_cast<u64*>(at), value);
    return XIO_OK;
  }
  return put_word_by_one({word, nullptr, 0}, ctx_of(ctx), pe, word, value);
}

// Behind a release of every thread that sends one.
template <class Group, class Ctx>
XIO_DEVICE xio_status_t send_released_headers(const Group& g, const Ctx& ctx, const xio_team_t& t, const exchange& x) {
  xio_status_t status = XIO_OK;
  for (u32 k = g.rank(); k + 1 < t.n_pes; k += g.count())
    status = first_of(status, send_word(ctx, t, message(t, x.epoch, t.my_pe), x.header(), other(t, k)));
  return status;
}

template <class Group, class Ctx>
XIO_DEVICE xio_status_t send_headers(const Group& g, const Ctx& ctx, const xio_team_t& t, const exchange& x) {
  if (g.rank() + 1 < t.n_pes) fence<scope::system, order::release>();
  return send_released_headers(g, ctx, t, x);
}

// The status of a call for which begin() was false, by one thread. The team first: so all travels in registers. A cast
// that this member has refused ends here: all refuse this call, and the next one can succeed.
XIO_OUT_OF_LINE xio_status_t refuse_by_one(xio_team_t t, slim_ctx ctx, u32 tag) {
  channel_state& s = state_of(t);
  if (load<scope::agent, order::relaxed>(&s.team) != mark_of(t.token, t.id))
    return refuse(*ctx.view, t, XIO_ERR_STATE, {refusal::destroyed, k_no_pe, tag, 0, 0, 0, 0});
  const u32 broken = load<scope::agent, order::relaxed>(&s.broken);
  const auto status = static_cast<xio_status_t>(static_cast<int>(broken));
  if (status == XIO_ERR_ARG) {
    exchange x{load<scope::agent, order::relaxed>(&s.epoch) + 1, k_refuses, 0};
    store<scope::agent, order::relaxed>(&s.epoch, x.epoch);
    const xio_status_t sent = send_headers(thread_group::here(), ctx, t, x);
    const xio_status_t heard = first_of(sent, hear_headers(thread_group::here(), ctx, t, x));
    store<scope::agent, order::relaxed>(&s.broken, was_heard(heard) ? 0 : static_cast<u32>(static_cast<int>(heard)));
    if (!was_heard(heard)) return heard;
  }
  const refusal why = status == XIO_ERR_PEER ? refusal::excluded : refusal::broken;
  return refuse(*ctx.view, t, status, {why, k_no_pe, tag, 0, broken, 0, 0});
}
template <class Group>
XIO_DEVICE xio_status_t refuse_channel(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag) {
  return by_leader(g, [&] { return posted{0, refuse_by_one(t, slim_of(ctx), tag)}; }).status;
}

// --- Rounds ------------------------------------------------------------------------------------------

// Waits for what `from` says in a round. A member in a call of another kind sends its header instead: that is refused.
template <class Ctx>
XIO_DEVICE xio_status_t wait_round(const Ctx& ctx, const xio_team_t& t, exchange& x, u32 round, u32 from, u32* heard) {
  const u64* word = round_word(t, x.epoch, round);
  const u64* head = message(t, x.epoch, from);
  u64 found = 0;
  const xio_status_t status = poll_members(ctx, t, x, [&] {
    found = load<scope::system, direct::k_watch_load>(word);
    if (static_cast<u32>(found >> 32) == x.flag()) return true;
    const u64 other = load<scope::system, direct::k_watch_load>(head);
    if (static_cast<u32>(other >> 32) != x.flag()) return false;
    // One in the same call sends it because a third is in another one.
    found = static_cast<u32>(other) == x.tag ? k_refuses : static_cast<u32>(other);
    return true;
  });
  *heard = static_cast<u32>(found);
  return status == XIO_OK ? status : tell_why(t, ctx_of(ctx), x.header(), from, *heard, status);
}

// By one thread, behind a release. Everybody learns whether all are in the same call: a member that has heard of
// another call passes that on. Then headers go to all, for members whose calls wait for these.
// send(round, value, to, from) sends the word of a round, and alike(round) is false where more than the tag differs.
template <class Ctx, class Send, class Alike>
XIO_DEVICE xio_status_t go_round(const Ctx& ctx, const xio_team_t& t, exchange& x, const Send& send,
                                 const Alike& alike) {
  u32 said = x.tag;
  xio_status_t status = XIO_OK;
  for (u32 round = 0; (u64{1} << round) < t.n_pes && status == XIO_OK; ++round) {
    const u32 step = 1u << round;
    const u32 to = t.my_pe + step < t.n_pes ? t.my_pe + step : t.my_pe + step - t.n_pes;
    const u32 from = t.my_pe >= step ? t.my_pe - step : t.my_pe + t.n_pes - step;
    // The word passes on what came with the one before: that needs a release of this PE (sync.hpp).
    if (round != 0) fence_before_stores<scope::system>();
    u32 heard = k_refuses;
    status = send(round, x.flagged(said), to, from);
    status = first_of(status, wait_round(ctx, t, x, round, from, &heard));
    fence<scope::system, order::acquire>();
    const bool differs = heard != said || !alike(round);
    // The first other word is its writer's own call, unless somebody else's has reached that one before.
    if (differs && said == x.tag && status == XIO_OK) tell_why(t, ctx_of(ctx), x.header(), from, heard, status);
    if (differs) said = k_refuses;
  }
  if (status != XIO_OK) return status;
  if (is_refusal(said)) {
    // All learn of it, and send theirs. A member that has not heard all must not begin the next exchange.
    send_headers(thread_group::here(), ctx, t, x);
    const xio_status_t heard = hear_headers(thread_group::here(), ctx, t, x);
    if (!was_heard(heard)) return heard;
  }
  return said != x.tag ? XIO_ERR_ARG : hdp_flush(ctx);
}

// Whether this thread sends words of an exchange of headers.
template <class Group>
XIO_DEVICE bool sends_headers(const Group& g, const xio_team_t& t) {
  return t.n_pes > k_all_to_all ? g.leader() : g.rank() + 1 < t.n_pes;
}

// Headers alone, behind a sync of the group and a release of those that send.
template <class Group>
XIO_DEVICE xio_status_t synchronise(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                    const channel_values& found, u64 since) {
  exchange x;
  if (!enter(g, t, tag, found, &x)) return refuse_channel(g, ctx, t, tag);
  x.since = since;
  if (t.n_pes > k_all_to_all) {
    const auto send = [&](u32 round, u64 value, u32 to, u32) {
      return send_word(ctx, t, round_word(t, x.epoch, round), value, to);
    };
    return end(g, t, x, g.leader() ? go_round(ctx, t, x, send, [](u32) { return true; }) : XIO_OK);
  }
  const xio_status_t sent = send_released_headers(g, ctx, t, x);
  return end(g, t, x, first_of(sent, wait_headers(g, ctx, t, x)));
}

// Every member has come, and their ordinary stores from before are visible. The fence takes longest, so nothing is
// waited for before it.
template <class Group>
XIO_DEVICE xio_status_t exchange_headers(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag) {
  channel_values found = load_channel(t);
  g.sync();
  if (sends_headers(g, t)) fence<scope::system, order::release>();
  not_before(found.broken);
  return synchronise(g, ctx, t, tag, found, 0);
}

// The number of the world is in the upper half of both numbers.
XIO_DEVICE bool are_of_one_world(const xio_ctx_t& ctx, const xio_team_t& t) { return (ctx.id ^ t.id) >> 32 == 0; }
// The status of a call of a team that has no members, or is of another world than the ctx: its memory may be no memory
// any more. All threads of a group say so, and the record keeps the first: a call that one thread alone makes costs
// more on NVIDIA GPUs than these calls together, see is_hole.
XIO_OUT_OF_LINE xio_status_t refuse_team(xio_team_t t, const ctx_view& c, op what) {
  const bool empty = t.n_pes == 0;
  return refuse(c, t, empty ? XIO_ERR_STATE : XIO_ERR_ARG,
                {empty ? refusal::empty_team : refusal::foreign, k_no_pe, tag_of(what), 0, 0, 0, 0});
}
// Each call begins with this.
XIO_DEVICE xio_status_t check_team(const xio_ctx_t& ctx, const xio_team_t& t, op what) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  if (t.n_pes != 0 && are_of_one_world(ctx, t)) [[likely]]
    return XIO_OK;
  return refuse_team(t, ctx_of(ctx), what);
}

template <class Group>
XIO_DEVICE xio_status_t sync(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t) {
  if (const xio_status_t wrong = check_team(ctx, t, op::sync); wrong != XIO_OK) return wrong;
  return complete_call(g, ctx, t, exchange_headers(g, ctx, t, tag_of(op::sync)));
}

template <class Group>
XIO_DEVICE xio_status_t barrier(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t) {
  if (const xio_status_t wrong = check_team(ctx, t, op::barrier); wrong != XIO_OK) return wrong;
  const channel_values found = load_channel(t);
  // The quiet is the leader's release, too. A failed one does not keep the others waiting. `request` is when it began
  // to wait.
  const posted mine = by_leader(g, [&] {
    const waited done = quiet_ctx<order::release>(ctx, quiet_by_one);
    return posted{since_after(done, ctx), done.status};
  });
  if (!g.leader() && sends_headers(g, t)) fence<scope::system, order::release>();
  const xio_status_t met = complete_call(g, ctx, t, synchronise(g, ctx, t, tag_of(op::barrier), found, mine.request));
  // With no other member this is a quiet.
  if (t.n_pes == 1) fence<scope::system, order::seq_cst>();
  return first_of(mine.status, met);
}

}  // namespace xio::dev::teams

// --- The calls ---------------------------------------------------------------------------------------

XIO_HOST_DEVICE xio_team_t xio_team_channel(xio_team_t team, uint32_t channel) {
  if (team.n_pes == 0 || channel >= team.channels) return xio_team_t{};
  const uint64_t each = xio::dev::team_channel_bytes(team.n_pes, team.packet_bytes, team.area_bytes);
  team.work = static_cast<unsigned char*>(team.work) + (uint64_t{channel} - team.channel) * each;
  team.channel = static_cast<uint16_t>(channel);
  return team;
}
XIO_DEVICE int xio_team_world_pe(const xio_team_t& team, int pe) {
  using xio::dev::u32;
  return static_cast<u32>(pe) < team.n_pes ? static_cast<int>(xio::dev::teams::pe_of(team, static_cast<u32>(pe))) : -1;
}
XIO_DEVICE int xio_team_translate(const xio_team_t& from, const xio_team_t& to, int pe) {
  const int wanted = xio_team_world_pe(from, pe);
  for (int i = 0; wanted >= 0 && i < static_cast<int>(to.n_pes); ++i)
    if (xio_team_world_pe(to, i) == wanted) return i;
  return -1;
}

XIO_DEFINE_FORMS(xio_status_t, xio_team_sync, (const xio_ctx_t& ctx, const xio_team_t& team), (ctx, team),
                 xio::dev::teams::sync(g, ctx, team))
XIO_DEFINE_FORMS(xio_status_t, xio_team_barrier, (const xio_ctx_t& ctx, const xio_team_t& team), (ctx, team),
                 xio::dev::teams::barrier(g, ctx, team))
