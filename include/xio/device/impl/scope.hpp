// SPDX-License-Identifier: MIT
// The group that makes a call: one thread, all threads of a wave, or all threads of a workgroup. Ops are written once
// over these three. Every member is collective over the group, and so is every op that takes one: all of its threads
// call, with the same arguments.
#pragma once
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev {

// The result of posting an op.
struct posted {
  xio_req_t request;
  xio_status_t status;

  XIO_DEVICE bool says_nothing() const { return request == 0 && status == XIO_OK; }
};

struct thread_group {
  XIO_DEVICE static thread_group here() { return {}; }
  XIO_DEVICE u32 rank() const { return 0; }
  XIO_DEVICE u32 count() const { return 1; }
  XIO_DEVICE bool leader() const { return true; }
  XIO_DEVICE void sync() const {}
  XIO_DEVICE void sync_found() const {}  // a sync where the group was found only just now
  XIO_DEVICE posted broadcast(const posted& mine) const { return mine; }
  XIO_DEVICE bool in_first_wave() const { return true; }
};

struct wave_group {
  lanes members;

  XIO_DEVICE static wave_group here() { return {whole_wave()}; }
  XIO_DEVICE u32 rank() const { return members.rank(); }
  XIO_DEVICE u32 count() const { return members.count(); }
  XIO_DEVICE bool leader() const { return members.leader(); }
  XIO_DEVICE void sync() const { members.sync(); }
  XIO_DEVICE void sync_found() const { sync_by_op(); }
  // A sync behind an op of all lanes.
  XIO_DEVICE void sync_by_op() const {
    if constexpr (!k_wave_ops_sync) sync();
  }
  // An op by loads and stores, or a quiet, mostly has nothing to report: one vote then replaces three words.
  XIO_DEVICE posted broadcast(const posted& mine) const {
    posted out{0, XIO_OK};
    if (members.ballot(leader() && !mine.says_nothing()) != 0) {
      out.request = members.first(mine.request);
      out.status = static_cast<xio_status_t>(static_cast<int>(members.first(static_cast<u32>(mine.status))));
    }
    sync_by_op();
    return out;
  }
  XIO_DEVICE bool in_first_wave() const { return true; }
};

struct workgroup_group {
  XIO_DEVICE static workgroup_group here() { return {}; }
  XIO_DEVICE u32 rank() const { return thread_in_workgroup(); }
  XIO_DEVICE u32 count() const { return workgroup_size(); }
  XIO_DEVICE bool leader() const { return thread_in_workgroup() == 0; }
  XIO_DEVICE void sync() const {
    before_shared_release();
    sync_workgroup();
  }
  XIO_DEVICE void sync_found() const { sync(); }
  // After a sync of the caller's, behind which everybody has read what was broadcast last.
  XIO_DEVICE posted broadcast(const posted& mine) const {
    if constexpr (k_barrier_votes) {
      // Nothing to say goes with the barrier.
      if (!sync_workgroup_any(leader() && !mine.says_nothing())) return posted{0, XIO_OK};
    }
    XIO_SHARED(posted, word);
    if (leader()) word = mine;
    sync();
    const posted out = word;
    return out;
  }
  XIO_DEVICE bool in_first_wave() const { return thread_in_workgroup() < wave_size(); }
};

// Runs `body`, which returns a posted, on one thread for all.
template <class Group, class Body>
XIO_DEVICE posted by_leader(const Group& g, Body&& body) {
  posted p{0, XIO_OK};
  g.sync();
  if (g.leader()) p = body();
  return g.broadcast(p);
}

// The same for a group that was found only just now.
template <class Group, class Body>
XIO_DEVICE posted by_leader_of_found(const Group& g, Body&& body) {
  posted p{0, XIO_OK};
  g.sync_found();
  if (g.leader()) p = body();
  return g.broadcast(p);
}

// Runs body(i), which returns a posted of one ring, for i < pieces on as many lanes of the group's first wave (at least
// that many are there). Returns the first failure, or the newest request: on a ring that works in order it stands for
// all. When this returns every piece was posted.
template <class Group, class Body>
XIO_DEVICE posted by_lanes(const Group& g, u32 pieces, Body&& body) {
  posted p{0, XIO_OK};
  g.sync();
  if (g.in_first_wave()) {
    const lanes wave = whole_wave();
    if (wave.rank() < pieces) p = body(wave.rank());
    wave.sync();
    posted all{0, XIO_OK};
    for (u64 left = wave.mask; left != 0; left &= left - 1) {
      const u32 from = lowest_bit(left);
      const auto status = static_cast<xio_status_t>(
          static_cast<int>(static_cast<u32>(wave.shuffle(static_cast<u32>(static_cast<int>(p.status)), from))));
      const xio_req_t request = wave.shuffle(p.request, from);
      if (all.status == XIO_OK) all.status = status;
      // Tickets have 48 bits here, and few are in flight: the newer one is ahead by little.
      const bool newer = ((request - all.request) << 16) >> 63 == 0;
      if (request != 0 && (all.request == 0 || newer)) all.request = request;
    }
    p = all;
  }
  return g.broadcast(p);
}

}  // namespace xio::dev
