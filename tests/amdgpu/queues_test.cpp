// SPDX-License-Identifier: MIT
// Queues without an interpreter: packets as the HSA specification has them, and workgroups that a test plays.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "amdgpu/queues/scheduler.hpp"

namespace amdgpu {
namespace {

using namespace std::chrono_literals;

// By kernel object: what a slice of a workgroup does.
using behaviour = std::function<group::state(const launch&, std::array<std::uint32_t, 3>)>;

struct played final : group {
  played(const behaviour& b, const launch& l, std::array<std::uint32_t, 3> i) : act(b), how(l), id(i) {}
  state run(unsigned) override { return act(how, id); }
  bool asleep() const override { return true; }
  counters executed() const override {
    counters c;
    c.instructions = 10 + id[0];
    c.waves = 1;
    c.executed[static_cast<unsigned>(count::wait)] = 2;
    c.lines = {1, 2 + id[0]};
    c.times = {{0x40, 1}, {0x1000 + id[0], 2}};
    c.registers = 100;
    return c;
  }
  fault what() const override {
    fault f;
    f.what = fault::kind::memory;
    f.address = 0x7777000;
    f.kernel = "played";
    return f;
  }
  const behaviour act;
  const launch how;
  const std::array<std::uint32_t, 3> id;
};

// Memory that the GPU and the test see.
struct alignas(4096) shared_memory {
  alignas(4096) unsigned char rings[4][4096];
  alignas(64) aql::signal signals[16];
  alignas(64) aql::queue queues[4];
  alignas(64) unsigned char descriptors[4][64];
  alignas(64) std::uint64_t mailbox[8];
  alignas(64) std::uint32_t code[64];
  alignas(64) unsigned char data[2][4096];
};

struct amdgpu_queues : testing::Test {
  settings chosen;
  gate turns;
  std::vector<page_table> tables{1};
  events happenings;
  std::map<std::uint64_t, behaviour> kernels;
  std::unique_ptr<shared_memory> m = std::make_unique<shared_memory>();
  std::uint64_t doorbells[4] = {~0ull, ~0ull, ~0ull, ~0ull};
  std::uint32_t ids[4] = {};
  std::unique_ptr<scheduler> gpus;

  amdgpu_queues() {
    std::memset(m.get(), 0, sizeof *m);
    for (auto& ring : m->rings)
      for (unsigned i = 0; i < 64; ++i) ring[64 * i] = aql::invalid;
    tables[0].add(all());
    make();
  }
  ~amdgpu_queues() override { gpus->stop(); }

  void make() {
    gpus = std::make_unique<scheduler>(
        chosen, turns, tables, happenings,
        [this](const launch& l, const address_space&, std::array<std::uint32_t, 3> id) -> std::unique_ptr<group> {
          return std::make_unique<played>(kernels.at(l.kernel_object), l, id);
        });
  }

  mapping all() const {
    mapping all;
    all.base = all.host = address(*m);
    all.bytes = sizeof *m;
    return all;
  }

