// SPDX-License-Identifier: MIT
// Posting to a queue of the emulated NIC (legacy format): the codec on the ring, over the NIC model, which checks every
// index. Host threads are waves of one lane here, and kernels on the host platform whole waves, so this runs there
// only.
#include <gtest/gtest.h>
#include <xio/hip.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <ostream>
#include <thread>
#include <vector>

#include "gpu/gpu.hpp"
#include "model/nic/families.hpp"
#include "progress/machine.hpp"
#include "proxy/nic.hpp"
#include "proxy/shm_executor.hpp"
#include "xio/device/ernic.hpp"

namespace {

using namespace xio::dev;
namespace m = xio::proxy;
namespace rdma = xio::dev::rdma;
using rdma::payload;
using rdma::verb;
using xio::gpu::buffer;
using xio::gpu::place;

struct shape {
  u32 depth = 8;
  u64 ticket_start = 0;
  u32 timeout_ms = 10000;
};

void PrintTo(const shape& s, std::ostream* out) { *out << "depth " << s.depth << " from " << s.ticket_start; }

// One queue to a peer whose heap has an address of its own.
class lane_rig {
 public:
  static constexpr std::size_t k_bytes = 1 << 20;
  static constexpr u64 k_far_address = 0x7000'0000'0000;
  static constexpr u32 k_far_key = 0xabc00;

  explicit lane_rig(const shape& s)
      : near_(k_bytes, place::shared),
        far_(k_bytes, place::shared),
        nic_(fabric(), 5),
        family_(xio::model::rdma::ernic_family()),
        state_(sizeof(ring_state), place::device),
        marks_(s.depth * sizeof(u64), place::device),
        slots_(s.depth * std::size_t{family_.slot_bytes}, place::shared),
        completion_(family_.completion_bytes(xio::proxy::completion_depth(family_, s.depth, 0)), place::shared),
        side_(family_.side_bytes(s.depth), place::shared),
        bells_(2 * 128, place::shared),
        machine_(1) {
    view_.slots_lkey = nic_.register_memory(slots_.data(), slots_.size(), m::local_read).lkey;
    lkey_ = nic_.register_memory(near_.data(), k_bytes, m::local_read | m::local_write).lkey;
    lay_out(s);
    world_.ticks_per_ms = xio::gpu::ticks_per_ms();
    world_.timeout_ticks = s.timeout_ms * world_.ticks_per_ms;
    machine_.add(&nic_);
  }
  ~lane_rig() { machine_.remove(&nic_); }

  unsigned char* near() { return near_.as<unsigned char>(); }
  unsigned char* far() { return far_.as<unsigned char>(); }
  const ring_view& ring() const { return view_; }
  const world_view& world() const { return world_; }
  m::nic& nic() { return nic_; }
  ring_state& state() { return *state_.as<ring_state>(); }

  rdma::work op(verb what, payload from, std::size_t local, std::size_t remote, u32 bytes) {
    rdma::work w{};
    w.what = what;
    w.from = from;
    w.bytes = bytes;
    w.remote = k_far_address + remote;
    w.rkey = k_far_key;
    w.lkey = lkey_;
    w.local = reinterpret_cast<u64>(near() + local);
    return w;
  }
  xio_status_t quiet() { return ring_quiet<ernic_codec>(view_, world_); }

 private:
  std::unique_ptr<m::fabric> fabric() {
    auto f = std::make_unique<m::shm_fabric>(xio::gpu::payload(), k_bytes, 5);
    f->adopt(1, k_far_key,
             {k_far_address, k_bytes, far_.as<unsigned char>(), m::remote_read | m::remote_write | m::remote_atomic});
    return f;
  }

