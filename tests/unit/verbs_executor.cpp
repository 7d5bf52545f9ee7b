// SPDX-License-Identifier: MIT
// The work requests that ops become, on a device of this test's own making: what is posted, what asks for a completion,
// how completions and failures become ends of ops.
#include "proxy/verbs_executor.hpp"
#include "../gtest.hpp"

#include <arpa/inet.h>

#include <numeric>

namespace {
// The states that queue pairs were set to. libibverbs has no way to give its own function another device.
std::vector<ibv_qp_state> g_states_set;
}  // namespace

extern "C" int ibv_modify_qp(ibv_qp*, ibv_qp_attr* a, int mask) {
  EXPECT_EQ(mask, IBV_QP_STATE);
  g_states_set.push_back(a->qp_state);
  return 0;
}

namespace xio::proxy {
namespace {

// A request as the device got it; inline bytes are taken at once, as libibverbs promises.
struct posted {
  ibv_send_wr wr;
  std::vector<ibv_sge> spans;
  std::vector<unsigned char> inlined;
  bool asks() const { return (wr.send_flags & IBV_SEND_SIGNALED) != 0; }
};

struct device {
  ibv_context context{};
  ibv_qp qp{};
  ibv_cq cq{};
  std::vector<posted> requests;
  std::vector<std::size_t> chains;  // requests of each ibv_post_send
  std::deque<ibv_wc> completions;
  int refuse_at = -1;  // the request that is not posted
  bool unreadable = false;

  device() {
    context.ops.post_send = [](ibv_qp* q, ibv_send_wr* wr, ibv_send_wr** bad) {
      return of(q->qp_context)->post(wr, bad);
    };
    context.ops.poll_cq = [](ibv_cq* q, int n, ibv_wc* wc) { return of(q->cq_context)->poll(n, wc); };
    qp.context = cq.context = &context;
    qp.qp_context = cq.cq_context = this;
  }
  static device* of(void* p) { return static_cast<device*>(p); }

  int post(ibv_send_wr* wr, ibv_send_wr** bad) {
    chains.push_back(0);
    for (; wr != nullptr; wr = wr->next) {
      if (static_cast<int>(requests.size()) == refuse_at) {
        *bad = wr;
        return EINVAL;
      }
      posted p{*wr, {wr->sg_list, wr->sg_list + wr->num_sge}, {}};
      for (const ibv_sge& s : p.spans)
        if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
          const auto* from = reinterpret_cast<const unsigned char*>(s.addr);
          p.inlined.insert(p.inlined.end(), from, from + s.length);
        }
      requests.push_back(p);
      ++chains.back();
    }
    return 0;
  }
  int poll(int n, ibv_wc* wc) {
    if (unreadable) return -EIO;
    int i = 0;
    for (; i < n && !completions.empty(); ++i) {
      wc[i] = completions.front();
      completions.pop_front();
    }
    return i;
  }
  void complete(std::uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS, std::uint32_t vendor = 0) {
    ibv_wc wc{};
    wc.wr_id = id;
    wc.status = status;
    wc.vendor_err = vendor;
    completions.push_back(wc);
  }
};

struct rig {
  std::vector<unsigned char> bounce = std::vector<unsigned char>(4 * 1024);
  device d;
  verbs_executor e;

  explicit rig(std::uint32_t depth = 64, std::uint32_t max_sge = 4, std::uint32_t max_inline = 64)
      : e({&d.qp, &d.cq, depth, max_sge, max_inline, bounce.data(), 0xb0, 4, 1024, "here <-> there"}) {
    g_states_set.clear();
  }

