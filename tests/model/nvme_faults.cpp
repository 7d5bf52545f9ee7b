// SPDX-License-Identifier: MIT
// What can go wrong with a drive: faults by a struct and by the text of XIO_MODEL_FAULTS, and files that fail under it.
#include "../unit/refusal.hpp"
#include "full_disk.hpp"
#include "model/fault_text.hpp"
#include "nvme_hand.hpp"

using namespace xio;
using namespace xio::test;
namespace w = xio::wire::nvme;
using model::nvme::fault;
using kind = model::nvme::fault::kind;

namespace {

w::sqe command(w::opcode op, std::uint32_t cid, hand& h, std::uint64_t lba = 0, std::uint32_t blocks = 1) {
  const bool data = op != w::opcode::write_zeroes && op != w::opcode::flush;
  return w::make_io(op, cid, 1, data ? h.data_bus() : 0, 0, lba, blocks);
}

model::nvme::fault_plan plan(const char* text) { return model::nvme::plan_faults(text); }

}  // namespace

TEST(nvme_fault_text, every_item) {
  const auto p = plan(
      "nvme_error@3=unrecovered_read/read/queue1,nvme_error=0.5:0x286,nvme_delay=0.25:3ms/write,nvme_lose@9/lba8-15,"
      "nvme_die@100,nvme_file=1:no_space/write_zeroes,nvme_file@2=io_error/flush,nvme_shuffle,seed=9,drop=0.5");
  EXPECT_EQ(p.seed, 9u);
  EXPECT_TRUE(p.shuffle);
  ASSERT_EQ(p.faults.size(), 7u);
  EXPECT_PAIRS((p.faults[0].what, kind::status), (p.faults[0].nth, 3u), (p.faults[0].times, 1u),
               (p.faults[0].status, 0x281u), (p.faults[0].opcode, 0x02), (p.faults[0].queue, 1u),
               (p.faults[1].status, 0x286u), (p.faults[1].chance, 0.5));
  EXPECT_FALSE(p.faults[1].opcode.has_value());
  EXPECT_GT(p.faults[1].times, 1000000u);
  EXPECT_PAIRS((p.faults[2].what, kind::delay), (p.faults[2].delay, std::chrono::milliseconds(3)),
               (p.faults[2].opcode, 0x01), (p.faults[3].what, kind::lose), (p.faults[3].first_lba, 8u),
               (p.faults[3].last_lba, 15u), (p.faults[4].what, kind::die), (p.faults[5].error, ENOSPC),
               (p.faults[5].opcode, 0x08), (p.faults[6].error, EIO), (p.faults[6].opcode, 0x00));
  EXPECT_TRUE(plan("").faults.empty());
}

TEST(nvme_fault_text, mistakes_have_a_place) {
  const std::map<int, std::vector<const char*>> at{
      {6, {"nvme_", "nvme_oops@1"}},
      {10, {"nvme_skip"}},
      {11, {"nvme_error", "nvme_lose@"}},
      {12, {"nvme_error=2:write_fault"}},
      {13, {"nvme_error@1", "nvme_lose@1/pe1", "nvme_file@1=oops", "nvme_shuffle/read"}},
      {14, {"nvme_error@1=oops", "nvme_astray@1"}},
      {15, {"nvme_error=0.5", "nvme_delay=1:2", "nvme_astray@1=x"}},
      {16, {"nvme_astray=0.5"}},
      {17, {"nvme_error@1=0x0"}},
      {18, {"nvme_lose@1/read/write", "drop=0.5,nvme_die"}},
      {19, {"nvme_error@1=0x800", "nvme_lose@1/lba9-8"}},
      {20, {"nvme_lose@1/queue1/queue2"}}};
  for (const auto& [place, texts] : at)
    for (const char* text : texts) {
      SCOPED_TRACE(text);
      expect_words(refusal(XIO_ERR_CONFIG, [&] { (void)plan(text); }), {"at character " + std::to_string(place) + ";"});
    }
}

// A drive that says that all is well and lies: only a program that knows the data can see it.
TEST(nvme_faults, commands_that_only_seem_done) {
  ready_hand h;
  h.device().inject(plan("nvme_skip@1,nvme_astray@2=7/write,nvme_astray@4=1"));
  for (std::uint64_t lba = 0; lba < 3; ++lba) {
    stamp(h.data(), lba * 512, 512, 3);
    EXPECT_EQ(h.io(command(w::opcode::write, 0, h, lba)), 0u);
  }
  const auto file = h.file().read();
  EXPECT_TRUE(stamped(file.data(), 0, 512, 3));
  for (const std::size_t untouched : {1, 2})
    EXPECT_FALSE(stamped(file.data() + untouched * 512, untouched * 512, 512, 3));
  EXPECT_TRUE(stamped(file.data() + 7 * 512, 2 * 512, 512, 3));
  EXPECT_EQ(h.io(command(w::opcode::read, 0, h, 7)), 0u);
  EXPECT_TRUE(stamped(h.data(), 2 * 512, 512, 3));
  EXPECT_EQ(h.io(command(w::opcode::read, 0, h, 7)), 0u);
  EXPECT_FALSE(stamped(h.data(), 2 * 512, 512, 3));
}