  void lay_out(const shape& s) {
    view_.state = state_.as<ring_state>();
    view_.marks = marks_.as<u64>();
    view_.slots = slots_.as<unsigned char>();
    view_.depth = s.depth;
    view_.depth_log2 = lowest_bit(s.depth);
    view_.cq_depth = xio::proxy::completion_depth(family_, s.depth, 0);
    view_.cq_depth_log2 = view_.cq_depth == 0 ? 0 : lowest_bit(view_.cq_depth);
    view_.kind = family_.kind;
    view_.doorbell = bells_.as<u64>();
    view_.cq_doorbell = reinterpret_cast<u32*>(bells_.as<u64>() + 16);
    view_.completion = completion_.as<unsigned char>();
    view_.side = side_.as<unsigned char>();
    ring_state& state = this->state();
    state.issued = state.published = state.completed = s.ticket_start;
    state.credits = s.depth;
    const xio::proxy::queue_plan plan{s.ticket_start, k_bytes, 1024, 0};
    family_.prepare(view_, xio::proxy::image_of(view_), state, plan);
    view_.id = nic_.create_queue([&](u32 number) { return family_.decode(view_, plan, number); });
    nic_.connect(view_.id, 1, {}, 0);
  }

  buffer near_, far_;
  m::nic nic_;
  const xio::proxy::family& family_;
  buffer state_, marks_, slots_, completion_, side_, bells_;
  ring_view view_{};
  world_view world_{};
  u32 lkey_ = 0;
  xio::progress::machine machine_;
};

XIO_DEVICE xio_status_t post(const ring_view& r, const world_view& w, const rdma::work& op, u64* ticket) {
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    const ring_claim claim{ernic_codec::slots(op), ernic_codec::packets(r, op), op.bytes};
    status = ring_post<ernic_codec>(group, r, w, claim, ticket,
                                    [&](u64 at, bool last) { ernic_codec::encode(r, at, 0, last, op); });
  });
  return status;
}

xio_status_t post_and_wait(lane_rig& rig, const rdma::work& op) {
  u64 ticket = 0;
  const xio_status_t status = post(rig.ring(), rig.world(), op, &ticket);
  return status != XIO_OK ? status : ring_wait_below<ernic_codec>(rig.ring(), ticket + 1, rig.world());
}

void expect_at_rest(lane_rig& rig, const shape& s, u64 tickets) {
  const ring_state& state = rig.state();
  EXPECT_EQ(state.failed, 0u) << "vendor " << state.vendor;
  EXPECT_EQ(state.issued, s.ticket_start + tickets);
  EXPECT_EQ(state.completed, state.issued);
  EXPECT_EQ(state.published, state.issued);
  EXPECT_EQ(state.credits, s.depth);
}

void fill(unsigned char* p, std::size_t n, unsigned salt) {
  for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(i * 131 + salt + (i >> 8));
}

// Starts near the wraps of the indices, of 16 and 32 bits, and near the end of tickets.
class NicErnicLane : public testing::TestWithParam<shape> {
 protected:
  NicErnicLane() : rig(GetParam()) {}
  lane_rig rig;
};
INSTANTIATE_TEST_SUITE_P(Starts, NicErnicLane,
                         testing::Values(shape{}, shape{4, 4}, shape{8, (u64{1} << 16) - 8},
                                         shape{64, (u64{1} << 32) - 64}, shape{4, (u64{1} << 61) - 40}));

