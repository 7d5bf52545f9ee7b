// SPDX-License-Identifier: MIT
// Files and memory that the operating system does not reach: data are staged, and copies are as late as they may be.

#include <deque>

#include "base/payload.hpp"
#include "model/nvme/file_engine.hpp"
#include "scratch_file.hpp"

using namespace xio;
using namespace xio::model::nvme;
using namespace xio::test;

namespace {

constexpr std::uint64_t k_bytes = (5 << 20) + 777, k_piece = k_staged_piece;

// A copy engine that makes no copy before somebody has asked for it `late` times, and none while it is held.
struct copies {
  struct one {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  static inline std::deque<one> begun;
  static inline std::uint64_t numbered, made, asked, late, marks;
  static inline bool held;

  static void reset(std::uint64_t how_late) {
    begun.clear(), numbered = made = asked = marks = 0, late = how_late, held = false;
  }
  static void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  static void later(void* to, const void* from, std::size_t bytes) {
    begun.push_back({static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes});
    ++numbered;
  }
  static void finish() {
    for (const one& c : begun) std::memcpy(c.to, c.from, c.bytes);
    made += begun.size();
    begun.clear();
  }
  static std::uint64_t mark() { return ++marks, numbered; }
  static bool reached(std::uint64_t number) {
    if (held || ++asked % (late + 1) != 0) return made >= number;
    for (; made < number; ++made, begun.pop_front())
      std::memcpy(begun.front().to, begun.front().from, begun.front().bytes);
    return true;
  }
};
constexpr payload_agent k_at_once{.copy = copies::copy, .atomic = nullptr, .fence = [] {}};
constexpr payload_agent k_behind{
    .copy = copies::copy, .atomic = nullptr, .fence = [] {}, .copy_later = copies::later, .finish = copies::finish};
constexpr payload_agent k_marked{.copy = copies::copy,
                                 .atomic = nullptr,
                                 .fence = [] {},
                                 .copy_later = copies::later,
                                 .finish = copies::finish,
                                 .mark = copies::mark,
                                 .reached = copies::reached};

struct nvme_staged : testing::Test {
  nvme_staged() : fd(open(file.path.c_str(), O_RDWR)), direct(open(file.path.c_str(), O_RDWR | O_DIRECT)) {
    file.write(stamped_data(k_bytes));
    staging.reset(static_cast<std::byte*>(aligned_alloc(4096, k_staging_bytes)));
  }
  ~nvme_staged() override {
    close(fd);
    if (direct >= 0) close(direct);
  }
  std::unique_ptr<file_engine> engine(const payload_agent& by, bool plain = false, bool past_cache = false) {
    const std::span<std::byte> whole(staging.get(), k_staging_bytes);
    const int other = past_cache ? direct : -1;
    return make_staged_engine(plain ? make_plain_engine(fd, other) : make_file_engine(fd, other, whole), by,
                              plain ? std::span<std::byte>{} : whole);
  }
  static file_job job(file_job::kind what, std::uint64_t offset, std::vector<iovec> parts) {
    file_job j{};
    j.what = what;
    j.offset = offset;
    j.parts = std::move(parts);
    j.by = file_job::way::staged;
    return j;
  }
  // Until that many jobs are over, or for some turns.
  static std::vector<file_job*> turns(file_engine& e, std::size_t wanted, int most = 0) {
    std::vector<file_job*> done;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int i = 0; done.size() < wanted && (most == 0 ? std::chrono::steady_clock::now() < end : i < most); ++i) {
      e.kick();
      e.reap(done);
      if (most != 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return done;
  }

  scratch_file file;
  int fd, direct;
  struct freed {
    void operator()(std::byte* p) const { free(p); }
  };
  std::unique_ptr<std::byte, freed> staging;
};

}  // namespace

// Any place and length, in memory of several parts, by each engine and each kind of copies; nothing else is touched.
TEST_F(nvme_staged, moves_all_bytes_and_no_others) {
  const struct {
    std::uint64_t at;
    std::vector<std::uint64_t> parts;
  } cases[] = {{5, {3}},           {8192, {4096}},     {4093, {1, k_piece, 700001}},        {0, {k_bytes}},
               {k_piece - 1, {2}}, {k_bytes - 1, {1}}, {4096, {k_piece, 4096, 2 * k_piece}}};
  for (const payload_agent* by : {&k_at_once, &k_behind, &k_marked})
    for (const int how : {0, 1, 2, 3}) {
      copies::reset(2);
      const auto e = engine(*by, (how & 1) != 0, (how & 2) != 0 && direct >= 0);
      auto wanted = file.read();
      for (const auto& c : cases) {
        SCOPED_TRACE(testing::Message() << (by == &k_at_once) << (by == &k_marked) << " " << how << " at " << c.at);
        std::vector<unsigned char> memory(k_bytes + 64 * (c.parts.size() + 1), 0xee), expected = memory;
        std::vector<iovec> parts;
        std::uint64_t in_memory = 64, in_file = c.at;
        for (const std::uint64_t n : c.parts) {
          parts.push_back({&memory[in_memory], n});
          std::copy_n(&wanted[in_file], n, &expected[in_memory]);
          in_memory += n + 64, in_file += n;
        }
        file_job in = job(file_job::kind::read, c.at, parts);
        e->start(in);
        ASSERT_EQ(turns(*e, 1), std::vector<file_job*>{&in});
        ASSERT_TRUE(in.error == 0 && memory == expected) << in.error;
        in_memory = 64, in_file = c.at;
        for (const std::uint64_t n : c.parts) {
          for (std::uint64_t i = 0; i < n; ++i) memory[in_memory + i] = wanted[in_file + i] ^= 0x5a;
          in_memory += n + 64, in_file += n;
        }
        file_job out = job(file_job::kind::write, c.at, parts);
        out.durable = how == 3;
        e->start(out);
        ASSERT_EQ(turns(*e, 1), std::vector<file_job*>{&out});
        ASSERT_TRUE(out.error == 0 && file.read() == wanted) << out.error;
      }
    }
}

// While a piece is copied the next ones are read, and written only when their copies have arrived.
TEST_F(nvme_staged, pieces_overlap) {
  copies::reset(0);
  const auto e = engine(k_marked);
  std::vector<unsigned char> memory(4 * k_piece);
  for (const auto what : {file_job::kind::read, file_job::kind::write}) {
    copies::reset(0);
    copies::held = true;
    const auto before = file.read();
    file_job j = job(what, 0, {{memory.data(), memory.size()}});
    e->start(j);
    EXPECT_TRUE(turns(*e, 1, 200).empty());
    EXPECT_PAIRS((copies::begun.size(), 4u), (file.read(), before));
    copies::held = false;
    EXPECT_EQ(turns(*e, 1).size(), 1u);
    EXPECT_EQ(std::memcmp(memory.data(), file.read().data(), memory.size()), 0);
    for (unsigned char& byte : memory) byte ^= 0xff;
  }
}

// More jobs than places, and more copies than marks: all end, once.
TEST_F(nvme_staged, many_jobs_share_the_places) {
  copies::reset(3);
  const auto e = engine(k_marked);
  std::vector<unsigned char> memory(400 * 4096);
  std::deque<file_job> jobs;
  std::vector<file_job*> done;
  for (std::size_t i = 0; i < 400; ++i) {
    while (e->full()) {
      e->kick();
      e->reap(done);
    }
    jobs.push_back(job(file_job::kind::read, i * 4096, {{&memory[i * 4096], 4096}}));
    e->start(jobs.back());
  }
  const auto rest = turns(*e, 400 - done.size());
  done.insert(done.end(), rest.begin(), rest.end());
  EXPECT_EQ(std::set<file_job*>(done.begin(), done.end()).size(), 400u);
  EXPECT_EQ(done.size(), 400u);
  EXPECT_TRUE(stamped(memory.data(), 0, memory.size()));
}

// An error of one piece is the job's; memory that went away is copied to no more; both leave the engine as it was.
TEST_F(nvme_staged, errors_are_the_jobs) {
  copies::reset(0);
  const auto e = engine(k_marked);
  std::vector<unsigned char> memory(3 * k_piece, 0xee);
  const auto run = [&](file_job& j) {
    e->start(j);
    EXPECT_EQ(turns(*e, 1), std::vector<file_job*>{&j});
    return j.error;
  };
  file_job behind = job(file_job::kind::read, 4 << 20, {{memory.data(), memory.size()}});
  ASSERT_EQ(ftruncate(fd, (4 << 20) + k_piece + 5), 0);
  EXPECT_EQ(run(behind), EIO);
  file_job gone = job(file_job::kind::read, 0, {{memory.data(), memory.size()}});
  gone.unmapped = true;
  std::fill(memory.begin(), memory.end(), 0xee);
  EXPECT_EQ(run(gone), EFAULT);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](unsigned char c) { return c == 0xee; }));
  file_job good = job(file_job::kind::read, 0, {{memory.data(), memory.size()}});
  EXPECT_EQ(run(good), 0);
  EXPECT_TRUE(stamped(memory.data(), 0, memory.size()));
}
