// SPDX-License-Identifier: MIT
// How doorbells are rung: when a shadow asks for the register too (NVMe base 2.0, B.5), what the host thread carries,
// what goes through a PCI MMIO bridge, and which way is chosen.
#include <random>

#include "model/nvme/mmio_bridge.hpp"
#include "nvme_rig.hpp"
#include "transport/nvme/doorbell_trial.hpp"
#include "transport/nvme/mmio_bridge.hpp"

using namespace xio;
using namespace xio::test;

namespace {

constexpr std::uint32_t k_untouched = 0xdeadbeef;

// A queue of 16 whose doorbells are plain words.
struct words {
  std::uint32_t doorbell = k_untouched, shadow = 0, event = 0;

  // Announces tickets [from, to); returns whether the register was written.
  bool announce(std::uint64_t from, std::uint64_t to, std::uint32_t event_index, bool watched = true) {
    dev::ring_view r{};
    r.depth = 16;
    r.nvme.sq_doorbell = &doorbell;
    r.nvme.shadow_tail = &shadow;
    r.nvme.tail_event = watched ? &event : nullptr;
    doorbell = k_untouched;
    event = event_index;
    const bool has_rung = dev::nvme_codec::announce(r, from, to);
    EXPECT_PAIRS((shadow, to & 15), (event, event_index), (doorbell, has_rung ? to & 15 : k_untouched));
    return has_rung;
  }
};

struct recorder : nvme::register_writer {
  bool write(std::uint32_t offset, std::uint32_t value) override {
    if (busy) return false;
    seen.emplace_back(offset, value);
    return true;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;
  bool busy = false;
};

using wish = option::nvme_doorbell;

std::string refusal(wish asked, const nvme::drive_facts& facts, const nvme::doorbell_reach& can) {
  return test::refusal([&] { nvme::choose_doorbells(asked, facts, can, "nvme:x"); });
}

}  // namespace

// The controller names the value that it wants to hear of once it is passed.
TEST(nvme_doorbells, a_shadow_asks_when_the_event_index_is_passed) {
  words w;
  EXPECT_TRUE(w.announce(3, 5, 3));
  EXPECT_TRUE(w.announce(3, 5, 4));
  EXPECT_FALSE(w.announce(3, 5, 5));  // reached and not passed
  EXPECT_FALSE(w.announce(3, 5, 2));
  EXPECT_FALSE(w.announce(3, 5, 12));
  // Over the end of the queue, and laps later.
  EXPECT_TRUE(w.announce(14, 18, 14));
  EXPECT_TRUE(w.announce(14, 18, 15));
  EXPECT_TRUE(w.announce(14, 18, 1));
  EXPECT_FALSE(w.announce(14, 18, 2));
  EXPECT_FALSE(w.announce(14, 18, 13));
  const std::uint64_t unlike = (std::uint64_t{1} << 40) + 15;
  EXPECT_TRUE(w.announce(unlike, unlike + 1, 15));
  EXPECT_FALSE(w.announce(unlike, unlike + 1, 0));
  // The most that can be announced at once.
  EXPECT_TRUE(w.announce(0, 15, 14));
  EXPECT_FALSE(w.announce(0, 15, 15));
}

TEST(nvme_doorbells, where_the_host_rings_no_register_is_touched) {
  words w;
  for (std::uint32_t event = 0; event < 16; ++event) EXPECT_FALSE(w.announce(7, 9, event, false));
}

TEST(nvme_doorbells, the_keeper_carries_what_changed_and_nothing_twice) {
  // DSTRD 1: 8 bytes apart.
  std::array<std::uint32_t, 2 * 2 * 3> memory{};
  auto writer = std::make_unique<recorder>();
  recorder& out = *writer;
  nvme::doorbell_keeper keeper(memory.data(), 1, 2, std::move(writer));
  memory[0] = 9;  // the admin queue's are not its business
  EXPECT_FALSE(keeper.poll());
  memory[2 * 2] = 3;            // SQ 1
  memory[(2 * 2 + 1) * 2] = 4;  // CQ 2
  EXPECT_TRUE(keeper.poll());
  using entry = std::pair<std::uint32_t, std::uint32_t>;
  const std::vector<entry> once{{0x1000 + 2 * 8, 3}, {0x1000 + 5 * 8, 4}};
  EXPECT_EQ(out.seen, once);
  EXPECT_FALSE(keeper.poll());
  EXPECT_EQ(out.seen, once);
  // Not now: the newest value goes out later.
  out.busy = true;
  memory[2 * 2] = 5;
  EXPECT_TRUE(keeper.poll());
  memory[2 * 2] = 6;
  out.busy = false;
  EXPECT_TRUE(keeper.poll());
  EXPECT_PAIRS((out.seen.size(), 3u), (out.seen.back(), entry(0x1000 + 2 * 8, 6)));
  // A queue that begins anew is at 0 without being told.
  memory[2 * 2] = 0;
  keeper.restart(1);
  EXPECT_FALSE(keeper.poll());
  EXPECT_EQ(keeper.rings(), 3u);
}

TEST(nvme_doorbells, which_way) {
  std::uint32_t registers = 0;
  nvme::drive_facts plain, emulated;
  emulated.shadow_doorbells = true;
  const nvme::doorbell_reach host_registers{&registers, 0, &registers, false};
  const nvme::doorbell_reach unlike{nullptr, 0, &registers, false};
  const nvme::doorbell_reach model{&registers, 0, &registers, true};
  const auto way = [](wish asked, const auto& facts, const auto& can) {
    return nvme::choose_doorbells(asked, facts, can, "nvme:x");
  };
  EXPECT_EQ(way(wish::automatic, plain, host_registers), nvme::doorbell_way::bar);
  EXPECT_EQ(way(wish::automatic, emulated, host_registers), nvme::doorbell_way::shadow);
  EXPECT_EQ(way(wish::automatic, plain, unlike), nvme::doorbell_way::host);
  EXPECT_EQ(way(wish::automatic, emulated, unlike), nvme::doorbell_way::host);
  EXPECT_EQ(way(wish::automatic, emulated, model), nvme::doorbell_way::bar);
  EXPECT_EQ(way(wish::bar, emulated, host_registers), nvme::doorbell_way::bar);
  EXPECT_EQ(way(wish::bridge, plain, unlike), nvme::doorbell_way::bridge);
  EXPECT_NE(refusal(wish::bar, plain, unlike).find("cannot write the doorbells"), std::string::npos);
  EXPECT_NE(refusal(wish::shadow, plain, host_registers).find("no shadow doorbells"), std::string::npos);
  EXPECT_NE(refusal(wish::shadow, emulated, unlike).find("use host"), std::string::npos);
}

// A ring in a file, as a device of the monitor would map it; the bridge is polled by hand.
TEST(nvme_doorbells, a_mapped_bridge) {
  scratch_file f(4096);
  std::array<std::uint32_t, 2048> registers{};
  progress::machine machine(1);
  const int fd = open(f.path.c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  auto* ring = static_cast<std::byte*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  close(fd);
  ASSERT_NE(static_cast<void*>(ring), MAP_FAILED);
  const nvme::doorbell_reach can{nullptr, 0x0108, nullptr, false};
  EXPECT_THROW(nvme::open_bridge(f.path, machine, can, "nvme:x"), error) << "a ring of no commands";
  EXPECT_THROW(nvme::open_bridge("/no/such/bridge", machine, can, "nvme:x"), error);
  EXPECT_THROW(nvme::open_bridge("", machine, can, "nvme:x"), error) << "hardware without a bridge";

  model::nvme::mmio_bridge bridge(ring, 4096, 0x0108, registers.data(), sizeof registers);
  const auto writer = nvme::open_bridge(f.path, machine, can, "nvme:x");
  // 4096 / 24 slots, the first of which is the metadata.
  constexpr std::uint32_t depth = 169;
  std::uint32_t meta_depth = 0;
  std::memcpy(&meta_depth, ring + 8, 4);
  EXPECT_EQ(meta_depth, depth);
  for (std::uint32_t i = 0; i < depth; ++i) ASSERT_TRUE(writer->write(0x1008, i + 1));
  EXPECT_FALSE(writer->write(0x1008, 1000)) << "the ring is full";
  // Byte by byte as the bridge's header lays it out: bdf, bar, offset, value, command, size.
  const unsigned char first[20] = {0x08, 0x01, 0, 0, 0x08, 0x10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0};
  EXPECT_EQ(std::memcmp(ring + 24, first, sizeof first), 0);
  EXPECT_TRUE(bridge.poll());
  EXPECT_EQ(registers[0x1008 / 4], depth);
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(writer->write(0x100c, lap * 100 + i));
    EXPECT_TRUE(bridge.poll());
    EXPECT_EQ(registers[0x100c / 4], lap * 100 + 99);
  }
  EXPECT_FALSE(bridge.poll());
  EXPECT_EQ(bridge.writes(), depth + 500u);
  // Outside of the registers: an error of the bridge, and nothing written.
  ASSERT_TRUE(writer->write(sizeof registers, 1));
  EXPECT_TRUE(bridge.poll());
  EXPECT_EQ(bridge.errors(), 1u);
  munmap(ring, 4096);
}

namespace {

// A software drive with its queues, whose registers kernels reach, or reach in part.
class tried_drive : public nvme::bus {
 public:
  tried_drive(wish asked, std::uint32_t queues, std::uint64_t start) {
    options_.nvme_doorbell = asked;
    options_.timeout_ms = 300;
    shape_.queues = queues;
    software_ = software::built_in()->open_drive(file_.path, shape_, {8192, queues, {}, ""}, "");
    registers_ = gpu::buffer(software_->register_bytes(), gpu::place::shared, 4096);
    deaf_ = gpu::buffer(software_->register_bytes(), gpu::place::shared, 4096);
    software_->start(registers_.data(), payload_);
    machine_.add(&software_->device());
    drive_ = std::make_unique<nvme::drive>("nvme:x", registers_.data(), static_cast<nvme::bus&>(*this),
                                           std::chrono::milliseconds(5000));
    drive_->request_queues(queues);
    for (std::uint32_t qid = 1; qid <= queues; ++qid)
      all.push_back(std::make_unique<nvme::io_queue>(*drive_, qid, 4, start, true));
  }
  ~tried_drive() override {
    bells.reset();
    all.clear();
    drive_.reset();
    machine_.remove(&software_->device());
  }
  std::uint64_t map_queue(void* base, std::size_t bytes) override {
    return software_->map(base, bytes, nvme::software_drive::memory::queues);
  }
  void unmap_queue(void* base, std::size_t) override { software_->unmap(base); }