  void finish(std::uint64_t id) {
    d.complete(id);
    e.advance(1);
  }
  // How many ended well; the first failure.
  int ends(op_error* how) {
    int n = 0;
    while (e.ended(how) && !*how) ++n;
    return n;
  }
  int good_ends() {
    op_error how;
    const int n = ends(&how);
    EXPECT_FALSE(how);
    return n;
  }
};

op write_of(std::uint32_t bytes, bool signalled = false) {
  op o;
  o.what = verb::write;
  o.signalled = signalled;
  o.bytes = bytes;
  o.remote = 0x7000'0000'0000;
  o.remote_key = 0x1234;
  o.span_count = bytes != 0 ? 1 : 0;
  o.spans[0] = {0x10000, bytes, 0x77};
  return o;
}

op inline_of(std::uint32_t bytes) {
  op o = write_of(bytes);
  o.span_count = 0;
  o.is_inline = true;
  std::iota(o.inlined.begin(), o.inlined.begin() + bytes, static_cast<unsigned char>(bytes));
  return o;
}

op atomic_of(atomic_change c) {
  op o = write_of(8);
  o.what = verb::atomic;
  o.change = c;
  return o;
}

void post(rig& r, int writes) {
  for (int i = 0; i < writes; ++i) ASSERT_TRUE(r.e.begin(write_of(8)));
  r.e.advance(1);
}

constexpr std::uint64_t k_all = ~std::uint64_t{0};

// --- What is posted ----------------------------------------------------------------------------------

TEST(verbs_executor, write_and_read) {
  rig r;
  op o = write_of(100);
  ASSERT_TRUE(r.e.begin(o));
  o.what = verb::read;
  ASSERT_TRUE(r.e.begin(o));
  EXPECT_TRUE(r.d.requests.empty()) << "posted together, by advance";
  EXPECT_EQ(r.e.advance(1 << 20), 200u);
  ASSERT_EQ(r.d.chains, (std::vector<std::size_t>{2}));
  EXPECT_PAIRS((r.d.requests[0].wr.opcode, IBV_WR_RDMA_WRITE), (r.d.requests[1].wr.opcode, IBV_WR_RDMA_READ));
  for (const posted& p : r.d.requests) {
    EXPECT_PAIRS((p.wr.wr.rdma.remote_addr, 0x7000'0000'0000u), (p.wr.wr.rdma.rkey, 0x1234u));
    ASSERT_EQ(p.spans.size(), 1u);
    EXPECT_PAIRS((p.spans[0].addr, 0x10000u), (p.spans[0].length, 100u), (p.spans[0].lkey, 0x77u));
  }
}

TEST(verbs_executor, nothing_at_all_is_a_write_too) {
  rig r;
  ASSERT_TRUE(r.e.begin(write_of(0)));
  EXPECT_GE(r.e.advance(1 << 20), 1u);
  ASSERT_EQ(r.d.requests.size(), 1u);
  EXPECT_EQ(r.d.requests[0].wr.num_sge, 0);
}

TEST(verbs_executor, many_spans_become_several_requests) {
  rig r;
  op o = write_of(0);
  o.has_immediate = true;
  o.immediate = 0x01020304;
  o.span_count = 7;
  for (std::uint32_t i = 0; i < 7; ++i) {
    o.spans[i] = {0x10000 * (i + 1), i == 2 ? 0 : 10 * (i + 1), i};  // an empty one must not come to mean 2 GiB
    o.bytes += o.spans[i].bytes;
  }
  ASSERT_TRUE(r.e.begin(o));
  r.e.advance(1 << 20);
  ASSERT_EQ(r.d.requests.size(), 2u);
  EXPECT_PAIRS((r.d.requests[0].spans.size(), 4u), (r.d.requests[1].spans.size(), 2u),
               (r.d.requests[0].wr.opcode, IBV_WR_RDMA_WRITE), (r.d.requests[1].wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM),
               (r.d.requests[1].wr.imm_data, htonl(0x01020304)),
               (r.d.requests[0].wr.wr.rdma.remote_addr, 0x7000'0000'0000u),
               (r.d.requests[1].wr.wr.rdma.remote_addr, 0x7000'0000'0000u + 10 + 20 + 40 + 50),
               (r.d.requests[1].spans[0].lkey, 5u));
  r.finish(0);
  EXPECT_EQ(r.good_ends(), 0) << "half of it";
  r.finish(1);
  EXPECT_EQ(r.good_ends(), 1);
}

TEST(verbs_executor, inline_bytes_go_inline_or_by_registered_memory) {
  rig r;
  for (const std::uint32_t n : {0u, 1u, 64u, 65u, 972u}) ASSERT_TRUE(r.e.begin(inline_of(n)));
  r.e.advance(1 << 20);
  ASSERT_EQ(r.d.requests.size(), 5u);
  EXPECT_PAIRS((r.d.requests[0].wr.num_sge, 0), (r.d.requests[1].inlined, (std::vector<unsigned char>{1})));
  const op o = inline_of(64);
  EXPECT_EQ(r.d.requests[2].inlined, std::vector<unsigned char>(o.inlined.begin(), o.inlined.begin() + 64));
  for (const std::size_t i : {3u, 4u}) {
    const posted& p = r.d.requests[i];
    EXPECT_EQ(p.wr.send_flags & IBV_SEND_INLINE, 0u);
    ASSERT_EQ(p.spans.size(), 1u);
    EXPECT_EQ(p.spans[0].lkey, 0xb0u);
    EXPECT_EQ(p.spans[0].addr, reinterpret_cast<std::uint64_t>(r.bounce.data()) + 1024 * (i - 3));
    const op sent = inline_of(p.spans[0].length);
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(p.spans[0].addr), sent.inlined.data(), p.spans[0].length), 0);
  }
}

