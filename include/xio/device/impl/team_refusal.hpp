// SPDX-License-Identifier: MIT
// What a ctx keeps of a team's call that is refused, from which xio_ctx_error makes its sentence
// (src/ctx/team_text.cpp):
//   address  the team: its number, how many members it has, and the channel
//   local    the tag of this PE's call, and above it that of the other member's
//   words    why: a refusal
//   found    the number of the other member, or what that refusal says
//   bytes    what this PE gave, in bytes
//   wanted   what the other member gave
// Of a member that has not come (call_kind::team_wait): address is the same, words the tag, wanted the member's number,
// found 1 if another caller of this PE was in the channel meanwhile.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/team_tag.hpp"

namespace xio::dev::teams {

XIO_TEAM_FUNCTION constexpr std::uint64_t team_word(const xio_team_t& t) {
  return (t.id << 32) | (std::uint64_t{t.n_pes} << 8) | t.channel;
}

struct refused_call {
  refusal why;
  u32 pe, mine, other;  // tags
  u64 found, bytes, wanted;
};

// The call by value: so it travels in registers.
XIO_OUT_OF_LINE void record_refusal(refused_call what, const ctx_view& c, xio_status_t status, u64 team) {
  call_record& r = const_cast<ctx_view&>(c).failed_call;
  u64 number;
  if (!begin_record(r, &number)) return;
  store<scope::agent, order::relaxed>(&r.clock, wall_clock());
  store<scope::agent, order::relaxed>(&r.status, static_cast<u32>(static_cast<int>(status)));
  store<scope::agent, order::relaxed>(&r.kind, static_cast<u32>(call_kind::team_call));
  store<scope::agent, order::relaxed>(&r.pe, what.pe);
  store<scope::agent, order::relaxed>(&r.address, team);
  store<scope::agent, order::relaxed>(&r.local, (u64{what.other} << 32) | what.mine);
  store<scope::agent, order::relaxed>(&r.words, u64{static_cast<u32>(what.why)});
  store<scope::agent, order::relaxed>(&r.found, what.found);
  store<scope::agent, order::relaxed>(&r.bytes, what.bytes);
  store<scope::agent, order::relaxed>(&r.wanted, what.wanted);
  end_record(r, number);
}

// Why this PE refuses its own arguments. `number` is a member or root where the reason has one.
struct objection {
  refusal why = refusal::none;
  u32 number = 0;
  u64 mine = 0, other = 0;  // bytes
  XIO_DEVICE bool is_none() const { return why == refusal::none; }
};

// A call as this member states it, and its tag.
struct stated_call {
  u32 tag;
  objection why;
  XIO_DEVICE bool is_good() const { return why.is_none(); }
  XIO_DEVICE u32 stated() const { return is_good() ? tag : tag_of(why.why, why.number); }
};

// Records it, and hands the status back. The caller has the status, so quiet says nothing of it.
XIO_DEVICE xio_status_t refuse(const ctx_view& c, const xio_team_t& t, xio_status_t status, const refused_call& r) {
  record_refusal(r, c, status, team_word(t));
  return status;
}
template <class Group>
XIO_DEVICE xio_status_t refuse_own(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                   const objection& o) {
  if (g.leader()) refuse(ctx_of(ctx), t, XIO_ERR_ARG, {o.why, k_no_pe, tag, 0, o.number, o.mine, o.other});
  return XIO_ERR_ARG;
}

}  // namespace xio::dev::teams