  // With every second doorbell deaf to kernels, or, where the host is deaf too, to all.
  bool arrives(bool hears_all, bool hears_host = true) {
    std::vector<nvme::tried_queue> tried;
    for (const auto& q : all) {
      std::uint32_t* const heard = drive_->sq_doorbell(q->id());
      std::uint32_t* const lost = deaf_.as<std::uint32_t>() + (heard - registers_.as<std::uint32_t>());
      tried.push_back({q.get(),
                       hears_all || q->id() % 2 == 0 ? heard : lost,
                       {hears_host ? heard : lost, drive_->cq_doorbell(q->id())}});
    }
    return nvme::kernels_ring(*drive_, tried, options_);
  }
  void leave_registers() {
    options_.nvme_doorbell = wish::bar;
    const nvme::doorbell_reach can{deaf_.data(), 0, registers_.data(), false};
    bells = std::make_unique<nvme::doorbells>(*drive_, options_, machine_, can, static_cast<std::uint32_t>(all.size()));
    bells->leave_registers(all);
  }
  // By the words that a kernel would store to.
  std::uint32_t read(nvme::io_queue& q) {
    dev::ring_view v = q.view();
    bells->show(q.id(), v);
    EXPECT_EQ(v.nvme.sq_doorbell, nullptr);
    // A word that were not what was rung last would be taken for a new value, or hide one.
    EXPECT_PAIRS((*v.nvme.shadow_tail, q.tail()), (*v.nvme.cq_doorbell, q.head()));
    const nvme::drive_memory page(*this, 4096);
    return q.run_first(wire::nvme::make_io(wire::nvme::opcode::read, 0, 1, page.address(), 0, 0, 1),
                       {v.nvme.shadow_tail, v.nvme.cq_doorbell}, std::chrono::milliseconds(5000));
  }

