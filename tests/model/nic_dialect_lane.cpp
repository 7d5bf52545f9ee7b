// SPDX-License-Identifier: MIT
// Posting to queues of the families that write their own entries: the codec on the ring, over the NIC model, which
// checks every PSN, epoch, colour and index. Host threads are waves of one lane here, and kernels on the host platform
// whole waves, so this runs there only. The codecs' reading of completions is tested in nic_FAMILY_codec.cpp.
#include <xio/hip.h>

#include "nic_by_hand.hpp"
#include "nic_dialects.hpp"

namespace {

using namespace xio::test;
using rdma::payload;
using rdma::verb;

template <class Dialect>
XIO_DEVICE xio_status_t post(const ring_view& r, const world_view& w, const rdma::work& op, u64* ticket) {
  using codec = typename Dialect::codec;
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    const ring_claim claim{codec::slots(op), codec::packets(r, op), op.bytes};
    status = ring_post<codec>(group, r, w, claim, ticket,
                              [&](u64 at, bool last, u64 number = 0) { codec::encode(r, at, number, last, op); });
  });
  return status;
}

template <class Dialect>
xio_status_t post(lane_rig<Dialect>& rig, const rdma::work& op, u64* ticket) {
  return post<Dialect>(rig.ring(), rig.world(), op, ticket);
}

template <class Dialect>
xio_status_t post_and_wait(lane_rig<Dialect>& rig, const rdma::work& op) {
  u64 ticket = 0;
  const xio_status_t status = post(rig, op, &ticket);
  if (status != XIO_OK) return status;
  return ring_wait_below<typename Dialect::codec>(rig.ring(), ticket + 1, rig.world());
}

template <class Dialect>
void expect_at_rest(lane_rig<Dialect>& rig, const shape& s, u64 tickets) {
  const ring_state& state = rig.state();
  EXPECT_EQ(state.failed, 0u) << "vendor " << state.vendor;
  EXPECT_PAIRS((state.issued, s.ticket_start + tickets), (state.completed, state.issued),
               (state.published, state.issued), (state.credits, s.depth - Dialect::k_kept_free));
}

void fill(unsigned char* p, std::size_t n, unsigned salt) {
  for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(i * 131 + salt + (i >> 8));
}

template <class Dialect>
struct nic_dialect_lane : testing::Test {
  // body(rig, shape), with a queue of its own for each shape.
  template <class Body>
  void each(const std::vector<shape>& shapes, Body&& body) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(s);
      lane_rig<Dialect> rig(s);
      body(rig, s);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
};

struct dialect_names {
  template <class Dialect>
  static std::string GetName(int) {
    return Dialect::k_name;
  }
};
using dialects = testing::Types<bnxt, ernic, ionic>;
TYPED_TEST_SUITE(nic_dialect_lane, dialects, dialect_names);

TYPED_TEST(nic_dialect_lane, puts_of_all_sizes) {
  this->each(TypeParam::shapes(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    fill(rig.local_memory(), 4096, 1);
    u64 count = 0;
    for (u32 n = 0; n <= 1100; n += n < 130 ? 1 : 97)
      for (const payload from : {payload::memory, payload::inlined}) {
        if (from == payload::inlined && n > TypeParam::k_inline) continue;
        std::memset(rig.remote_memory(), 0xee, 4096);
        ASSERT_EQ(post_and_wait(rig, rig.op(verb::write, from, 3 + n % 5, 64 + n, n)), XIO_OK) << n;
        ++count;
        ASSERT_EQ(std::memcmp(rig.remote_memory() + 64 + n, rig.local_memory() + 3 + n % 5, n), 0) << n;
        ASSERT_EQ(rig.remote_memory()[63 + n], 0xee);
        ASSERT_EQ(rig.remote_memory()[64 + 2 * n], 0xee);
      }
    for (u32 n = 1; n <= 8; n *= 2) {
      std::memset(rig.remote_memory(), 0xee, 64);
      rdma::work w = rig.op(verb::write, payload::value, 0, 16, n);
      w.first = 0xf1e2d3c4b5a69788;
      ASSERT_EQ(post_and_wait(rig, w), XIO_OK);
      ++count;
      EXPECT_EQ(std::memcmp(rig.remote_memory() + 16, &w.first, n), 0) << n;
      EXPECT_EQ(rig.remote_memory()[16 + n], 0xee);
    }
    expect_at_rest(rig, s, count);
  });
}