// A chosen status for a chosen command, and nothing is moved.
TEST(nvme_faults, a_status_for_one_command) {
  ready_hand h;
  h.device().inject(plan("nvme_error@2=write_fault,nvme_error=1:0x3a1/read/lba100-107"));
  stamp(h.data(), 0, 512, 3);
  EXPECT_PAIRS((h.io(command(w::opcode::write, 0, h, 0)), 0u), (h.io(command(w::opcode::write, 0, h, 1)), 0u),
               (h.io(command(w::opcode::write, 0, h, 2)), 0x280u), (h.io(command(w::opcode::write, 0, h, 3)), 0u));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(h.io(command(w::opcode::read, 0, h, 99, 2)), 0x3a1u);
  EXPECT_EQ(h.io(command(w::opcode::read, 0, h, 107)), 0x3a1u);
  EXPECT_TRUE(stamped(h.data(), 0, 512, 3));
  EXPECT_PAIRS((h.io(command(w::opcode::read, 0, h, 108)), 0u), (h.io(command(w::opcode::write, 0, h, 100)), 0u));
  const auto file = h.file().read();
  EXPECT_TRUE(stamped(file.data() + 512, 0, 512, 3));
  EXPECT_TRUE(stamped(file.data() + 1024, 1024, 512));
  // The error log names them: the last read first.
  ASSERT_EQ(h.admin(w::make_get_log_page(w::log_page::error_information, 64, false, h.data_bus())), 0u);
  EXPECT_PAIRS((h.identified<std::uint16_t>(12), 0x3a1u << 1), (h.identified<std::uint64_t>(16), 107u));
}

// The same seed gives the same faults; about as many as the chance says.
TEST(nvme_faults, chances_repeat) {
  const auto run = [](const char* text) {
    ready_hand h;
    h.device().inject(plan(text));
    std::set<int> failed;
    for (int i = 0; i < 400; ++i)
      if (h.io(command(w::opcode::read, 0, h)) != 0) failed.insert(i);
    return failed;
  };
  const auto first = run("nvme_error=0.25:write_fault,seed=5");
  EXPECT_GT(first.size(), 60u);
  EXPECT_LT(first.size(), 140u);
  EXPECT_EQ(first, run("nvme_error=0.25:write_fault,seed=5"));
  EXPECT_NE(first, run("nvme_error=0.25:write_fault,seed=6"));
}

TEST(nvme_faults, delayed_and_lost) {
  ready_hand h;
  h.device().inject(plan("nvme_delay=1:20ms/lba5,nvme_lose@1"));
  auto& q = h.io_queue();
  const auto begin = std::chrono::steady_clock::now();
  h.put(q, command(w::opcode::read, 10, h, 5));
  h.put(q, command(w::opcode::read, 11, h, 6));
  h.put(q, command(w::opcode::read, 12, h, 7));
  h.ring(q);
  const std::set<std::uint32_t> came = {w::cqe_cid(h.next(q).dw[3]), w::cqe_cid(h.next(q).dw[3])};
  EXPECT_EQ(came, (std::set<std::uint32_t>{10, 12}));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  h.device().release();
  h.turn(1000);
  EXPECT_FALSE(h.ready(q));  // never, unless its queue goes
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_sq, 1)), 0u);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_cq, 1)), 0u);
  h.make_queues();
  EXPECT_EQ(h.io(command(w::opcode::read, 0, h)), 0u);
}

// Memory that goes while a command has it: behind an IOMMU the drive would be stopped, and here it is reported.
TEST(nvme_faults, memory_goes_before_the_command) {
  ready_hand h({.direct = false});
  h.device().inject(plan("nvme_delay=1:20ms"));
  std::memset(h.data(), 0x77, 512);
  auto& q = h.io_queue();
  h.put(q, command(w::opcode::read, 1, h));
  h.ring(q);
  h.turn();
  h.device().dma().remove(h.data());
  EXPECT_PAIRS((hand::status(h.next(q)), w::k_data_transfer_error), (h.device().dma_faults(), 1u), (h.data()[0], 0x77));
}

TEST(nvme_faults, memory_goes_under_the_command) {
  static hand* now;
  hand h({.direct = false, .copy = [](void* to, const void* from, std::size_t n) {
            std::memcpy(to, from, n);
            now->device().dma().remove(now->data());
          }});
  now = &h;
  h.make_queues();
  EXPECT_PAIRS((h.io(command(w::opcode::write, 0, h)), w::k_data_transfer_error), (h.device().dma_faults(), 1u));
}