  std::vector<std::unique_ptr<nvme::io_queue>> all;
  std::unique_ptr<nvme::doorbells> bells;

 private:
  scratch_file file_{1 << 16};
  xio_storage_attr_t shape_ = XIO_STORAGE_ATTR_INIT;
  options options_ = options::defaults();
  payload_agent payload_ = gpu::payload();
  progress::machine machine_{1};
  gpu::buffer registers_, deaf_;
  std::unique_ptr<nvme::software_drive> software_;
  std::unique_ptr<nvme::drive> drive_;
};

std::string trial_refusal(tried_drive& d, bool hears_host) {
  return test::refusal([&] { d.arrives(false, hears_host); });
}

}  // namespace

// With 9 queues one more than are rung at once. A start near the end of a lap of the ring of 4.
TEST(nvme_doorbells, a_kernel_tries_the_registers_and_a_host_thread_rings_those_that_it_cannot) {
  for (const std::uint32_t queues : {1u, 3u, 9u}) {
    tried_drive good(wish::automatic, queues, 0);
    EXPECT_TRUE(good.arrives(true)) << queues;
    tried_drive deaf(wish::automatic, queues, 1024);
    EXPECT_FALSE(deaf.arrives(false)) << queues;
    deaf.leave_registers();
    for (int lap = 0; lap < 20; ++lap)
      for (const auto& q : deaf.all) ASSERT_EQ(deaf.read(*q), 0u) << "queue " << q->id() << " lap " << lap;
  }
}

TEST(nvme_doorbells, what_is_said_where_no_other_way_is_left) {
  tried_drive bar(wish::bar, 3, 0);
  EXPECT_EQ(
      trial_refusal(bar, true),
      "nvme:x: 2 of 3 doorbells that a kernel rang at once did not arrive within 300 ms, and XIO_NVME_DOORBELL=bar "
      "asks for no other way; use host or auto");
  tried_drive dead(wish::automatic, 1, 0);
  EXPECT_EQ(
      trial_refusal(dead, false),
      "nvme:x has not completed a read of block 0 within 300 ms, rung by a kernel and then by the host; reset it");
}

// Every cut of a transfer, against the definition: byte b is in stripe b / stripe, on member stripe % members.
TEST(nvme_doorbells, pieces_of_stripes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {
    dev::storage_view s{};
    s.block_bytes = 512;
    s.block_log2 = 9;
    s.members = 1 + random() % 8;
    s.stripe_log2 = 9 + random() % 6;
    s.transfer_bytes = 8192u << random() % 3;
    const std::uint64_t stripe = std::uint64_t{1} << s.stripe_log2;
    const std::uint64_t bytes = (1 + random() % 200) * 512;
    const dev::transfer t{.shape = dev::shape_of(s),
                          .op = wire::nvme::opcode::read,
                          .bus = {},
                          .first = 0,
                          .offset = random() % 1000 * 512,
                          .bytes = bytes,
                          .buffer = nullptr};
    std::vector<int> covered(bytes / 512);
    std::uint64_t commands = 0;
    for (std::uint32_t m = 0; m < s.members; ++m) {
      const dev::member_part part = dev::part_of(t, m);
      for (std::uint64_t i = 0; i < part.commands; ++i, ++commands) {
        const dev::piece p = dev::piece_of(t, part, i);
        ASSERT_GT(p.bytes, 0u);
        ASSERT_LE(p.bytes, s.transfer_bytes);
        ASSERT_LE(p.done + p.bytes, bytes);
        for (std::uint64_t at = 0; at < p.bytes; at += 512) {
          const std::uint64_t byte = t.offset + p.done + at;
          ++covered[(p.done + at) / 512];
          if (s.members == 1) {
            ASSERT_EQ(p.at + at, byte);
          } else {
            ASSERT_EQ(byte / stripe % s.members, m);
            ASSERT_EQ(p.at + at, byte / stripe / s.members * stripe + byte % stripe);
          }
        }
      }
    }
    for (const int times : covered) ASSERT_EQ(times, 1);
    ASSERT_EQ(dev::is_one_command(t), commands == 1);
  }
}