TYPED_TEST(nic_dialect_lane, gets_and_atomics) {
  this->each(TypeParam::shapes(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    auto* word = reinterpret_cast<u64*>(rig.remote_memory() + 512);
    u64 sum = 0, count = 0;
    for (u32 i = 1; i < 200; ++i) {
      const u32 n = i * 7;
      fill(rig.remote_memory() + 4096, n, i);
      ASSERT_EQ(post_and_wait(rig, rig.op(verb::read, payload::memory, 8192, 4096, n)), XIO_OK);
      ASSERT_EQ(std::memcmp(rig.local_memory() + 8192, rig.remote_memory() + 4096, n), 0) << n;
      rdma::work add = rig.op(verb::fetch_add, payload::memory, 0, 512, 8);
      add.first = (u64{i} << 32) + i;
      add.second = 0x5555;  // not of a fetch-add
      ASSERT_EQ(post_and_wait(rig, add), XIO_OK);
      ASSERT_EQ(*reinterpret_cast<u64*>(rig.local_memory()), sum);
      sum += add.first;
      rdma::work swap = rig.op(verb::compare_swap, payload::memory, 8, 512, 8);
      swap.first = sum + 1;
      swap.second = i % 2 == 0 ? sum : sum + 1;
      ASSERT_EQ(post_and_wait(rig, swap), XIO_OK);
      ASSERT_EQ(*reinterpret_cast<u64*>(rig.local_memory() + 8), sum);
      sum += i % 2 == 0;
      count += 3;
    }
    EXPECT_EQ(*word, sum);
    expect_at_rest(rig, s, count);
  });
}

TYPED_TEST(nic_dialect_lane, many_laps_without_waiting) {
  this->each(TypeParam::shapes(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    auto* word = reinterpret_cast<u64*>(rig.remote_memory());
    u64 sum = 0;
    for (u64 i = 0; i < TypeParam::k_ops; ++i) {
      u64 ticket = 0;
      rdma::work add = rig.op(verb::fetch_add, payload::memory, 0, 0, 8);
      add.first = i;
      const u32 n = 1 + static_cast<u32>(i * 37 % 900);
      const bool adds = i % 3 == 0;
      if (adds) sum += i;
      const payload from = n <= TypeParam::k_inline ? payload::inlined : payload::memory;
      ASSERT_EQ(post(rig, adds ? add : rig.op(verb::write, from, 64, 64, n), &ticket), XIO_OK);
      ASSERT_EQ(ticket, s.ticket_start + i);
    }
    ASSERT_EQ(rig.quiet(), XIO_OK);
    EXPECT_EQ(*word, sum);
    expect_at_rest(rig, s, TypeParam::k_ops);
  });
}

// One entry of several lanes' bytes.
TYPED_TEST(nic_dialect_lane, a_gathered_put) {
  this->each(TypeParam::shapes(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    using codec = typename TypeParam::codec;
    for (u32 n = 4; n <= TypeParam::k_inline; n += 4) {
      std::memset(rig.remote_memory(), 0xee, 256);
      const rdma::work w = rig.op(verb::write, payload::gathered, 0, 32, n);
      const ring_claim claim{1, codec::packets(rig.ring(), w), n};
      ring_result result{};
      const auto fill = [&](u64 at, u64 number) {
        for (u32 i = 0; i < n; i += 4) std::memset(codec::inline_at(rig.ring(), at, i), static_cast<int>(i + n), 4);
        codec::encode(rig.ring(), at, number, true, w);
      };
      ASSERT_EQ(ring_post_together<codec>(lanes{1}, rig.ring(), rig.world(), claim, &result, fill), XIO_OK);
      ASSERT_EQ(rig.quiet(), XIO_OK);
      for (u32 i = 0; i < n; ++i)
        ASSERT_EQ(rig.remote_memory()[32 + i], static_cast<unsigned char>(i / 4 * 4 + n)) << n;
      EXPECT_EQ(rig.remote_memory()[32 + n], 0xee);
    }
    expect_at_rest(rig, s, TypeParam::k_inline / 4);
  });
}