TEST_P(NicErnicLane, PutsOfAllSizes) {
  fill(rig.near(), 4096, 1);
  u64 count = 0;
  for (u32 n = 0; n <= 1100; n += n < 130 ? 1 : 97)
    for (const payload from : {payload::memory, payload::inlined}) {
      if (from == payload::inlined && n > 32) continue;
      std::memset(rig.far(), 0xee, 4096);
      ASSERT_EQ(post_and_wait(rig, rig.op(verb::write, from, 3 + n % 5, 64 + n, n)), XIO_OK) << n;
      ++count;
      ASSERT_EQ(std::memcmp(rig.far() + 64 + n, rig.near() + 3 + n % 5, n), 0) << n;
      ASSERT_EQ(rig.far()[63 + n], 0xee);
      ASSERT_EQ(rig.far()[64 + 2 * n], 0xee);
    }
  for (u32 n = 1; n <= 8; n *= 2) {
    std::memset(rig.far(), 0xee, 64);
    rdma::work w = rig.op(verb::write, payload::value, 0, 16, n);
    w.first = 0xf1e2d3c4b5a69788;
    ASSERT_EQ(post_and_wait(rig, w), XIO_OK);
    ++count;
    EXPECT_EQ(std::memcmp(rig.far() + 16, &w.first, n), 0) << n;
    EXPECT_EQ(rig.far()[16 + n], 0xee);
  }
  expect_at_rest(rig, GetParam(), count);
}

TEST_P(NicErnicLane, GetsAndAtomics) {
  auto* word = reinterpret_cast<u64*>(rig.far() + 512);
  u64 sum = 0, count = 0;
  for (u32 i = 1; i < 300; ++i) {
    const u32 n = i * 7;
    fill(rig.far() + 4096, n, i);
    ASSERT_EQ(post_and_wait(rig, rig.op(verb::read, payload::memory, 8192, 4096, n)), XIO_OK);
    ASSERT_EQ(std::memcmp(rig.near() + 8192, rig.far() + 4096, n), 0) << n;
    rdma::work add = rig.op(verb::fetch_add, payload::memory, 0, 512, 8);
    add.first = i;
    add.second = 0x5555;  // not of a fetch-add
    ASSERT_EQ(post_and_wait(rig, add), XIO_OK);
    ASSERT_EQ(*reinterpret_cast<u64*>(rig.near()), sum);
    sum += i;
    rdma::work swap = rig.op(verb::compare_swap, payload::memory, 8, 512, 8);
    swap.first = sum + 1;
    swap.second = i % 2 == 0 ? sum : sum + 1;
    ASSERT_EQ(post_and_wait(rig, swap), XIO_OK);
    ASSERT_EQ(*reinterpret_cast<u64*>(rig.near() + 8), sum);
    sum += i % 2 == 0;
    count += 3;
  }
  EXPECT_EQ(*word, sum);
  expect_at_rest(rig, GetParam(), count);
}

TEST_P(NicErnicLane, ManyLapsWithoutWaiting) {
  auto* word = reinterpret_cast<u64*>(rig.far());
  for (u64 i = 0; i < 20000; ++i) {
    u64 ticket = 0;
    rdma::work add = rig.op(verb::fetch_add, payload::memory, 0, 0, 8);
    add.first = i;
    const u32 n = 1 + static_cast<u32>(i * 37 % 900);
    ASSERT_EQ(
        post(rig.ring(), rig.world(), i % 3 == 0 ? add : rig.op(verb::write, payload::memory, 64, 64, n), &ticket),
        XIO_OK);
    ASSERT_EQ(ticket, GetParam().ticket_start + i);
  }
  ASSERT_EQ(rig.quiet(), XIO_OK);
  EXPECT_EQ(*word, u64{19998} / 3 * (19998 / 3 + 1) / 2 * 3);
  expect_at_rest(rig, GetParam(), 20000);
}

// One entry of several lanes' bytes.
TEST_P(NicErnicLane, AGatheredPut) {
  for (u32 n = 4; n <= 32; n += 4) {
    std::memset(rig.far(), 0xee, 256);
    const rdma::work w = rig.op(verb::write, payload::gathered, 0, 32, n);
    u64 ticket = 0;
    const ring_claim claim{1, ernic_codec::packets(rig.ring(), w), n};
    ASSERT_EQ((ring_post_together<ernic_codec>(lanes{1}, rig.ring(), rig.world(), claim, &ticket,
                                               [&](u64 at, u64 number) {
                                                 for (u32 i = 0; i < n; i += 4)
                                                   std::memset(ernic_codec::inline_at(rig.ring(), at, i),
                                                               static_cast<int>(i + n), 4);
                                                 ernic_codec::encode(rig.ring(), at, number, true, w);
                                               })),
              XIO_OK);
    ASSERT_EQ(rig.quiet(), XIO_OK);
    for (u32 i = 0; i < n; ++i) ASSERT_EQ(rig.far()[32 + i], static_cast<unsigned char>(i / 4 * 4 + n)) << n;
    EXPECT_EQ(rig.far()[32 + n], 0xee);
  }
  expect_at_rest(rig, GetParam(), 8);
}

