// SPDX-License-Identifier: MIT
// Posting to an ionic queue: the codec on the ring, over the NIC model, which checks every colour and index. Host
// threads are waves of one lane here, and kernels on the host platform whole waves, so this runs there only.
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
#include "xio/device/ionic.hpp"

namespace {

using namespace xio::dev;
namespace m = xio::proxy;
namespace rdma = xio::dev::rdma;
using rdma::payload;
using rdma::verb;
using xio::gpu::buffer;
using xio::gpu::place;

struct shape {
  bool v1 = false, queued = false;
  u32 depth = 8;
  u64 ticket_start = 0;
  u32 timeout_ms = 10000;
};

void PrintTo(const shape& s, std::ostream* out) {
  *out << (s.v1 ? "v1" : "v2") << (s.queued ? " queue" : " collapsed") << " depth " << s.depth << " from "
       << s.ticket_start;
}

// One queue to a peer whose heap has an address of its own. A family fixes interface and completions together; here
// each goes with each.
class lane_rig {
 public:
  static constexpr std::size_t k_bytes = 1 << 20;
  static constexpr u64 k_far_address = 0x7000'0000'0000;
  static constexpr u32 k_far_key = 0xabc00;

  explicit lane_rig(const shape& s)
      : near_(k_bytes, place::shared),
        far_(k_bytes, place::shared),
        nic_(fabric(), 5),
        family_(s.queued ? xio::model::rdma::ionic_v1_family() : xio::model::rdma::ionic_family()),
        state_(sizeof(ring_state), place::device),
        marks_(s.depth * sizeof(u64), place::device),
        slots_(s.depth * std::size_t{family_.slot_bytes}, place::shared),
        completion_(family_.completion_bytes(xio::proxy::completion_depth(family_, s.depth, 0)), place::shared),
        bells_(2 * 128, place::shared),
        machine_(1) {
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
  xio_status_t quiet() { return ring_quiet<ionic_codec>(view_, world_); }

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
    ring_state& state = this->state();
    state.issued = state.published = state.completed = s.ticket_start;
    state.credits = s.depth;
    const xio::proxy::queue_plan plan{s.ticket_start, k_bytes, 1024, 0};
    family_.prepare(view_, xio::proxy::image_of(view_), state, plan);
    view_.personality = (s.v1 ? k_ionic_v1 : 0) | (s.queued ? k_ionic_queued_cq : 0);
    view_.id = nic_.create_queue([&](u32 number) { return family_.decode(view_, plan, number); });
    nic_.connect(view_.id, 1, {}, 0);
  }

  buffer near_, far_;
  m::nic nic_;
  const xio::proxy::family& family_;
  buffer state_, marks_, slots_, completion_, bells_;
  ring_view view_{};
  world_view world_{};
  u32 lkey_ = 0;
  xio::progress::machine machine_;
};

XIO_DEVICE xio_status_t post(const ring_view& r, const world_view& w, const rdma::work& op, u64* ticket) {
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    const ring_claim claim{ionic_codec::slots(op), ionic_codec::packets(r, op), op.bytes};
    status = ring_post<ionic_codec>(group, r, w, claim, ticket,
                                    [&](u64 at, bool last) { ionic_codec::encode(r, at, 0, last, op); });
  });
  return status;
}

xio_status_t post_and_wait(lane_rig& rig, const rdma::work& op) {
  u64 ticket = 0;
  const xio_status_t status = post(rig.ring(), rig.world(), op, &ticket);
  return status != XIO_OK ? status : ring_wait_below<ionic_codec>(rig.ring(), ticket + 1, rig.world());
}

void expect_at_rest(lane_rig& rig, const shape& s, u64 tickets) {
  const ring_state& state = rig.state();
  EXPECT_EQ(state.failed, 0u) << "vendor " << state.vendor;
  EXPECT_EQ(state.issued, s.ticket_start + tickets);
  EXPECT_EQ(state.completed, state.issued);
  EXPECT_EQ(state.published, state.issued);
  EXPECT_EQ(state.credits, s.depth - 1);  // one entry stays free
}

void fill(unsigned char* p, std::size_t n, unsigned salt) {
  for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(i * 131 + salt + (i >> 8));
}