TYPED_TEST(nic_dialect_lane, several_threads) {
  this->each(TypeParam::shapes(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    constexpr u64 k_each = TypeParam::k_each, k_threads = 4;
    std::atomic<int> bad{0};
    std::vector<u64> seen(k_threads * k_each);
    xio::test::at_once<u64>(k_threads, [&](u64 t) {
      for (u64 i = 0; i < k_each; ++i) {
        rdma::work add = rig.op(verb::fetch_add, payload::memory, 64 * t, 0, 8);
        add.first = 1;
        const u32 n = static_cast<u32>(1 + (i * 91 + t) % 1500);
        u64 ticket = 0;
        if (post(rig, rig.op(verb::write, payload::memory, 4096, 4096 + 4096 * t, n), &ticket) != XIO_OK) ++bad;
        if (post_and_wait(rig, add) != XIO_OK) ++bad;
        seen[t * k_each + i] = *reinterpret_cast<const u64*>(rig.local_memory() + 64 * t);
      }
    });
    EXPECT_EQ(bad, 0);
    expect_each_once(seen);
    expect_at_rest(rig, s, 2 * k_threads * k_each);
  });
}

// --- Waves -------------------------------------------------------------------------------------------

constexpr u32 k_groups = 3, k_lanes = 96, k_rounds = 7;  // a short wave in each workgroup
constexpr std::size_t k_piece = 288, k_results = 768 * 1024, k_counter = k_results;

struct wave_job {
  const ring_view* ring;
  const world_view* world;
  rdma::work put, add;  // of the first piece, and of the first result
  u32* bad;
};

// Lanes of one wave post entries of every kind together, and of one, two and three packets, so that every lane's PSN
// depends on the others'.
template <class Dialect>
__global__ void put_and_add(const wave_job* j) {
  const u32 me = workgroup_index() * workgroup_size() + thread_in_workgroup();
  for (u32 i = 0; i < k_rounds; ++i) {
    const u32 piece = me * k_rounds + i;
    u64 ticket = 0;
    rdma::work op = j->put;
    op.bytes = (piece * 37) % k_piece;
    op.local += piece % 128 * k_piece;
    op.remote += piece * k_piece;
    if (op.bytes <= Dialect::k_inline && piece % 2 == 0) op.from = payload::inlined;
    if (piece % 5 == 4) {
      op = j->add;
      op.local += u64{piece} * 8;
    }
    if (post<Dialect>(*j->ring, *j->world, op, &ticket) != XIO_OK) fetch_add<scope::system, order::relaxed>(j->bad, 1u);
  }
  if (ring_quiet<typename Dialect::codec>(*j->ring, *j->world) != XIO_OK)
    fetch_add<scope::system, order::relaxed>(j->bad, 1u);
}

TYPED_TEST(nic_dialect_lane, waves) {
  this->each(TypeParam::shapes(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    constexpr u32 k_pieces = k_groups * k_lanes * k_rounds;
    static_assert(k_results + 8 * k_pieces <= lane_rig<TypeParam>::k_bytes && k_pieces * k_piece <= k_counter);
    fill(rig.local_memory(), 128 * k_piece, 9);
    u32 bad = 0;
    wave_job j{&rig.ring(), &rig.world(), rig.op(verb::write, payload::memory, 0, 0, 0),
               rig.op(verb::fetch_add, payload::memory, k_results, k_counter, 8), &bad};
    j.add.first = 1;
    hipLaunchKernelGGL(put_and_add<TypeParam>, dim3(k_groups), dim3(k_lanes), 0, nullptr, &j);
    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
    EXPECT_EQ(bad, 0u);
    expect_at_rest(rig, s, k_pieces);
    u32 adds = 0;
    std::vector<bool> had(k_pieces);
    for (u32 piece = 0; piece < k_pieces; ++piece) {
      if (piece % 5 == 4) {
        u64 old;
        std::memcpy(&old, rig.local_memory() + k_results + 8 * piece, 8);
        ASSERT_LT(old, k_pieces / 5 + 1);
        ASSERT_FALSE(had[old]) << old;
        had[old] = true;
        ++adds;
      } else {
        const std::size_t n = (piece * 37) % k_piece;
        ASSERT_EQ(std::memcmp(rig.remote_memory() + piece * k_piece, rig.local_memory() + piece % 128 * k_piece, n), 0)
            << piece;
      }
    }
    EXPECT_EQ(*reinterpret_cast<u64*>(rig.remote_memory() + k_counter), adds);
    EXPECT_LE(rig.state().doorbells, k_pieces);
  });
}

