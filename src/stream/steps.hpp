// SPDX-License-Identifier: MIT
// Large collectives by many workgroups of one kernel, where loads and stores are the way to all members:
//
//   come    the first workgroup that comes makes the first exchange: all members are in this call, and find no fault
//           with it. The others wait for what it finds.
//   share   each stores its slice of this PE's blocks, or combines its slice of this PE's part of a reduce
//   leave   the last to be ready makes the second exchange, behind the stores of all
//
// The exchanges, and what goes where, are those of move_large and reduce_reading, so that other members may make the
// call by one workgroup. A workgroup waits only for one that has come before it, and so is running: nothing has to be
// resident at once.
#pragma once
#include <xio/xio_device.hpp>

#include "xio/device/impl/kinds.hpp"

namespace xio::dev::teams {

// A call that moves blocks, and its tag.
struct stated_move {
  op what;
  u32 tag;
  blocks b;
};

// channel_state::found: the status, a bit, and 31 bits of which call it is of.
constexpr u64 k_found = u64{1} << 32;
XIO_DEVICE u64 found_word(xio_status_t status, u32 call) {
  return u64{call} << 33 | k_found | static_cast<u32>(static_cast<int>(status));
}

// In which place this workgroup has come, from 0 on. Memory that is not this team's is not changed, and not even looked
// at where the ctx is of another world.
constexpr u64 k_no_team = ~u64{0};
template <class Group>
XIO_DEVICE u64 come(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t) {
  const posted place = by_leader(g, [&] {
    channel_state& s = state_of(t);
    const bool ours = t.n_pes != 0 && are_of_one_world(ctx, t) &&
                      load<scope::agent, order::relaxed>(&s.team) == mark_of(t.token, t.id);
    return posted{ours ? u64{fetch_add<scope::agent, order::relaxed>(&s.come, 1u)} : k_no_team, XIO_OK};
  });
  return place.request;
}

// Breaks the channel for this call and all later ones.
template <class Group>
XIO_DEVICE xio_status_t give_up(const Group& g, const xio_team_t& t, xio_status_t why) {
  return end(g, t, exchange{load<scope::agent, order::relaxed>(&state_of(t).epoch), 0, 0}, why);
}

// By the first: what it found. Returns what counts, for one that waited may have given up.
template <class Group>
XIO_DEVICE xio_status_t say_found(const Group& g, const xio_team_t& t, u32 call, xio_status_t mine) {
  const posted said = by_leader(g, [&] {
    u64 none = 0;
    const bool counts =
        compare_exchange<scope::agent, order::release>(&state_of(t).found, none, found_word(mine, call));
    return posted{0, counts ? mine : XIO_ERR_TIMEOUT};
  });
  return said.status == mine ? mine : give_up(g, t, said.status);
}
// By the others. The exchange ends within its own deadline; twice that is the end of all patience. A kernel of another
// call in this channel at the same moment finds that, and no data of its own is taken for agreed.
template <class Group>
XIO_DEVICE xio_status_t wait_found(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 call) {
  const posted said = by_leader(g, [&] {
    u64* const word = &state_of(t).found;
    const deadline end = deadline::after(2 * ticks_of(*ctx_of(ctx).world, own_timeout_of(ctx)));
    u64 found = load<scope::agent, order::acquire>(word);
    while (found == 0) {
      const u64 late = found_word(XIO_ERR_TIMEOUT, call);
      if (!end.wait_more() && compare_exchange<scope::agent, order::acq_rel>(word, found, late))
        found = late;
      else
        found = load<scope::agent, order::acquire>(word);
    }
    fence<scope::system, order::acquire>();
    const auto status = static_cast<xio_status_t>(static_cast<int>(static_cast<u32>(found)));
    return posted{found >> 33 != call, status};
  });
  return said.request != 0 ? give_up(g, t, XIO_ERR_STATE) : said.status;
}

// Behind a workgroup's share. Its stores are released for the exchange that the last one makes, and that one sees all.
template <class Group>
XIO_DEVICE bool leaves_last(const Group& g, const xio_team_t& t, u32 workgroups) {
  g.sync();
  return by_leader(g, [&] {
           fence<scope::system, order::release>();
           channel_state& s = state_of(t);
           const bool last = fetch_add<scope::agent, order::acq_rel>(&s.left, 1u) + 1 == workgroups;
           if (last) {
             store<scope::agent, order::relaxed>(&s.come, 0u);
             store<scope::agent, order::relaxed>(&s.left, 0u);
             store<scope::agent, order::relaxed>(&s.found, u64{0});
           }
           return posted{last, XIO_OK};
         }).request != 0;
}

template <class Group>
XIO_DEVICE xio_status_t begin_move(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const stated_move& m) {
  if (const xio_status_t wrong = check_team(ctx, t, m.what); wrong != XIO_OK) return wrong;
  const stated_call own{m.tag, objection_to(ctx, t, m.b)};
  exchange x;
  if (!begin(g, t, own.stated(), &x)) return refuse_channel(g, ctx, t, m.tag);
  return agree(g, ctx, t, x, {own, m.b.bytes});
}

// Bytes at .. at + bytes of every block.
template <class Group>
XIO_DEVICE void store_slice(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, blocks b, u64 at, u64 bytes) {
  if (!b.sends(t.my_pe)) return;
  b.src += at;
  b.dst += at;
  b.bytes = bytes;
  const own_block own = store_direct(g, ctx, t, b);
  if (own.bytes != 0) direct::copy(g, own.to, own.from, own.bytes);
}

template <class Group>
XIO_DEVICE xio_status_t end_move(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag) {
  exchange x;
  if (!begin(g, t, tag, &x)) return refuse_channel(g, ctx, t, tag);
  send_direct_headers(g, ctx, t, x);
  return end(g, t, x, wait_headers(g, ctx, t, x));
}

XIO_DEVICE op op_of(const reduce_job& job) { return job.scatter ? op::reduce_scatter : op::reduce; }
XIO_DEVICE u32 reading_tag(const reduce_job& job) {
  return tag_of(op_of(job), job.bytes, kind_of<k_by_kind, vec16>(job) | k_reads);
}

template <class Group>
XIO_DEVICE xio_status_t begin_reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job) {
  if (const xio_status_t wrong = check_team(ctx, t, op_of(job)); wrong != XIO_OK) return wrong;
  const u32 tag = reading_tag(job);
  const stated_call own{tag, objection_to(ctx, t, job)};
  const bool compares = own.is_good() && (tag & k_tag_folded) != 0;
  const xio_status_t status =
      compares ? exchange_sizes(g, ctx, t, tag, job.bytes) : exchange_headers(g, ctx, t, own.stated());
  if (own.is_good()) return status;
  const xio_status_t mine = refuse_own(g, ctx, t, tag, own.why);
  return was_heard(status) ? mine : status;
}

template <class Group>
XIO_DEVICE xio_status_t end_reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job) {
  return exchange_headers(g, ctx, t, reading_tag(job));
}

}  // namespace xio::dev::teams