  void open(unsigned q) {
    m->queues[q].inactive_signal = address(m->signals[15]);
    queue_request r;
    r.ring = address(m->rings[q]);
    r.ring_bytes = 4096;
    r.write_pointer = &m->queues[q].write_index;
    r.read_pointer = &m->queues[q].read_index;
    r.doorbell = &doorbells[q];
    r.gpu_id = 0x5a00;
    ASSERT_EQ(gpus->add_aql(r, &ids[q]), 0);
  }
  // A copy engine's queue, on ring 3.
  queue_request copy_queue(std::uint64_t& wptr, std::uint64_t& rptr) {
    doorbells[3] = 0;
    queue_request r;
    r.ring = address(m->rings[3]);
    r.ring_bytes = 4096;
    r.write_pointer = &wptr;
    r.read_pointer = &rptr;
    r.doorbell = &doorbells[3];
    return r;
  }
  template <class T>
  static std::uint64_t address(const T& t) {
    return reinterpret_cast<std::uint64_t>(&t);
  }
  std::uint64_t kernel(unsigned number, behaviour b) {
    const std::uint64_t at = address(m->descriptors[number]);
    kernels[at] = std::move(b);
    return at;
  }
  template <class Packet>
  void submit(unsigned q, Packet p) {
    const std::uint64_t index = m->queues[q].write_index;
    auto* slot = m->rings[q] + index % 64 * 64;
    std::memcpy(slot + 2, reinterpret_cast<const char*>(&p) + 2, 62);
    __atomic_store_n(reinterpret_cast<std::uint16_t*>(slot), p.header, __ATOMIC_RELEASE);
    __atomic_store_n(&m->queues[q].write_index, index + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&doorbells[q], index, __ATOMIC_RELEASE);
  }
  aql::dispatch_packet dispatch_of(std::uint64_t object, std::uint32_t groups, aql::signal* done) {
    aql::dispatch_packet p{};
    p.header = aql::kernel_dispatch | 1u << 8;
    p.setup = 1;
    p.workgroup[0] = 64;
    p.workgroup[1] = p.workgroup[2] = 1;
    p.grid[0] = groups * 64;
    p.grid[1] = p.grid[2] = 1;
    p.kernel_object = object;
    if (done != nullptr) done->value = 1;
    p.completion = reinterpret_cast<std::uint64_t>(done);
    return p;
  }
  static bool wait(const std::function<bool()>& holds) {
    for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;) {
      if (holds()) return true;
      std::this_thread::sleep_for(100us);
    }
    return false;
  }
  static std::int64_t value(const aql::signal& s) { return __atomic_load_n(&s.value, __ATOMIC_ACQUIRE); }
  bool is_done(const aql::signal& s) {
    return wait([&] { return value(s) == 0; });
  }
};

TEST_F(amdgpu_queues, run_every_workgroup_of_a_kernel_once) {
  open(0);
  std::mutex lock;
  std::multiset<std::uint32_t> seen;
  launch how;
  auto p = dispatch_of(kernel(0,
                              [&](const launch& l, std::array<std::uint32_t, 3> id) {
                                const std::lock_guard hold(lock);
                                how = l;
                                seen.insert(id[0] + 10 * id[1] + 100 * id[2]);
                                return group::state::finished;
                              }),
                       1, &m->signals[0]);
  p.setup = 3;
  p.grid[0] = 64 * 5 - 1;  // the last is not whole
  p.grid[1] = 3;
  p.grid[2] = 2;
  p.kernarg = 0x1234;
  m->queues[0].group_aperture_high = 0x10000;
  submit(0, p);
  ASSERT_TRUE(is_done(m->signals[0]));
  std::multiset<std::uint32_t> wanted;
  for (unsigned x = 0; x < 5; ++x)
    for (unsigned y = 0; y < 3; ++y)
      for (unsigned z = 0; z < 2; ++z) wanted.insert(x + 10 * y + 100 * z);
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(how.kernarg, 0x1234u);
  EXPECT_EQ(how.lds_aperture, std::uint64_t{1} << 48);
  EXPECT_EQ(how.dispatch_packet, address(m->rings[0]));
  EXPECT_TRUE(wait([&] { return __atomic_load_n(&m->queues[0].read_index, __ATOMIC_ACQUIRE) == 1; }));
  EXPECT_EQ(m->rings[0][0], aql::invalid);
  EXPECT_GE(m->signals[0].end, m->signals[0].start);
  EXPECT_GT(m->signals[0].start, 0u);
}

TEST_F(amdgpu_queues, write_down_what_a_kernel_executed) {
  char file[] = "/tmp/xio-amdgpu-counts.XXXXXX";
  const int made = mkstemp(file);
  ASSERT_GE(made, 0);
  close(made);
  chosen.counts = file;
  open(0);
  const auto three = kernel(0, [](auto&&...) { return group::state::finished; });
  for (unsigned i = 0; i < 2; ++i) {
    submit(0, dispatch_of(three, 3, &m->signals[i]));
    ASSERT_TRUE(is_done(m->signals[i]));
  }
  std::ifstream in(file);
  // 10, 11 and 12 instructions; lines 1, 2, 3 and 4 of code. 100 registers are 104, of which 512 hold 4 waves' worth.
  const std::string wanted =
      R"({"kernel":"","gpu":0,"workgroups":3,"waves":3,"instructions":33,"salu":0,"valu":0,"smem":0,"lds":0,"flat":0,)"
      R"("scratch":0,"atomic":0,"wait":6,"writeback":0,"invalidate":0,"branch":0,"barrier":0,"other":0,"lines":4,)"
      R"("registers":100,"waves_per_simd":4})";
  std::string line;
  for (unsigned i = 0; i < 2; ++i) {
    ASSERT_TRUE(std::getline(in, line)) << i;
    EXPECT_EQ(line, wanted);
  }
  EXPECT_FALSE(std::getline(in, line));
  unlink(file);
}

// The kernel is in no code object here, so a site is the address.
TEST_F(amdgpu_queues, write_down_how_often_each_instruction_ran) {
  char file[] = "/tmp/xio-amdgpu-times.XXXXXX";
  const int made = mkstemp(file);
  ASSERT_GE(made, 0);
  close(made);
  chosen.times = file;
  open(0);
  submit(0, dispatch_of(kernel(0, [](auto&&...) { return group::state::finished; }), 3, &m->signals[0]));
  ASSERT_TRUE(is_done(m->signals[0]));
  std::ifstream in(file);
  for (const char* wanted : {"\t0x40\t3", "\t0x1000\t2", "\t0x1001\t2", "\t0x1002\t2"}) {
    std::string line;
    ASSERT_TRUE(std::getline(in, line)) << wanted;
    EXPECT_EQ(line, wanted);
  }
  std::string line;
  EXPECT_FALSE(std::getline(in, line));
  unlink(file);
}

TEST_F(amdgpu_queues, wake_the_host_by_mailbox_and_event) {
  open(0);
  uapi::create_event_args e{};
  ASSERT_EQ(happenings.create(e), 0);
  m->signals[0].mailbox = address(m->mailbox[2]);
  m->signals[0].event = e.event_id;
  submit(0, dispatch_of(kernel(0, [](auto&&...) { return group::state::finished; }), 1, &m->signals[0]));
  uapi::event_data d{};
  d.event_id = e.event_id;
  uapi::wait_events_args w{reinterpret_cast<std::uint64_t>(&d), 1, 1, 10000, 0};
  ASSERT_EQ(happenings.wait(w), 0);
  EXPECT_EQ(w.result, uapi::wait_complete);
  EXPECT_EQ(m->mailbox[2], e.event_id);
  EXPECT_EQ(value(m->signals[0]), 0);
}

TEST_F(amdgpu_queues, let_no_kernel_that_spins_keep_another_from_running) {
  open(0);
  open(1);
  std::atomic<bool> flag{false};
  // More workgroups than may be resident at first, all of which wait for the second queue's.
  const auto spin = kernel(0, [&](auto&&...) { return flag ? group::state::finished : group::state::running; });
  const auto release = kernel(1, [&](auto&&...) {
    flag = true;
    return group::state::finished;
  });
  submit(0, dispatch_of(spin, 300, &m->signals[0]));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(value(m->signals[0]), 1);
  submit(1, dispatch_of(release, 1, &m->signals[1]));
  EXPECT_TRUE(is_done(m->signals[1]));
  EXPECT_TRUE(is_done(m->signals[0]));
}

TEST_F(amdgpu_queues, make_as_many_workgroups_resident_as_the_hardware) {
  open(0);
  std::mutex lock;
  std::set<std::uint32_t> arrived;
  // A barrier over 400 workgroups of one wave: 16 compute units hold 512.
  submit(0, dispatch_of(kernel(0,
                               [&](const launch&, std::array<std::uint32_t, 3> id) {
                                 const std::lock_guard hold(lock);
                                 arrived.insert(id[0]);
                                 return arrived.size() == 400 ? group::state::finished : group::state::running;
                               }),
                        400, &m->signals[0]));
  EXPECT_TRUE(is_done(m->signals[0]));
}

TEST_F(amdgpu_queues, keep_packets_in_order_behind_a_barrier_bit) {
  open(0);
  std::atomic<int> first{0}, second{0};
  std::atomic<bool> flag{false};
  const auto slow = kernel(0, [&](auto&&...) {
    if (!flag) return group::state::running;
    ++first;
    return group::state::finished;
  });
  const auto quick = kernel(1, [&](auto&&...) {
    second = 10 + first;
    return group::state::finished;
  });
  submit(0, dispatch_of(slow, 1, &m->signals[0]));
  submit(0, dispatch_of(quick, 1, &m->signals[1]));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(second, 0);
  flag = true;
  ASSERT_TRUE(is_done(m->signals[1]));
  EXPECT_EQ(second, 11);
  // Without the bit it overtakes; the read index still passes both in order.
  flag = false;
  submit(0, dispatch_of(slow, 1, &m->signals[0]));
  auto p = dispatch_of(quick, 1, &m->signals[1]);
  p.header = aql::kernel_dispatch;
  submit(0, p);
  ASSERT_TRUE(is_done(m->signals[1]));
  EXPECT_EQ(value(m->signals[0]), 1);
  EXPECT_EQ(__atomic_load_n(&m->queues[0].read_index, __ATOMIC_ACQUIRE), 2u);
  flag = true;
  EXPECT_TRUE(is_done(m->signals[0]));
  EXPECT_TRUE(wait([&] { return __atomic_load_n(&m->queues[0].read_index, __ATOMIC_ACQUIRE) == 4; }));
}

TEST_F(amdgpu_queues, wait_for_signals_that_barriers_name) {
  open(0);
  const auto barrier = [&](std::uint16_t type, aql::signal* done) {
    aql::barrier_packet p{};
    p.header = type;
    p.depends[0] = address(m->signals[1]);
    p.depends[3] = address(m->signals[2]);
    done->value = 1;
    p.completion = reinterpret_cast<std::uint64_t>(done);
    return p;
  };
  m->signals[1].value = m->signals[2].value = 1;
  submit(0, barrier(aql::barrier_or, &m->signals[3]));
  submit(0, barrier(aql::barrier_and, &m->signals[4]));
  std::this_thread::sleep_for(3ms);
  EXPECT_EQ(value(m->signals[3]), 1);
  __atomic_store_n(&m->signals[2].value, 0, __ATOMIC_RELEASE);
  EXPECT_TRUE(is_done(m->signals[3]));
  std::this_thread::sleep_for(3ms);
  EXPECT_EQ(value(m->signals[4]), 1);
  __atomic_store_n(&m->signals[1].value, 0, __ATOMIC_RELEASE);
  EXPECT_TRUE(is_done(m->signals[4]));

  aql::barrier_value_packet v{};
  v.header = aql::vendor_specific;
  v.format = aql::k_format_barrier_value;
  v.signal = address(m->signals[1]);
  v.mask = 0xff;
  v.value = 5;
  v.condition = aql::greater_equal;
  m->signals[5].value = 1;
  v.completion = address(m->signals[5]);
  __atomic_store_n(&m->signals[1].value, 0x704, __ATOMIC_RELEASE);
  submit(0, v);
  std::this_thread::sleep_for(3ms);
  EXPECT_EQ(value(m->signals[5]), 1);
  __atomic_store_n(&m->signals[1].value, 0x105, __ATOMIC_RELEASE);
  EXPECT_TRUE(is_done(m->signals[5]));
}

TEST_F(amdgpu_queues, ask_for_scratch_and_go_on_with_it) {
  open(0);
  std::mutex lock;
  std::set<std::uint32_t> slots;
  std::size_t most = 0;
  launch seen;
  auto p = dispatch_of(kernel(0,
                              [&](const launch& l, auto&&) {
                                const std::lock_guard hold(lock);
                                seen = l;
                                EXPECT_TRUE(slots.insert(l.scratch_slot).second);
                                most = std::max(most, slots.size());
                                slots.erase(l.scratch_slot);
                                return group::state::finished;
                              }),
                       40, &m->signals[0]);
  p.private_bytes = 100;
  p.workgroup[0] = 128;
  submit(0, p);
  ASSERT_TRUE(wait([&] { return value(m->signals[15]) == aql::needs_scratch; }));
  EXPECT_EQ(m->queues[0].read_index, 0u);
  std::this_thread::sleep_for(3ms);
  EXPECT_EQ(value(m->signals[0]), 1);
  // As ROCr does: base, 8 waves of 7 KiB, 112 bytes for a lane.
  m->queues[0].scratch_descriptor[0] = 0x45670000;
  m->queues[0].scratch_descriptor[1] = 0x80000123;
  m->queues[0].tmpring = 8 | 7 << 12;
  m->queues[0].scratch_lane_bytes = 112;
  __atomic_store_n(&m->signals[15].value, 0, __ATOMIC_RELEASE);
  ASSERT_TRUE(is_done(m->signals[0]));
  EXPECT_EQ(seen.scratch_base, 0x12345670000u);
  EXPECT_EQ(seen.scratch_wave_bytes, 7u * 1024);
  EXPECT_EQ(seen.scratch_slot % 2, 0u);
  EXPECT_LE(seen.scratch_slot, 6u);
}

TEST_F(amdgpu_queues, say_what_is_wrong_with_a_packet) {
  const auto ok = kernel(0, [](auto&&...) { return group::state::finished; });
  struct bad_case {
    std::int64_t code;
    std::function<void(aql::dispatch_packet&)> change;
  };
  const bad_case cases[] = {
      {aql::bad_dimensions, [](auto& p) { p.grid[0] = 0; }},
      {aql::bad_dimensions, [](auto& p) { p.setup = 0; }},
      {aql::group_too_large, [](auto& p) { p.workgroup[0] = 1025; }},
      {aql::bad_group_memory, [](auto& p) { p.group_bytes = 65537; }},
      {aql::bad_code, [](auto& p) { p.kernel_object = 64; }},
      {aql::bad_packet, [](auto& p) { p.header = 9; }},
      {aql::bad_packet, [](auto& p) { p.header = aql::agent_dispatch; }},
      {aql::bad_vendor_packet, [](auto& p) { p.header = aql::vendor_specific, p.setup = 7; }},
  };
  for (const bad_case& c : cases) {
    m->queues[0] = {};
    doorbells[0] = ~0ull;
    m->signals[15].value = 0;
    open(0);
    auto p = dispatch_of(ok, 1, &m->signals[0]);
    c.change(p);
    submit(0, p);
    EXPECT_TRUE(wait([&] { return value(m->signals[15]) == c.code; })) << c.code;
    EXPECT_EQ(value(m->signals[0]), 1);
    EXPECT_EQ(gpus->remove(ids[0]), 0);
    m->rings[0][0] = aql::invalid;
  }
}

TEST_F(amdgpu_queues, stop_at_a_fault_and_tell_the_process) {
  open(0);
  open(1);
  uapi::create_event_args e{};
  e.type = uapi::event_memory;
  ASSERT_EQ(happenings.create(e), 0);
  const auto bad = kernel(0, [](const launch&, std::array<std::uint32_t, 3> id) {
    return id[0] == 3 ? group::state::faulted : group::state::running;
  });
  submit(0, dispatch_of(bad, 10, &m->signals[0]));
  uapi::event_data d{};
  d.event_id = e.event_id;
  uapi::wait_events_args w{reinterpret_cast<std::uint64_t>(&d), 1, 1, 10000, 0};
  ASSERT_EQ(happenings.wait(w), 0);
  EXPECT_EQ(w.result, uapi::wait_complete);
  EXPECT_EQ(d.memory.va, 0x7777000u);
  EXPECT_EQ(d.memory.gpu_id, 0x5a00u);
  EXPECT_EQ(value(m->signals[0]), 1);
  // The other queue goes on.
  submit(1, dispatch_of(kernel(1, [](auto&&...) { return group::state::finished; }), 1, &m->signals[1]));
  EXPECT_TRUE(is_done(m->signals[1]));
  EXPECT_EQ(gpus->remove(ids[0]), 0);
}

TEST_F(amdgpu_queues, are_removed_in_mid_kernel) {
  open(0);
  std::atomic<bool> alive{true}, late{false};
  submit(0, dispatch_of(kernel(0,
                               [&](auto&&...) {
                                 if (!alive) late = true;
                                 return group::state::running;
                               }),
                        20, &m->signals[0]));
  std::this_thread::sleep_for(5ms);
  ASSERT_EQ(gpus->remove(ids[0]), 0);
  alive = false;
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(late);
  EXPECT_FALSE(gpus->knows(ids[0]));
  EXPECT_NE(gpus->remove(ids[0]), 0);
}

// With late memory, each GPU has an L2 that packets write back and invalidate.
struct amdgpu_late_queues : amdgpu_queues {
  explicit amdgpu_late_queues(const char* target = "gfx90a") {
    chosen.target = target;
    chosen.memory = "adversary";
    make();
    open(0);
  }
  // Runs a kernel with these fences that does `act` to one dword of coarse-grained memory in the L2.
  void run(std::uint32_t acquire, std::uint32_t release, const std::function<void(l2_cache&, std::uint64_t)>& act) {
    auto p = dispatch_of(kernel(0,
                                [&](const launch& l, std::array<std::uint32_t, 3>) {
                                  const std::lock_guard hold(l.l2->lock());
                                  act(*l.l2, address(m->data[0]));
                                  return group::state::finished;
                                }),
                         1, &m->signals[0]);
    p.header = static_cast<std::uint16_t>(p.header | acquire << 9 | release << 11);
    submit(0, p);
    ASSERT_TRUE(is_done(m->signals[0]));
  }
  static void write_41(l2_cache& l2, std::uint64_t at) {
    const std::uint32_t value = 41;
    l2.write(at, sizeof value, mapping::place::local, mapping::caching::coarse,
             reinterpret_cast<const std::uint8_t*>(&value));
  }
  // How many of 59 kernels that acquire so read what another device wrote before they began in its old state.
  unsigned old_values(std::uint32_t acquire, mapping::place where) {
    unsigned old = 0;
    for (unsigned char i = 1; i < 60; ++i) {
      std::uint32_t got = 0;
      const auto read = [&](l2_cache& l2, std::uint64_t at) {
        l2.read(at, sizeof got, where, mapping::caching::coarse, reinterpret_cast<std::uint8_t*>(&got));
      };
      run(0, 0, read);
      m->data[0][0] = i;
      run(acquire, 0, read);
      old += got != i;
    }
    return old;
  }
};
struct amdgpu_late_queues_of_gfx1100 : amdgpu_late_queues {
  amdgpu_late_queues_of_gfx1100() : amdgpu_late_queues("gfx1100") {}
  // A kernel that acquires so loads a dword by the L1; the L2 has nothing old.
  void look_by_l1(std::uint32_t acquire, std::uint32_t& got) {
    auto p = dispatch_of(kernel(0,
                                [&](const launch& l, std::array<std::uint32_t, 3>) {
                                  std::uint64_t at[lanes] = {address(m->data[0])};
                                  std::uint32_t data[lanes] = {};
                                  access one;
                                  one.address = at;
                                  one.active = 1;
                                  one.bytes = 4;
                                  refusal no;
                                  l.l2->invalidate();
                                  EXPECT_TRUE(l.l1->load(one, data, no));
                                  got = data[0];
                                  return group::state::finished;
                                }),
                         1, &m->signals[0]);
    p.header = static_cast<std::uint16_t>(p.header | acquire << 9);
    submit(0, p);
    ASSERT_TRUE(is_done(m->signals[0]));
  }
};

// HSA Programmer's Reference 1.2, 2.9.1: a release fence of system scope makes a kernel's writes visible to all agents.
TEST_F(amdgpu_late_queues, write_back_when_a_packet_releases_to_the_system) {
  for (const std::uint32_t scope : {0u, 1u, 2u}) {
    m->data[0][0] = 0;
    run(0, scope, write_41);
    EXPECT_EQ(m->data[0][0], scope == 2 ? 41 : 0) << scope;
    aql::barrier_packet b{};
    m->signals[1].value = 1;
    b.header = aql::barrier_and | 1u << 8 | 2u << 11;
    b.completion = address(m->signals[1]);
    submit(0, b);
    ASSERT_TRUE(is_done(m->signals[1]));
    EXPECT_EQ(m->data[0][0], 41);
  }
}

TEST_F(amdgpu_late_queues, invalidate_when_a_packet_acquires_from_the_system) {
  for (const std::uint32_t scope : {0u, 1u, 2u})
    EXPECT_EQ(old_values(scope, mapping::place::host) > 0, scope != 2) << scope;
  EXPECT_EQ(old_values(0, mapping::place::local), 0u) << "MTYPE RW";
}

// Its own coarse-grained memory is MTYPE NC (linux amdgpu, gmc_v11_0_get_vm_pte), of which lines become stale.
TEST_F(amdgpu_late_queues_of_gfx1100, invalidate_its_own_memory_too) {
  for (const std::uint32_t scope : {0u, 1u, 2u})
    EXPECT_EQ(old_values(scope, mapping::place::local) > 0, scope != 2) << scope;
}

// A packet that acquires, from the agent or the system, empties the L1s of all shader arrays (HSA Programmer's
// Reference 1.2, 2.9.1).
TEST_F(amdgpu_late_queues_of_gfx1100, empty_the_l1_when_a_packet_acquires) {
  for (const std::uint32_t scope : {0u, 1u, 2u}) {
    unsigned old = 0;
    for (unsigned char i = 1; i < 60; ++i) {
      std::uint32_t got = 0;
      look_by_l1(0, got);
      m->data[0][0] = i;
      look_by_l1(scope, got);
      old += got != i;
    }
    EXPECT_EQ(old > 0, scope == 0) << scope;
  }
}

TEST_F(amdgpu_late_queues_of_gfx1100, write_back_when_a_packet_releases_to_the_system) {
  run(0, 1, write_41);
  EXPECT_EQ(m->data[0][0], 0);
  run(0, 2, [](l2_cache&, std::uint64_t) {});
  EXPECT_EQ(m->data[0][0], 41);
}

TEST_F(amdgpu_late_queues, write_back_memory_that_a_gpu_loses) {
  run(0, 0, write_41);
  EXPECT_EQ(m->data[0][0], 0);
  gpus->mapped(0, all(), false);
  EXPECT_EQ(m->data[0][0], 41);
}

TEST_F(amdgpu_queues, copy_by_the_packets_of_an_sdma_ring) {
  gpus->mapped(0, all(), true);
  uapi::create_event_args e{};
  ASSERT_EQ(happenings.create(e), 0);
  std::uint64_t wptr = 0, rptr = 0;
  ASSERT_EQ(gpus->add_sdma(copy_queue(wptr, rptr), &ids[3]), 0);
  for (unsigned i = 0; i < 4096; ++i) m->data[0][i] = static_cast<unsigned char>(i * 7);
  m->signals[0].value = 1;
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const std::uint64_t from = address(m->data[0]), to = address(m->data[1]), done = address(m->signals[0].value);
  // COPY_LINEAR, ATOMIC add_64 of -1, FENCE into the mailbox, TRAP: as ROCr ends a copy.
  const std::uint32_t packets[] = {1,
                                   4095,
                                   0,
                                   low(from),
                                   high(from),
                                   low(to),
                                   high(to),
                                   0x2fu << 25 | 10,
                                   low(done),
                                   high(done),
                                   ~0u,
                                   ~0u,
                                   0,
                                   0,
                                   0,
                                   5,
                                   low(address(m->mailbox[1])),
                                   high(address(m->mailbox[1])),
                                   e.event_id,
                                   6,
                                   e.event_id};
  std::memcpy(m->rings[3], packets, sizeof packets);
  __atomic_store_n(&wptr, sizeof packets, __ATOMIC_RELEASE);
  __atomic_store_n(&doorbells[3], sizeof packets, __ATOMIC_RELEASE);
  uapi::event_data d{};
  d.event_id = e.event_id;
  uapi::wait_events_args w{reinterpret_cast<std::uint64_t>(&d), 1, 1, 10000, 0};
  ASSERT_EQ(happenings.wait(w), 0);
  EXPECT_EQ(w.result, uapi::wait_complete);
  EXPECT_EQ(value(m->signals[0]), 0);
  EXPECT_EQ(m->mailbox[1], e.event_id);
  EXPECT_EQ(std::memcmp(m->data[0], m->data[1], 4096), 0);
  EXPECT_TRUE(wait([&] { return __atomic_load_n(&rptr, __ATOMIC_ACQUIRE) == sizeof packets; }));
  EXPECT_EQ(gpus->remove(ids[3]), 0);
}

// Engines are of the GPU's generation: SDMA 4.4 (gfx90a) has no tiles of 32 bits, 4.4.2 (gfx942) and 6 (gfx1100) have.
TEST_F(amdgpu_queues, copy_by_packets_of_their_own_generation) {
  for (const char* const gpu : {"gfx90a", "gfx942", "gfx1100"}) {
    chosen.target = gpu;
    sdma_engines engines(chosen, tables, happenings);
    engines.mapped(0, all(), true);
    std::uint64_t wptr = 0, rptr = 0;
    engines.add(1, copy_queue(wptr, rptr));
    std::memset(m->data[0], 7, 64);
    std::memset(m->data[1], 0, 64);
    const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
    const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
    const std::uint64_t from = address(m->data[0]), to = address(m->data[1]);
    // The large sub-window copy of 64 bytes, one row.
    const std::uint32_t packet[20] = {36u << 8 | 1, low(from), high(from), 0, 0,  0,  63, 63, 0, low(to),
                                      high(to),     0,         0,          0, 63, 63, 0,  63, 0, 0};
    std::memcpy(m->rings[3], packet, sizeof packet);
    wptr = doorbells[3] = sizeof packet;
    for (int turn = 0; turn < 100; ++turn) engines.poll();
    EXPECT_EQ(m->data[1][0] == 7 && m->data[1][63] == 7, gpu != std::string("gfx90a")) << gpu;
  }
}

}  // namespace
}  // namespace amdgpu