// Starts near every wrap: of the index's 16 bits, of the message number's 24, and of 32.
std::vector<shape> shapes() {
  std::vector<shape> all;
  for (const bool v1 : {false, true})
    for (const bool queued : {false, true}) {
      all.push_back({v1, queued, 8, 0});
      all.push_back({v1, queued, 4, (u64{1} << 16) - 4});
      all.push_back({v1, queued, 64, (u64{1} << 24) - 64});
      all.push_back({v1, queued, 4, (u64{1} << 32) - 8});
      all.push_back({v1, queued, 16, (u64{5} << 40) - 32});
    }
  return all;
}
class NicIonicLane : public testing::TestWithParam<shape> {
 protected:
  NicIonicLane() : rig(GetParam()) {}
  lane_rig rig;
};
INSTANTIATE_TEST_SUITE_P(Starts, NicIonicLane, testing::ValuesIn(shapes()));

TEST_P(NicIonicLane, PutsOfAllSizes) {
  fill(rig.near(), 4096, 1);
  u64 count = 0;
  for (u32 n = 0; n <= 900; n += n < 70 ? 1 : 97)
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

TEST_P(NicIonicLane, GetsAndAtomics) {
  auto* word = reinterpret_cast<u64*>(rig.far() + 512);
  u64 sum = 0, count = 0;
  for (u32 i = 1; i < 150; ++i) {
    const u32 n = i * 7;
    fill(rig.far() + 4096, n, i);
    ASSERT_EQ(post_and_wait(rig, rig.op(verb::read, payload::memory, 8192, 4096, n)), XIO_OK);
    ASSERT_EQ(std::memcmp(rig.near() + 8192, rig.far() + 4096, n), 0) << n;
    rdma::work add = rig.op(verb::fetch_add, payload::memory, 0, 512, 8);
    add.first = (u64{i} << 32) + i;
    add.second = 0x5555;  // not of a fetch-add
    ASSERT_EQ(post_and_wait(rig, add), XIO_OK);
    ASSERT_EQ(*reinterpret_cast<u64*>(rig.near()), sum);
    sum += add.first;
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

TEST_P(NicIonicLane, ManyLapsWithoutWaiting) {
  constexpr u64 k_ops = 6000;
  auto* word = reinterpret_cast<u64*>(rig.far());
  u64 sum = 0;
  for (u64 i = 0; i < k_ops; ++i) {
    u64 ticket = 0;
    rdma::work add = rig.op(verb::fetch_add, payload::memory, 0, 0, 8);
    add.first = i;
    const u32 n = 1 + static_cast<u32>(i * 37 % 900);
    const bool adds = i % 3 == 0;
    if (adds) sum += i;
    const rdma::work put = rig.op(verb::write, n <= 32 ? payload::inlined : payload::memory, 64, 64, n);
    ASSERT_EQ(post(rig.ring(), rig.world(), adds ? add : put, &ticket), XIO_OK);
    ASSERT_EQ(ticket, GetParam().ticket_start + i);
  }
  ASSERT_EQ(rig.quiet(), XIO_OK);
  EXPECT_EQ(*word, sum);
  expect_at_rest(rig, GetParam(), k_ops);
}

// One entry of several lanes' bytes.
TEST_P(NicIonicLane, AGatheredPut) {
  for (u32 n = 4; n <= 32; n += 4) {
    std::memset(rig.far(), 0xee, 256);
    const rdma::work w = rig.op(verb::write, payload::gathered, 0, 32, n);
    u64 ticket = 0;
    ASSERT_EQ((ring_post_together<ionic_codec>(lanes{1}, rig.ring(), rig.world(), ring_claim{1, 0, n}, &ticket,
                                               [&](u64 at, u64) {
                                                 for (u32 i = 0; i < n; i += 4)
                                                   std::memset(ionic_codec::inline_at(rig.ring(), at, i),
                                                               static_cast<int>(i + n), 4);
                                                 ionic_codec::encode(rig.ring(), at, 0, true, w);
                                               })),
              XIO_OK);
    ASSERT_EQ(rig.quiet(), XIO_OK);
    for (u32 i = 0; i < n; ++i) ASSERT_EQ(rig.far()[32 + i], static_cast<unsigned char>(i / 4 * 4 + n)) << n;
    EXPECT_EQ(rig.far()[32 + n], 0xee);
  }
  expect_at_rest(rig, GetParam(), 8);
}

TEST_P(NicIonicLane, SeveralThreads) {
  constexpr u64 k_each = 600, k_threads = 4;
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

constexpr u32 k_groups = 3, k_lanes = 96, k_rounds = 5;  // a short wave in each workgroup
constexpr std::size_t k_piece = 96, k_results = 768 * 1024, k_counter = k_results;

struct wave_job {
  const ring_view* ring;
  const world_view* world;
  rdma::work put, add;  // of the first piece, and of the first result
  u32* bad;
};

__global__ void put_and_add(const wave_job* j) {
  const u32 me = workgroup_index() * workgroup_size() + thread_in_workgroup();
  for (u32 i = 0; i < k_rounds; ++i) {
    const u32 piece = me * k_rounds + i;
    u64 ticket = 0;
    rdma::work op = j->put;
    op.bytes = 1 + (piece * 37) % (k_piece - 1);
    op.local += piece % 128 * k_piece;
    op.remote += piece * k_piece;
    if (op.bytes <= 32 && piece % 2 == 0) op.from = payload::inlined;
    if (piece % 5 == 4) {
      op = j->add;
      op.local += u64{piece} * 8;
    }
    if (post(*j->ring, *j->world, op, &ticket) != XIO_OK) fetch_add<scope::system, order::relaxed>(j->bad, 1u);
  }
  if (ring_quiet<ionic_codec>(*j->ring, *j->world) != XIO_OK) fetch_add<scope::system, order::relaxed>(j->bad, 1u);
}

TEST_P(NicIonicLane, Waves) {
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
      const std::size_t n = 1 + (piece * 37) % (k_piece - 1);
      ASSERT_EQ(std::memcmp(rig.far() + piece * k_piece, rig.near() + piece % 128 * k_piece, n), 0) << piece;
    }
  }
  EXPECT_EQ(*reinterpret_cast<u64*>(rig.far() + k_counter), adds);
  EXPECT_LE(rig.state().doorbells, k_pieces);
}

// --- Failures ----------------------------------------------------------------------------------------

class NicIonicFailure : public testing::TestWithParam<shape> {
 protected:
  NicIonicFailure() : rig(GetParam()) {}
  u64 start() const { return GetParam().ticket_start; }
  lane_rig rig;
};
INSTANTIATE_TEST_SUITE_P(Both, NicIonicFailure,
                         testing::Values(shape{false, false, 8, (u64{1} << 24) - 8, 200},
                                         shape{true, true, 8, (u64{1} << 16) - 8, 200}));

struct scripted : m::fault_plan {
  m::injected_fault fault;
  std::uint64_t at = 0;
  m::injected_fault next(std::uint32_t, std::uint64_t nth, const m::op&) override {
    return nth == at ? fault : m::injected_fault{};
  }
};

TEST_P(NicIonicFailure, AWrongRemoteKeyFailsTheRing) {
  rdma::work w = rig.op(verb::write, payload::memory, 0, 0, 100);
  w.rkey ^= 0x100;
  EXPECT_EQ(post_and_wait(rig, w), XIO_ERR_TRANSPORT);
  EXPECT_EQ(rig.state().vendor, 9u);  // IONIC_STS_REMOTE_ACC_ERR
  EXPECT_EQ(rig.state().failed_ticket, start());
  EXPECT_EQ(post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 100)), XIO_ERR_TRANSPORT);
  EXPECT_EQ(rig.quiet(), XIO_ERR_TRANSPORT);
}

