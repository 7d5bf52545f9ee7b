// SPDX-License-Identifier: MIT
// Queues without an interpreter: packets as the HSA specification has them, and workgroups that a test plays.
#include "amdgpu/queues_rig.hpp"

namespace amdgpu {
namespace {

using namespace test;

// A file that the driver writes, and that goes with the test.
struct written_file {
  written_file() { close(mkstemp(name.data())); }
  ~written_file() { unlink(name.c_str()); }
  std::string name = "/tmp/xio-amdgpu.XXXXXX";
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
  EXPECT_PAIRS((seen, wanted), (how.kernarg, 0x1234u), (how.lds_aperture, std::uint64_t{1} << 48),
               (how.dispatch_packet, address(m->rings[0])));
  EXPECT_TRUE(read_up_to(1));
  EXPECT_EQ(m->rings[0][0], aql::invalid);
  EXPECT_GE(m->signals[0].end, m->signals[0].start);
  EXPECT_GT(m->signals[0].start, 0u);
}

TEST_F(amdgpu_queues, write_down_what_a_kernel_executed) {
  const written_file file;
  chosen.counts = file.name;
  open(0);
  const auto three = idle_kernel(0);
  for (unsigned i = 0; i < 2; ++i) {
    submit(0, dispatch_of(three, 3, &m->signals[i]));
    ASSERT_TRUE(is_done(m->signals[i]));
  }
  std::ifstream in(file.name);
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
}

// The kernel is in no code object here, so a site is the address.
TEST_F(amdgpu_queues, write_down_how_often_each_instruction_ran) {
  const written_file file;
  chosen.times = file.name;
  open(0);
  submit(0, dispatch_of(idle_kernel(0), 3, &m->signals[0]));
  ASSERT_TRUE(is_done(m->signals[0]));
  std::ifstream in(file.name);
  for (const char* wanted : {"\t0x40\t3", "\t0x1000\t2", "\t0x1001\t2", "\t0x1002\t2"}) {
    std::string line;
    ASSERT_TRUE(std::getline(in, line)) << wanted;
    EXPECT_EQ(line, wanted);
  }
  std::string line;
  EXPECT_FALSE(std::getline(in, line));
}

TEST_F(amdgpu_queues, wake_the_host_by_mailbox_and_event) {
  open(0);
  uapi::create_event_args e{};
  ASSERT_EQ(happenings.create(e), 0);
  m->signals[0].mailbox = address(m->mailbox[2]);
  m->signals[0].event = e.event_id;
  submit(0, dispatch_of(idle_kernel(0), 1, &m->signals[0]));
  happened(e.event_id);
  EXPECT_PAIRS((m->mailbox[2], e.event_id), (value(m->signals[0]), 0));
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
  EXPECT_TRUE(read_up_to(4));
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
  set(2, 0);
  EXPECT_TRUE(is_done(m->signals[3]));
  std::this_thread::sleep_for(3ms);
  EXPECT_EQ(value(m->signals[4]), 1);
  set(1, 0);
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
  set(1, 0x704);
  submit(0, v);
  std::this_thread::sleep_for(3ms);
  EXPECT_EQ(value(m->signals[5]), 1);
  set(1, 0x105);
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
  set(15, 0);
  ASSERT_TRUE(is_done(m->signals[0]));
  EXPECT_PAIRS((seen.scratch_base, 0x12345670000u), (seen.scratch_wave_bytes, 7u * 1024), (seen.scratch_slot % 2, 0u));
  EXPECT_LE(seen.scratch_slot, 6u);
}

TEST_F(amdgpu_queues, say_what_is_wrong_with_a_packet) {
  const auto ok = idle_kernel(0);
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
  const uapi::event_data d = happened(e.event_id);
  EXPECT_PAIRS((d.memory.va, 0x7777000u), (d.memory.gpu_id, 0x5a00u), (value(m->signals[0]), 1));
  // The other queue goes on.
  submit(1, dispatch_of(idle_kernel(1), 1, &m->signals[1]));
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

TEST_F(amdgpu_queues, copy_by_the_packets_of_an_sdma_ring) {
  gpus->mapped(0, all(), true);
  uapi::create_event_args e{};
  ASSERT_EQ(happenings.create(e), 0);
  std::uint64_t wptr = 0, rptr = 0;
  ASSERT_EQ(gpus->add_sdma(copy_queue(wptr, rptr), &ids[3]), 0);
  for (unsigned i = 0; i < 4096; ++i) m->data[0][i] = static_cast<unsigned char>(i * 7);
  m->signals[0].value = 1;
  // COPY_LINEAR, ATOMIC add_64 of -1, FENCE into the mailbox, TRAP: as ROCr ends a copy.
  copy_packets packets;
  packets.dwords({1, 4095, 0}).address(address(m->data[0])).address(address(m->data[1]));
  packets.dwords({0x2fu << 25 | 10}).address(address(m->signals[0].value)).dwords({~0u, ~0u, 0, 0, 0});
  packets.dwords({5}).address(address(m->mailbox[1])).dwords({e.event_id, 6, e.event_id});
  std::memcpy(m->rings[3], packets.data(), packets.bytes());
  __atomic_store_n(&wptr, packets.bytes(), __ATOMIC_RELEASE);
  __atomic_store_n(&doorbells[3], packets.bytes(), __ATOMIC_RELEASE);
  happened(e.event_id);
  EXPECT_PAIRS((value(m->signals[0]), 0), (m->mailbox[1], e.event_id), (std::memcmp(m->data[0], m->data[1], 4096), 0));
  EXPECT_TRUE(wait([&] { return __atomic_load_n(&rptr, __ATOMIC_ACQUIRE) == packets.bytes(); }));
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
    // The large sub-window copy of 64 bytes, one row.
    copy_packets packet;
    packet.dwords({36u << 8 | 1}).address(address(m->data[0])).dwords({0, 0, 0, 63, 63, 0});
    packet.address(address(m->data[1])).dwords({0, 0, 0, 63, 63, 0, 63, 0, 0});
    std::memcpy(m->rings[3], packet.data(), packet.bytes());
    wptr = doorbells[3] = packet.bytes();
    for (int turn = 0; turn < 100; ++turn) engines.poll();
    EXPECT_EQ(m->data[1][0] == 7 && m->data[1][63] == 7, gpu != std::string("gfx90a")) << gpu;
  }
}

}  // namespace
}  // namespace amdgpu
