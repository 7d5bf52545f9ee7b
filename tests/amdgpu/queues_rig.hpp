// SPDX-License-Identifier: MIT
// Queues whose workgroups a test plays, and the memory that both see.
#pragma once
#include "../gtest.hpp"
#include "amdgpu/queues/scheduler.hpp"

namespace amdgpu::test {

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
  // Waits for an event, ten seconds at most, and gives the data that come with it.
  uapi::event_data happened(std::uint32_t event) {
    uapi::event_data d{};
    d.event_id = event;
    uapi::wait_events_args w{reinterpret_cast<std::uint64_t>(&d), 1, 1, 10000, 0};
    EXPECT_PAIRS((happenings.wait(w), 0), (w.result, uapi::wait_complete));
    return d;
  }
  // A kernel whose workgroups are done at once.
  std::uint64_t idle_kernel(unsigned number) {
    return kernel(number, [](auto&&...) { return group::state::finished; });
  }
  void set(unsigned signal, std::int64_t to) { __atomic_store_n(&m->signals[signal].value, to, __ATOMIC_RELEASE); }
  bool read_up_to(std::uint64_t index) {
    return wait([&] { return __atomic_load_n(&m->queues[0].read_index, __ATOMIC_ACQUIRE) == index; });
  }
  // A packet of a copy engine: its dwords, with 64-bit values as two of them.
  struct copy_packets : std::vector<std::uint32_t> {
    copy_packets& dwords(std::initializer_list<std::uint32_t> all) {
      insert(end(), all);
      return *this;
    }
    copy_packets& address(std::uint64_t v) {
      return dwords({static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(v >> 32)});
    }
    std::size_t bytes() const { return size() * 4; }
  };
  static std::int64_t value(const aql::signal& s) { return __atomic_load_n(&s.value, __ATOMIC_ACQUIRE); }
  bool is_done(const aql::signal& s) {
    return wait([&] { return value(s) == 0; });
  }
};

}  // namespace amdgpu::test