// The first is told by the entry's index, the second by the message's number.
TEST_P(NicIonicFailure, WhatWasBeforeIsComplete) {
  for (const m::outcome what : {m::outcome::local_protection, m::outcome::retry_exceeded}) {
    lane_rig one(GetParam());
    scripted plan;
    plan.at = 3;
    plan.fault.what = m::injected_fault::kind::fail;
    plan.fault.how = {what, m::rule::injected};
    one.nic().set_faults(&plan);
    u64 tickets[6];
    for (u64& t : tickets) post(one.ring(), one.world(), one.op(verb::write, payload::memory, 0, 0, 300), &t);
    EXPECT_EQ(ring_wait_below<ionic_codec>(one.ring(), start() + 4, one.world()), XIO_ERR_TRANSPORT);
    for (u64 i = 0; i < 3; ++i) EXPECT_EQ(ring_test(one.ring(), start() + i), XIO_OK) << i;
    EXPECT_EQ(ring_test(one.ring(), start() + 3), XIO_ERR_TRANSPORT);
    EXPECT_EQ(one.state().failed_ticket, start() + 3);
    EXPECT_EQ(one.state().vendor, what == m::outcome::local_protection ? 3u : 11u);
    one.nic().set_faults(nullptr);
  }
}

TEST_P(NicIonicFailure, ALostOpIsATimeout) {
  scripted plan;
  plan.fault.what = m::injected_fault::kind::lose;
  rig.nic().set_faults(&plan);
  EXPECT_EQ(post_and_wait(rig, rig.op(verb::write, payload::memory, 0, 0, 300)), XIO_ERR_TIMEOUT);
  rig.nic().set_faults(nullptr);
}