TEST_P(NicErnicLane, SeveralThreads) {
  constexpr u64 k_each = 2000, k_threads = 4;
  std::atomic<int> bad{0};
  std::vector<std::vector<u64>> seen(k_threads);
  std::vector<std::thread> threads;
  for (u64 t = 0; t < k_threads; ++t)
    threads.emplace_back([&, t] {
      for (u64 i = 0; i < k_each; ++i) {
        rdma::work add = rig.op(verb::fetch_add, payload::memory, 64 * t, 0, 8);
        add.first = 1;
        const u32 n = static_cast<u32>(1 + (i * 91 + t) % 1500);
        u64 ticket = 0;
        if (post(rig.ring(), rig.world(), rig.op(verb::write, payload::memory, 4096, 4096 + 4096 * t, n), &ticket) !=
            XIO_OK)
          ++bad;
        if (post_and_wait(rig, add) != XIO_OK) ++bad;
        seen[t].push_back(*reinterpret_cast<const u64*>(rig.near() + 64 * t));
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(bad, 0);
  std::vector<bool> had(k_threads * k_each);
  for (const auto& values : seen)
    for (const u64 v : values) {
      ASSERT_LT(v, had.size());
      ASSERT_FALSE(had[v]) << v;
      had[v] = true;
    }
  expect_at_rest(rig, GetParam(), 2 * k_threads * k_each);
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

// Lanes of one wave post entries of every kind together.
__global__ void put_and_add(const wave_job* j) {
  const u32 me = workgroup_index() * workgroup_size() + thread_in_workgroup();
  for (u32 i = 0; i < k_rounds; ++i) {
    const u32 piece = me * k_rounds + i;
    u64 ticket = 0;
    rdma::work op = j->put;
    op.bytes = (piece * 37) % k_piece;
    op.local += piece % 128 * k_piece;
    op.remote += piece * k_piece;
    if (op.bytes <= 32 && piece % 2 == 0) op.from = payload::inlined;
    if (piece % 5 == 4) {
      op = j->add;
      op.local += u64{piece} * 8;
    }
    if (post(*j->ring, *j->world, op, &ticket) != XIO_OK) fetch_add<scope::system, order::relaxed>(j->bad, 1u);
  }
  if (ring_quiet<ernic_codec>(*j->ring, *j->world) != XIO_OK) fetch_add<scope::system, order::relaxed>(j->bad, 1u);
}

TEST_P(NicErnicLane, Waves) {
  constexpr u32 k_pieces = k_groups * k_lanes * k_rounds;
  static_assert(k_results + 8 * k_pieces <= lane_rig::k_bytes && k_pieces * k_piece <= k_counter);
  fill(rig.near(), 128 * k_piece, 9);
  u32 bad = 0;
  wave_job j{&rig.ring(), &rig.world(), rig.op(verb::write, payload::memory, 0, 0, 0),
             rig.op(verb::fetch_add, payload::memory, k_results, k_counter, 8), &bad};
  j.add.first = 1;
  hipLaunchKernelGGL(put_and_add, dim3(k_groups), dim3(k_lanes), 0, nullptr, &j);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(bad, 0u);
  expect_at_rest(rig, GetParam(), k_pieces);
  u32 adds = 0;
  std::vector<bool> had(k_pieces);
  for (u32 piece = 0; piece < k_pieces; ++piece) {
    if (piece % 5 == 4) {
      u64 old;
      std::memcpy(&old, rig.near() + k_results + 8 * piece, 8);
      ASSERT_LT(old, k_pieces / 5 + 1);
      ASSERT_FALSE(had[old]) << old;
      had[old] = true;
      ++adds;
    } else {
      const std::size_t n = (piece * 37) % k_piece;
      ASSERT_EQ(std::memcmp(rig.far() + piece * k_piece, rig.near() + piece % 128 * k_piece, n), 0) << piece;
    }
  }
  EXPECT_EQ(*reinterpret_cast<u64*>(rig.far() + k_counter), adds);
  EXPECT_LE(rig.state().doorbells, k_pieces);
}

// --- Failures ----------------------------------------------------------------------------------------

class NicErnicFailure : public testing::Test {
 protected:
  NicErnicFailure() : rig({8, 8, 200}) {}
  lane_rig rig;
};

struct scripted : m::fault_plan {
  m::injected_fault fault;
  std::uint64_t at = 0;
  m::injected_fault next(std::uint32_t, std::uint64_t nth, const m::op&) override {
    return nth == at ? fault : m::injected_fault{};
  }
};

TEST_F(NicErnicFailure, AWrongRemoteKeyFailsTheRing) {
  rdma::work w = rig.op(verb::write, payload::memory, 0, 0, 100);
  w.rkey ^= 0x100;
  EXPECT_EQ(post_and_wait(rig, w), XIO_ERR_TRANSPORT);
  EXPECT_EQ(rig.state().vendor, 10u | 17u << 8);  // remote access, rule remote_key
  EXPECT_EQ(rig.state().failed_ticket, 8u);
  EXPECT_EQ(post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 100)), XIO_ERR_TRANSPORT);
  EXPECT_EQ(rig.quiet(), XIO_ERR_TRANSPORT);
}

TEST_F(NicErnicFailure, WhatWasBeforeIsComplete) {
  scripted plan;
  plan.at = 3;
  plan.fault.what = m::injected_fault::kind::fail;
  plan.fault.how = {m::outcome::retry_exceeded, m::rule::injected};
  rig.nic().set_faults(&plan);
  u64 tickets[6];
  for (u64& t : tickets) post(rig.ring(), rig.world(), rig.op(verb::write, payload::memory, 0, 0, 300), &t);
  EXPECT_EQ(ring_wait_below<ernic_codec>(rig.ring(), 8 + 4, rig.world()), XIO_ERR_TRANSPORT);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ring_test(rig.ring(), 8 + static_cast<u64>(i)), XIO_OK) << i;
  EXPECT_EQ(ring_test(rig.ring(), 11), XIO_ERR_TRANSPORT);
  EXPECT_EQ(rig.state().failed_ticket, 11u);
  EXPECT_EQ(rig.state().vendor, 12u | 22u << 8);  // retries exceeded, injected
  rig.nic().set_faults(nullptr);
}

TEST_F(NicErnicFailure, ALostOpIsATimeout) {
  scripted plan;
  plan.fault.what = m::injected_fault::kind::lose;
  rig.nic().set_faults(&plan);
  EXPECT_EQ(post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 300)), XIO_ERR_TIMEOUT);
  rig.nic().set_faults(nullptr);
}