// Other memory may be unmapped without harm; a queue's is missed at once.
TEST(nvme_faults, memory_of_queues_goes) {
  ready_hand h({.direct = false});
  h.device().dma().remove(h.data());
  h.turn(2);
  EXPECT_PAIRS((h.io(command(w::opcode::flush, 0, h)), 0u), (h.device().dma_faults(), 0u));
  h.device().dma().remove(h.memory());
  h.turn();
  EXPECT_PAIRS((h.csts() & w::k_csts_cfs, w::k_csts_cfs), (h.device().dma_faults(), 1u));
}

// Completions in random order: all come, each once, and not in the order of the commands.
TEST(nvme_faults, random_order) {
  hand h;
  h.make_queues(64);
  h.device().inject(plan("nvme_shuffle,seed=3"));
  auto& q = h.io_queue();
  bool turned = false;
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < 60; ++i) h.put(q, w::make_io(w::opcode::read, i, 1, h.data_bus(i * 512), 0, i, 1));
    h.ring(q);
    std::set<std::uint32_t> came;
    for (std::uint32_t i = 0; i < 60; ++i) {
      const w::cqe e = h.next(q);
      ASSERT_EQ(h.status(e), 0u);
      const std::uint32_t cid = w::cqe_cid(e.dw[3]);
      turned = turned || cid != i;
      EXPECT_TRUE(came.insert(cid).second);
      ASSERT_TRUE(stamped(h.data() + cid * 512, cid * 512, 512));
    }
    EXPECT_EQ(came.size(), 60u);
    h.consume(q);
    h.turn();
  }
  EXPECT_TRUE(turned);
  EXPECT_EQ(h.device().invalid_doorbells(), 0u);
}

TEST(nvme_faults, dies_at_a_command) {
  ready_hand h;
  h.device().inject(plan("nvme_die@1"));
  auto& q = h.io_queue();
  EXPECT_EQ(h.io(command(w::opcode::read, 0, h)), 0u);
  for (std::uint32_t i = 0; i < 3; ++i) h.put(q, command(w::opcode::read, i, h));
  h.ring(q);
  EXPECT_TRUE(h.until([&] { return h.csts() == 3; }));
  h.turn(500);
  EXPECT_FALSE(h.ready(q));
  h.restart();
  h.make_queues();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(h.io(command(w::opcode::read, 0, h)), 0u);  // it dies once
}

TEST(nvme_faults, the_file_refuses) {
  ready_hand h;
  h.device().inject(
      plan("nvme_file@0=no_space/write,nvme_file@1=io_error/read,nvme_file@2=io_error/flush,nvme_file@3=no_space"));
  EXPECT_PAIRS((h.io(command(w::opcode::write, 0, h)), 0x280u), (h.io(command(w::opcode::read, 0, h)), 0x281u),
               (h.io(w::make_command(0x00, 0, 1, 0, 0)), 0x280u),
               (h.io(command(w::opcode::write_zeroes, 0, h)), 0x280u),
               (h.io(command(w::opcode::compare, 0, h)), 0x285u), (h.file().read(), stamped_data(1 << 20)));
}

// A file that is made shorter under the drive: reads of what is left go on, nothing is written behind the hole.
TEST(nvme_faults, a_file_that_is_cut) {
  for (const bool plain : {false, true}) {
    ready_hand h({.shape = {.plain_io = plain}});
    EXPECT_EQ(h.io(command(w::opcode::write, 0, h)), 0u);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ASSERT_EQ(truncate(h.file().path.c_str(), 65536), 0);
    EXPECT_PAIRS((h.io(command(w::opcode::write, 0, h, 1000)), 0x280u),
                 (h.io(command(w::opcode::write_zeroes, 0, h, 1000)), 0x280u),
                 (h.io(command(w::opcode::write, 0, h)), 0x280u), (h.io(w::make_command(0x00, 0, 1, 0, 0)), 0x280u),
                 (h.io(command(w::opcode::read, 0, h, 1000)), 0x281u),
                 (h.io(command(w::opcode::compare, 0, h, 1000)), 0x281u),
                 (h.io(w::make_io(w::opcode::read, 0, 1, h.data_bus(), h.data_bus(4096), 127, 2)), 0x002u));
    EXPECT_EQ(h.io(w::make_io(w::opcode::read, 0, 1, h.data_bus(), 0, 127, 2)), 0x281u);  // half of it is there
    EXPECT_EQ(h.io(command(w::opcode::read, 0, h, 127)), 0u);
    EXPECT_TRUE(stamped(h.data(), 127 * 512, 512));
    EXPECT_EQ(h.file().size(), 65536u);
  }
}