// The count of a failed message must never be taken without its error.
TEST_P(NicIonicFailure, AFailedPutNeverLooksDone) {
  for (int i = 0; i < 100; ++i) {
    lane_rig one(GetParam());
    ASSERT_EQ(post_and_wait(one, one.op(verb::write, payload::memory, 0, 0, 8)), XIO_OK);
    rdma::work w = one.op(verb::write, payload::memory, 0, 0, 8);
    w.rkey ^= 0x100;
    u64 ticket = 0;
    post(one.ring(), one.world(), w, &ticket);
    while (ring_failure(one.ring()) == XIO_OK) {
      ring_reap<ionic_codec>(one.ring());
      ASSERT_NE(ring_test(one.ring(), ticket), XIO_OK);
    }
    ASSERT_EQ(one.state().failed_ticket, ticket);
  }
}

// --- The codec alone ---------------------------------------------------------------------------------

// Six entries of a ring of 8 are under way, 0x1000010 to 0x1000015; the test writes CQEs byte by byte as struct
// ionic_v1_cqe has them.
class NicIonicCodec : public testing::TestWithParam<bool> {
 protected:
  static constexpr u64 k_first = 0x1000010;
  static constexpr unsigned k_msn = 2 << 5, k_npg = 3 << 5, k_error = 2;

  NicIonicCodec() {
    state.issued = state.published = k_first + 6;
    state.completed = k_first;
    state.credits = 1;
    r.state = &state;
    r.depth = 8;
    r.depth_log2 = 3;
    r.completion = cqes;
    r.personality = queued() ? k_ionic_queued_cq : 0;
    r.cq_depth = 16;
    r.cq_depth_log2 = 4;
    r.cq_doorbell = reinterpret_cast<u32*>(&bell);
    r.cq_id = 0x12345;
    cqe(0, 0, 0x10, 0, 0, queued() ? 0 : 1);  // as nothing happened yet
  }
  bool queued() const { return GetParam(); }
  void cqe(u64 at, unsigned state, unsigned msn, unsigned status = 0, unsigned index = 0, unsigned color = 1) {
    unsigned char* c = cqes + (queued() ? at % 16 * 32 : 0);
    for (int i = 0; i < 4; ++i) c[4 + i] = static_cast<unsigned char>(msn >> (24 - 8 * i));
    c[16] = static_cast<unsigned char>(index);
    c[18] = 0x77;  // time stamp
    c[27] = static_cast<unsigned char>(status);
    c[29] = 0x12;  // queue pair
    c[31] = static_cast<unsigned char>(state | color);
  }
  void expect_failed(u64 completed, u64 failed, u32 vendor) {
    for (int i = 0; i < 3; ++i) ring_reap<ionic_codec>(r);
    EXPECT_EQ(state.completed, completed);
    EXPECT_EQ(static_cast<int>(state.failed), XIO_ERR_TRANSPORT);
    EXPECT_EQ(state.vendor, vendor);
    EXPECT_EQ(state.failed_ticket, failed);
  }

