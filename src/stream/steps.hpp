// SPDX-License-Identifier: MIT
// Large collectives by many workgroups, where loads and stores are the way to all members, as two kernels of a stream:
//
//   begin  one workgroup   the first exchange: all members are in this call, and find no fault with it
//   share  many            each stores its slice of this PE's blocks, or combines its slice of this PE's part of a
//   reduce;
//                          the last to be ready makes the second exchange, behind the stores of all
//
// The exchanges, and what goes where, are those of move_large and reduce_reading, so that other members may make the
// call by one workgroup. If `begin` fails the other kernel does nothing. No workgroup waits for another one.
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

// The end of a begin: the shares may be made.
template <class Group>
XIO_DEVICE xio_status_t note_agreed(const Group& g, const xio_team_t& t, xio_status_t status) {
  channel_state& s = state_of(t);
  if (status == XIO_OK && g.leader())
    store<scope::agent, order::release>(&s.agreed, load<scope::agent, order::relaxed>(&s.epoch));
  return status;
}
// Nothing but a begin that went well says so: not memory that is new, nor that of a team which was destroyed. All
// workgroups find the same: nobody enters the next exchange before all have made their shares.
template <class Group>
XIO_DEVICE bool was_agreed(const Group& g, const xio_team_t& t) {
  const channel_state& s = state_of(t);
  return by_leader(g, [&] {
           const u64 agreed = load<scope::agent, order::acquire>(&s.agreed);
           const bool ours = load<scope::agent, order::relaxed>(&s.team) == mark_of(t.token, t.id);
           return posted{ours && agreed != 0 && agreed == load<scope::agent, order::relaxed>(&s.epoch), XIO_OK};
         }).request != 0;
}
// Behind a workgroup's share. Its stores are released for the exchange that the last one makes, and that one sees all.
template <class Group>
XIO_DEVICE bool is_last_share(const Group& g, const xio_team_t& t, u32 shares) {
  g.sync();
  return by_leader(g, [&] {
           fence<scope::system, order::release>();
           channel_state& s = state_of(t);
           const bool last = fetch_add<scope::agent, order::acq_rel>(&s.arrived, 1u) + 1 == shares;
           if (last) {
             store<scope::agent, order::relaxed>(&s.arrived, 0u);
             store<scope::agent, order::relaxed>(&s.agreed, u64{0});
           }
           return posted{last, XIO_OK};
         }).request != 0;
}

template <class Group>
XIO_DEVICE xio_status_t begin_move(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const stated_move& m) {
  if (const xio_status_t wrong = check_team(ctx, t, m.what); wrong != XIO_OK) return wrong;
  const stated_call own{m.tag, objection_to(ctx, t, m.b)};
  exchange x;
  if (!begin(g, t, own.stated(), &x)) return refuse_channel(t, ctx_of(ctx), m.tag);
  return note_agreed(g, t, agree(g, ctx, t, x, {own, m.b.bytes}));
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
  if (!begin(g, t, tag, &x)) return refuse_channel(t, ctx_of(ctx), tag);
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
  if (own.is_good()) return note_agreed(g, t, status);
  const xio_status_t mine = refuse_own(g, ctx, t, tag, own.why);
  return was_heard(status) ? mine : status;
}

template <class Group>
XIO_DEVICE xio_status_t end_reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job) {
  return exchange_headers(g, ctx, t, reading_tag(job));
}

}  // namespace xio::dev::teams