// The operating system's limit stands for a full disk: the part that fits is written, the rest is an error.
TEST(nvme_faults, a_disk_that_is_full) {
  for (const bool plain : {false, true}) {
    ready_hand h({.shape = {.plain_io = plain}, .file_bytes = 65536});
    auto limit = std::make_unique<full_disk::file_limit>(32768);
    stamp(h.data(), 0, 4096, 7);
    EXPECT_EQ(h.io(command(w::opcode::write, 0, h, 64)), 0x280u);
    EXPECT_EQ(h.io(command(w::opcode::write, 0, h, 60, 8)), 0x280u);
    EXPECT_EQ(h.io(command(w::opcode::write, 0, h, 0, 8)), 0u);
    limit.reset();
    EXPECT_EQ(h.io(command(w::opcode::write, 0, h, 64)), 0u);
    const auto file = h.file().read();
    EXPECT_TRUE(stamped(file.data(), 0, 4096, 7));
    EXPECT_TRUE(stamped(file.data() + 4096, 4096, 60 * 512 - 4096));
    EXPECT_TRUE(stamped(file.data() + 60 * 512, 0, 2048, 7));  // up to the limit
    EXPECT_TRUE(stamped(file.data() + 65 * 512, 65 * 512, 65536 - 65 * 512));
  }
}

namespace {

void write_to_a_full_disk(const std::string& place, bool plain) {
  ready_hand h({.shape = {.plain_io = plain}});
  const int hole = open(h.file().path.c_str(), O_RDWR);
  const int filler = open((place + "/filler").c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  ASSERT_EQ(fallocate(hole, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 512 << 10, 512 << 10), 0);
  full_disk::fill_up(filler);
  const auto write_at = [&](std::uint64_t lba) {
    return h.io(w::make_io(w::opcode::write, 0, 1, h.data_bus(), h.data_bus(4096), lba, 16));
  };
  stamp(h.data(), 0, 8192, 9);
  EXPECT_EQ(write_at(1024), 0x280u);
  EXPECT_EQ(h.io(command(w::opcode::write_zeroes, 0, h, 1024, 16)), 0x280u);
  EXPECT_EQ(write_at(0), 0u);  // where there is something already
  EXPECT_EQ(h.io(w::make_command(0x00, 0, 1, 0, 0)), 0u);
  std::vector<unsigned char> want = stamped_data(1 << 20);
  std::fill(want.begin() + (512 << 10), want.end(), static_cast<unsigned char>(0));
  stamp(want.data(), 0, 8192, 9);
  EXPECT_EQ(h.file().read(), want);
  // One page is left: the first half of the write fits, and it is an error all the same.
  struct stat info {};
  ASSERT_EQ(fstat(filler, &info), 0);
  ASSERT_EQ(ftruncate(filler, info.st_size - 4096), 0);
  EXPECT_EQ(write_at(1040), 0x280u);
  stamp(want.data() + 1040 * 512, 0, 4096, 9);
  EXPECT_EQ(h.file().read(), want);
  // With room again the drive goes on.
  ASSERT_EQ(ftruncate(filler, 0), 0);
  EXPECT_EQ(write_at(1024), 0u);
  stamp(want.data() + 1024 * 512, 0, 8192, 9);
  EXPECT_EQ(h.file().read(), want);
  close(filler);
  close(hole);
}

}  // namespace

// In a process of its own, for the file system is the process's.
TEST(nvme_faults, a_file_system_that_is_full) {
  full_disk::run_in_a_child(
      [](const std::string& place) {
        setenv("TEST_TMPDIR", place.c_str(), 1);
        for (const bool plain : {false, true}) write_to_a_full_disk(place, plain);
      },
      "; a_disk_that_is_full does the same with a limit");
}

namespace {

std::atomic<int> signals{0};

}  // namespace

// The signal of the file-size limit must not reach the program because of a drive.
TEST(nvme_faults, a_full_disk_is_no_signal) {
  ready_hand h({.file_bytes = 65536});
  progress::machine machine(1);
  const full_disk::file_limit limit(32768, [](int) { signals.fetch_add(1); });
  machine.add(&h.device());
  auto& q = h.io_queue();
  h.put(q, command(w::opcode::write, 1, h, 64));
  __atomic_store_n(h.tail_doorbell(q), q.tail, __ATOMIC_RELEASE);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto* dw3 = reinterpret_cast<const std::uint32_t*>(q.cq) + 3;
  while (w::cqe_phase(__atomic_load_n(dw3, __ATOMIC_ACQUIRE)) == 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  machine.remove(&h.device());
  EXPECT_EQ(h.status(h.next(q)), 0x280u);
  EXPECT_EQ(signals.load(), 0);
}