  ring_state state{};
  ring_view r{};
  u64 bell = 0;
  alignas(64) unsigned char cqes[16 * 32] = {};
};
INSTANTIATE_TEST_SUITE_P(Both, NicIonicCodec, testing::Bool(),
                         [](const auto& info) { return info.param ? "queue" : "collapsed"; });

TEST_P(NicIonicCodec, NothingNewChangesNothing) {
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.completed, k_first);
  EXPECT_EQ(state.cq_head, 0u);
  EXPECT_EQ(bell, 0u);
  EXPECT_EQ(state.failed, 0u);
}

TEST_P(NicIonicCodec, CountsMessages) {
  cqe(0, k_msn, 0x12);
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.completed, k_first + 2);
  cqe(1, k_msn, 0x16);
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.completed, k_first + 6);
  EXPECT_EQ(state.credits, 7);
  EXPECT_EQ(state.failed, 0u);
  if (queued()) {
    EXPECT_EQ(bell, 0x12345000002u);
  }
}

TEST_P(NicIonicCodec, AnErrorByNumber) {
  cqe(0, k_msn | k_error, 0x14, 9);
  expect_failed(k_first + 3, k_first + 3, 9);
}

TEST_P(NicIonicCodec, AnErrorByIndexCompletesOnlyWhatIsCounted) {
  cqe(0, k_npg | k_error, 0x12, 3, 4);
  expect_failed(k_first + 2, k_first + 4, 3);
}

TEST_P(NicIonicCodec, AnErrorByIndexWithACountThatCannotBe) {
  cqe(0, k_npg | k_error, 0, 3, 4);
  expect_failed(k_first, k_first + 4, 3);
}

TEST_P(NicIonicCodec, AnErrorOfNoEntryOfOurs) {
  cqe(0, k_npg | k_error, 0x10, 2, 7);
  expect_failed(k_first, k_first, 2);
}

TEST_P(NicIonicCodec, AFlushNamesNothing) {
  cqe(0, k_npg | k_error, 0x13, 4, 3);
  expect_failed(k_first, k_first, 4);
}

TEST_P(NicIonicCodec, MoreThanWasPostedIsStrange) {
  cqe(0, k_msn, 0x17);
  expect_failed(k_first, k_first, ionic_codec::k_strange_count);
}

TEST_P(NicIonicCodec, AReceiveCompletionIsNotOurs) {
  cqe(0, 1 << 5, 0x12);
  expect_failed(k_first, k_first, ionic_codec::k_strange_type | 1);
}

TEST_P(NicIonicCodec, TheFirstErrorIsTheCause) {
  if (!queued()) GTEST_SKIP() << "there is one CQE";
  cqe(0, k_msn, 0x12);
  cqe(1, k_msn | k_error, 0x13, 10);
  cqe(2, k_npg | k_error, 0x13, 4);
  expect_failed(k_first + 2, k_first + 2, 10);
  EXPECT_EQ(state.cq_head, 3u);
}

TEST_P(NicIonicCodec, TheQueuesEndAndItsNextLap) {
  if (!queued()) GTEST_SKIP() << "there is one CQE";
  state.cq_head = 15;
  for (u64 i = 0; i < 15; ++i) cqe(i, k_msn, 0x10);  // as the lap left them
  cqe(15, k_msn, 0x11);
  cqe(16, k_msn, 0x12, 0, 0, 0);
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.completed, k_first + 2);
  EXPECT_EQ(state.cq_head, 17u);
  EXPECT_EQ(bell, 0x12345000001u);
}

// Or the NIC, which goes on meanwhile, would find the queue full.
TEST_P(NicIonicCodec, RoomIsGivenBackInTime) {
  if (!queued()) GTEST_SKIP() << "there is one CQE";
  for (u64 i = 0; i < 16; ++i) cqe(i, k_msn, 0x16);
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.cq_head, 7u);
  EXPECT_EQ(bell, 0x12345000007u);
}

}  // namespace