// --- The codec alone ---------------------------------------------------------------------------------

// Six entries of a ring of 8 are in flight; the test writes CQEs byte by byte.
class NicErnicCodec : public testing::Test {
 protected:
  NicErnicCodec() {
    state.issued = state.published = 16 + 6;
    state.completed = 16;
    state.credits = 2;
    r.state = &state;
    r.depth = 8;
    r.depth_log2 = 3;
    r.completion = cq;
    r.cq_depth = 16;
    r.cq_depth_log2 = 4;
  }
  void cqe(u64 at, unsigned status, unsigned ticket, unsigned vendor = 0) {
    unsigned char* c = cq + 4096 + at % 16 * 64;
    c[0] = static_cast<unsigned char>(ticket);
    c[20] = static_cast<unsigned char>(status);
    c[40] = static_cast<unsigned char>(vendor);
    cq[8] = static_cast<unsigned char>((at + 1) % 32);
  }
  void expect_failed(u64 completed, u32 vendor) {
    ring_reap<ernic_codec>(r);
    EXPECT_EQ(state.completed, completed);
    EXPECT_EQ(static_cast<int>(state.failed), XIO_ERR_TRANSPORT);
    EXPECT_EQ(state.vendor, vendor);
    EXPECT_EQ(state.failed_ticket, completed);
  }