TEST(verbs_executor, bounce_memory_is_not_used_twice_at_once) {
  rig r;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(r.e.begin(inline_of(100)));
  EXPECT_FALSE(r.e.begin(inline_of(100)));
  EXPECT_TRUE(r.e.begin(inline_of(10))) << "which needs none";
  r.e.advance(1);
  EXPECT_FALSE(r.e.begin(inline_of(100)));
  r.finish(1);
  EXPECT_TRUE(r.e.begin(inline_of(100)));
  EXPECT_TRUE(r.e.begin(inline_of(100)));
  EXPECT_FALSE(r.e.begin(inline_of(100)));
}

TEST(verbs_executor, atomics) {
  rig r;
  ASSERT_TRUE(r.e.begin(atomic_of({true, 8, 5, 0, 0, 0, 0, false})));
  ASSERT_TRUE(r.e.begin(atomic_of({false, 8, 6, 0, 7, k_all, k_all, false})));
  r.e.advance(1);
  ASSERT_EQ(r.d.requests.size(), 2u);
  EXPECT_PAIRS((r.d.requests[0].wr.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD), (r.d.requests[0].wr.wr.atomic.compare_add, 5u),
               (r.d.requests[1].wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP), (r.d.requests[1].wr.wr.atomic.compare_add, 7u),
               (r.d.requests[1].wr.wr.atomic.swap, 6u), (r.d.requests[1].wr.wr.atomic.remote_addr, 0x7000'0000'0000u),
               (r.d.requests[1].wr.wr.atomic.rkey, 0x1234u), (r.d.requests[1].spans[0].lkey, 0x77u));
}

TEST(verbs_executor, atomics_that_verbs_do_not_have_fail_in_their_turn) {
  op crooked = atomic_of({true, 8, 5, 0, 0, 0, 0, false});
  crooked.remote += 4;
  op long_result = atomic_of({true, 8, 5, 0, 0, 0, 0, false});
  long_result.spans[0].bytes = 16;
  const struct {
    op o;
    op_error f;
  } all[] = {{atomic_of({true, 8, 5, 0x80000000, 0, 0, 0, false}), {outcome::remote_operation, rule::entry_modifier}},
             {atomic_of({true, 4, 5, 0, 0, 0, 0, false}), {outcome::remote_operation, rule::entry_modifier}},
             {atomic_of({true, 8, 5, 0, 0, 0, 0, true}), {outcome::remote_operation, rule::entry_modifier}},
             {atomic_of({false, 8, 6, 0, 7, 0xff, k_all, false}), {outcome::remote_operation, rule::entry_modifier}},
             {atomic_of({false, 8, 6, 0, 7, k_all, 0xff, false}), {outcome::remote_operation, rule::entry_modifier}},
             {crooked, {outcome::remote_invalid_request, rule::atomic_alignment}},
             {long_result, {outcome::local_length, rule::data_length}}};
  for (const auto& one : all) {
    rig r;
    ASSERT_TRUE(r.e.begin(write_of(8)));
    ASSERT_TRUE(r.e.begin(one.o));
    EXPECT_FALSE(r.e.begin(write_of(8))) << "nothing overtakes a failure";
    r.e.advance(1);
    EXPECT_EQ(r.d.requests.size(), 1u);
    op_error how;
    EXPECT_EQ(r.ends(&how), 0);
    r.finish(0);
    EXPECT_PAIRS((r.ends(&how), 1), (how.what, one.f.what), (how.why, one.f.why));
    EXPECT_FALSE(r.e.begin(write_of(8)));
  }
}

// --- Completions -------------------------------------------------------------------------------------