// --- Failures ----------------------------------------------------------------------------------------

TYPED_TEST(nic_dialect_lane, a_wrong_remote_key_fails_the_ring) {
  this->each(TypeParam::failing(), [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    rdma::work w = rig.op(verb::write, payload::memory, 0, 0, 100);
    w.rkey ^= 0x100;
    EXPECT_PAIRS((post_and_wait(rig, w), XIO_ERR_TRANSPORT), (rig.state().vendor, TypeParam::k_remote_access),
                 (rig.state().failed_ticket, s.ticket_start),
                 (post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 100)), XIO_ERR_TRANSPORT),
                 (rig.quiet(), XIO_ERR_TRANSPORT));
  });
}

TYPED_TEST(nic_dialect_lane, what_was_before_is_complete) {
  for (const ending& end : TypeParam::k_endings)
    this->each(TypeParam::failing(), [&](lane_rig<TypeParam>& rig, const shape& s) {
      one_fault plan(one_fault::kind::fail, 3);
      plan.fault.how = {end.what, m::rule::injected};
      rig.nic().set_faults(&plan);
      u64 tickets[6];
      for (u64& t : tickets) post(rig, rig.op(verb::write, payload::memory, 0, 0, 300), &t);
      EXPECT_EQ(ring_wait_below<typename TypeParam::codec>(rig.ring(), s.ticket_start + 4, rig.world()),
                XIO_ERR_TRANSPORT);
      for (u64 i = 0; i < 3; ++i) EXPECT_EQ(ring_test(rig.ring(), s.ticket_start + i), XIO_OK) << i;
      EXPECT_PAIRS((ring_test(rig.ring(), s.ticket_start + 3), XIO_ERR_TRANSPORT),
                   (rig.state().failed_ticket, s.ticket_start + 3), (rig.state().vendor, end.vendor));
      rig.nic().set_faults(nullptr);
    });
}

TYPED_TEST(nic_dialect_lane, a_lost_op_is_a_timeout) {
  // The other tests keep the long deadline: on a busy machine the NIC's thread may not run for 200 ms.
  std::vector<shape> hasty = TypeParam::failing();
  for (shape& s : hasty) s.timeout_ms = 200;
  this->each(hasty, [](lane_rig<TypeParam>& rig, [[maybe_unused]] const shape& s) {
    one_fault plan(one_fault::kind::lose, 0);
    rig.nic().set_faults(&plan);
    EXPECT_EQ(post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 300)), XIO_ERR_TIMEOUT);
    rig.nic().set_faults(nullptr);
  });
}

// The count of a failed message must never be taken without its error.
TYPED_TEST(nic_dialect_lane, a_failed_put_never_looks_done) {
  for (int i = 0; i < 100; ++i)
    this->each(TypeParam::failing(), [](lane_rig<TypeParam>& rig, const shape&) {
      ASSERT_EQ(post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 8)), XIO_OK);
      rdma::work w = rig.op(verb::write, payload::memory, 0, 0, 8);
      w.rkey ^= 0x100;
      u64 ticket = 0;
      post(rig, w, &ticket);
      while (ring_failure(rig.ring()) == XIO_OK) {
        ring_reap<typename TypeParam::codec>(rig.ring());
        ASSERT_NE(ring_test(rig.ring(), ticket), XIO_OK);
      }
      ASSERT_EQ(rig.state().failed_ticket, ticket);
    });
}

TEST(nic_bnxt_lane, a_spoiled_msn_entry_is_found) {
  lane_rig<bnxt> rig(bnxt::failing()[0]);
  rdma::work w = rig.op(verb::write, payload::memory, 0, 0, 300);
  u64 ticket = 0;
  ASSERT_EQ((ring_post<bnxt_codec>(
                lanes{1}, rig.ring(), rig.world(), ring_claim{1, 1, 300}, &ticket,
                [&](u64 at, bool last, u64 number) { bnxt_codec::encode(rig.ring(), at, number, last, w); })),
            XIO_OK);  // claims one packet of two
  EXPECT_EQ(rig.quiet(), XIO_OK);
  EXPECT_EQ(post_and_wait(rig, w), XIO_ERR_TRANSPORT);
  EXPECT_EQ(rig.state().vendor, 0x3u);  // local QP operation
}

}  // namespace