  ring_state state{};
  ring_view r{};
  alignas(64) unsigned char cq[4096 + 16 * 64] = {};
};

TEST_F(NicErnicCodec, NothingNewChangesNothing) {
  ring_reap<ernic_codec>(r);
  EXPECT_EQ(state.completed, 16u);
  EXPECT_EQ(state.cq_head, 0u);
  EXPECT_EQ(cq[12], 0);
}

TEST_F(NicErnicCodec, AllThatIsThere) {
  cqe(0, 0, 18);
  cqe(1, 0, 19);
  ring_reap<ernic_codec>(r);
  EXPECT_EQ(state.completed, 20u);
  EXPECT_EQ(state.credits, 6);
  EXPECT_EQ(state.cq_head, 2u);
  EXPECT_EQ(cq[12], 2);
  EXPECT_EQ(state.failed, 0u);
}

TEST_F(NicErnicCodec, TheIndicesSecondLap) {
  state.cq_head = 31;
  cqe(31, 0, 16);
  cqe(32, 0, 17);
  ring_reap<ernic_codec>(r);
  EXPECT_EQ(state.completed, 18u);
  EXPECT_EQ(state.cq_head, 33u);
  EXPECT_EQ(cq[12], 1);
}

TEST_F(NicErnicCodec, OneCompletionForAFullRing) {
  state.issued = 24;
  state.credits = 0;
  cqe(0, 0, 23);
  ring_reap<ernic_codec>(r);
  EXPECT_EQ(state.completed, 24u);
  EXPECT_EQ(state.credits, 8);
}

TEST_F(NicErnicCodec, TheFirstErrorIsTheCause) {
  cqe(0, 0, 16);
  cqe(1, 10, 19, 3);
  cqe(2, 5, 20);
  expect_failed(19, 10 | 3 << 8);
  for (int i = 0; i < 5; ++i) ring_reap<ernic_codec>(r);
  expect_failed(19, 10 | 3 << 8);
}

TEST_F(NicErnicCodec, AFlushedEntryCompletesNothing) {
  cqe(0, 5, 19);
  expect_failed(16, 5);
}

TEST_F(NicErnicCodec, AFatalErrorNamesNoEntry) {
  cqe(0, 19, 0, 1);
  expect_failed(16, 19 | 1 << 8);
}

TEST_F(NicErnicCodec, RequestsMustHaveBeenMade) {
  cqe(0, 0, 22);  // only 16 to 21 were
  expect_failed(16, ernic_codec::k_strange_request);
}

TEST_F(NicErnicCodec, RequestsMustNotHaveEnded) {
  cqe(0, 0, 17);
  cqe(1, 0, 17);
  expect_failed(18, ernic_codec::k_strange_request);
}

TEST_F(NicErnicCodec, TheTailMustBeAnIndex) {
  cq[8] = 32;
  expect_failed(16, ernic_codec::k_strange_index);
}

TEST_F(NicErnicCodec, TheTailMustBeInTheQueue) {
  cq[8] = 17;
  expect_failed(16, ernic_codec::k_strange_index);
}

}  // namespace
