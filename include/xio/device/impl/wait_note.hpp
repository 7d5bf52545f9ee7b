// SPDX-License-Identifier: MIT
// Waits that last are written down where other processes read them (docs/debugging.md). A lane writes once in each
// beat of the clock for as long as it waits: so nothing has to be taken back, and no op that does not wait has an
// instruction for it. Notes have no locks and no atomics, which not every GPU has in memory of the host.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

XIO_DEVICE bool is_another_beat(u64 before, u64 now) { return (before ^ now) >> k_beat_log2 != 0; }

// n but for workgroup, now and check. Neighbours, words or workgroups, have places of their own.
XIO_DEVICE void note_wait(const world_view& w, const wait_note& n) {
  if (w.waits == nullptr) return;
  const u32 workgroup = workgroup_index();
  const u32 mixed = static_cast<u32>(n.address >> 3) ^ static_cast<u32>(n.address >> 32);
  auto* out = reinterpret_cast<u64*>(w.waits + ((mixed + workgroup) & (k_wait_notes - 1)));
  const u64 now = deadline_clock();
  const u64 words[] = {
      u64{n.pe} << 32 | n.kind,     u64{n.compare} << 32 | workgroup, n.since, now, n.address, n.wanted, n.found,
      k_note_mark ^ now ^ n.address};
  XIO_UNROLL for (u32 i = 0; i < 8; ++i) store<scope::system, order::relaxed>(out + i, words[i]);
}

// At each turn of a thread that waits since `since` until all below the ticket `upto` are complete. Leaves do it, too:
// nothing is called, nothing is kept from turn to turn, and what stays the same the host has written.
XIO_DEVICE void note_queue(const ring_view& r, u64 upto, u64 since) {
  const u64 now = deadline_clock();
  if ((static_cast<u32>(now) & ((1u << k_beat_log2) - 1)) >> k_noted_log2 != 0) return;
  wait_note* const at = load<scope::agent, order::relaxed>(&r.state->note);
  if (at == nullptr) return;
  store<scope::system, order::relaxed>(&at->since, since);
  store<scope::system, order::relaxed>(&at->wanted, upto);
  const u64 done = load<scope::agent, order::relaxed>(&r.state->completed) & ~(k_reaping | k_even);
  store<scope::system, order::relaxed>(&at->found, done);
  store<scope::system, order::relaxed>(&at->now, now);
}

}  // namespace xio::dev
