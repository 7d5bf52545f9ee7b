// SPDX-License-Identifier: MIT
// A codec of a NIC family alone: a ring of 8 with six entries in flight, whose completions a test writes byte by byte.
#pragma once
#include "../gtest.hpp"
#include "xio/device/impl/rdma.hpp"

namespace xio::test {

template <class Codec>
struct codec_rig {
  // `credits` are left behind the six entries from `first` on.
  codec_rig(dev::u64 from, int credits) : first(from) {
    state.issued = state.published = first + 6;
    state.completed = first;
    state.credits = credits;
    r.state = &state;
    r.depth = 8;
    r.rdma.depth_log2 = 3;
    r.rdma.completions = cq;
    r.rdma.cq_depth = 16;
    r.rdma.cq_depth_log2 = 4;
  }
  void reap() { dev::ring_reap<Codec>(r); }
  // However often it is looked at: what failed stays the entry behind `failed` that have been completed.
  void expect_failed(dev::u64 completed, dev::u64 failed, dev::u32 vendor) {
    for (int i = 0; i < 3; ++i) reap();
    EXPECT_PAIRS((state.completed, first + completed), (static_cast<int>(state.failed), XIO_ERR_TRANSPORT),
                 (state.vendor, vendor), (state.failed_ticket, first + failed));
  }
  void expect_nothing() {
    reap();
    EXPECT_PAIRS((state.completed, first), (state.cq_head, 0u), (bell, 0u), (state.failed, 0u));
  }

  const dev::u64 first;
  dev::ring_state state{};
  dev::ring_view r{};
  dev::u64 bell = 0;
  alignas(64) unsigned char cq[4096 + 16 * 64] = {};
};

}  // namespace xio::test