TEST(verbs_executor, the_last_of_a_chain_and_the_users_ask_for_a_completion) {
  rig r(128);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(r.e.begin(write_of(8, i == 3)));
  r.e.advance(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(r.d.requests[static_cast<std::size_t>(i)].asks(), i == 3 || i == 9) << i;
  r.finish(3);
  EXPECT_EQ(r.good_ends(), 4) << "one completion covers all before it";
  r.finish(9);
  EXPECT_PAIRS((r.good_ends(), 6), (r.good_ends(), 0));
}

TEST(verbs_executor, a_long_chain_asks_in_between) {
  rig r(128);
  int taken = 0;
  while (r.e.begin(write_of(8))) ++taken;
  EXPECT_EQ(taken, 32);
  r.e.advance(1);
  EXPECT_EQ(r.d.chains, (std::vector<std::size_t>{32}));
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(r.d.requests[i].asks(), i == 15 || i == 31) << i;
}

TEST(verbs_executor, never_more_under_way_than_the_device_has_room_for) {
  rig r(40);
  int taken = 0;
  for (int turn = 0; turn < 10; ++turn) {
    while (r.e.begin(write_of(8))) ++taken;
    r.e.advance(1);
  }
  EXPECT_EQ(taken, 40);
  r.finish(9);
  EXPECT_EQ(r.good_ends(), 10);
  for (int turn = 0; turn < 10; ++turn) {
    while (r.e.begin(write_of(8))) ++taken;
    r.e.advance(1);
  }
  EXPECT_EQ(taken, 50);
}

TEST(verbs_executor, nops_end_in_turn) {
  rig r;
  op nop;
  nop.what = verb::nop;
  ASSERT_TRUE(r.e.begin(nop));
  EXPECT_EQ(r.good_ends(), 1);
  ASSERT_TRUE(r.e.begin(write_of(8)));
  ASSERT_TRUE(r.e.begin(nop));
  r.e.advance(1);
  EXPECT_EQ(r.good_ends(), 0);
  r.finish(0);
  EXPECT_PAIRS((r.good_ends(), 2), (r.d.requests.size(), 1u));
}

// --- Failures ----------------------------------------------------------------------------------------

TEST(verbs_executor, a_failure_ends_what_came_before_well_and_the_rest_not) {
  rig r;
  post(r, 6);
  r.d.complete(2, IBV_WC_REM_ACCESS_ERR, 0x88);
  for (std::uint64_t i = 3; i < 6; ++i) r.d.complete(i, IBV_WC_WR_FLUSH_ERR);
  r.e.advance(1);
  op_error how;
  EXPECT_PAIRS((r.ends(&how), 2), (how.what, outcome::remote_access), (how.why, rule::peer_refused),
               (r.e.vendor(), 0x88u));
  EXPECT_FALSE(r.e.begin(write_of(8)));
  EXPECT_EQ(r.e.advance(1), 0u);
  EXPECT_TRUE(g_states_set.empty()) << "the device has seen to that itself";
}

TEST(verbs_executor, a_request_that_cannot_be_posted_is_a_failure) {
  rig r;
  r.d.refuse_at = 1;
  post(r, 3);
  op_error how;
  EXPECT_PAIRS((r.ends(&how), 0), (how.what, outcome::local_qp_operation),
               (r.e.vendor(), static_cast<std::uint32_t>(EINVAL)));
  EXPECT_EQ(g_states_set, std::vector{IBV_QPS_ERR}) << "request 0 must not move data after its failure";
}

TEST(verbs_executor, completions_of_no_request_are_not_believed) {
  for (const std::uint64_t id : {5u, 1u, 0u}) {
    rig r;
    post(r, 3);
    r.finish(1);
    EXPECT_EQ(r.good_ends(), 2);
    r.finish(id);
    op_error how;
    EXPECT_PAIRS((r.ends(&how), 0), (how.what, outcome::local_qp_operation), (g_states_set, std::vector{IBV_QPS_ERR}));
  }
}

TEST(verbs_executor, completions_that_cannot_be_read_are_a_failure) {
  rig r;
  ASSERT_TRUE(r.e.begin(write_of(8)));
  r.d.unreadable = true;
  r.e.advance(1);
  op_error how;
  EXPECT_PAIRS((r.ends(&how), 0), (how.what, outcome::local_qp_operation),
               (r.e.vendor(), static_cast<std::uint32_t>(EIO)), (g_states_set, std::vector{IBV_QPS_ERR}));
}

// libibverbs/verbs.h: enum ibv_wc_status; InfiniBand specification 11.6.2.
TEST(verbs_executor, statuses_are_named) {
  EXPECT_FALSE(error_of(IBV_WC_SUCCESS));
  EXPECT_EQ(error_of(IBV_WC_LOC_LEN_ERR).what, outcome::local_length);
  EXPECT_EQ(error_of(IBV_WC_LOC_QP_OP_ERR).what, outcome::local_qp_operation);
  EXPECT_EQ(error_of(IBV_WC_LOC_PROT_ERR).what, outcome::local_protection);
  EXPECT_EQ(error_of(IBV_WC_WR_FLUSH_ERR).what, outcome::flushed);
  EXPECT_EQ(error_of(IBV_WC_BAD_RESP_ERR).what, outcome::bad_response);
  EXPECT_EQ(error_of(IBV_WC_REM_INV_REQ_ERR).what, outcome::remote_invalid_request);
  EXPECT_EQ(error_of(IBV_WC_REM_ACCESS_ERR).what, outcome::remote_access);
  EXPECT_EQ(error_of(IBV_WC_REM_OP_ERR).what, outcome::remote_operation);
  EXPECT_EQ(error_of(IBV_WC_RETRY_EXC_ERR).what, outcome::retry_exceeded);
  EXPECT_EQ(error_of(IBV_WC_RNR_RETRY_EXC_ERR).what, outcome::rnr_retry_exceeded);
  for (int s = 1; s <= IBV_WC_TM_RNDV_INCOMPLETE; ++s)
    EXPECT_TRUE(error_of(static_cast<ibv_wc_status>(s))) << "no error may pass for a success: " << s;
}

}  // namespace
}  // namespace xio::proxy
