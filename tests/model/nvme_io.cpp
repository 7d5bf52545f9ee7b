// SPDX-License-Identifier: MIT
// The storage API over the model: every byte in its place, for every kind of queue, order and buffer.
#include "loop_device.hpp"
#include "nvme_rig.hpp"

#include <random>

using namespace xio;
using namespace xio::test;

namespace {

void read_everywhere(std::uint64_t sgl) {
  stamped_rig r({.mdts = 128 << 10, .sgl = sgl});
  const std::uint64_t sizes[] = {
      512, 4096, 4608, 8192, 12288, (128 << 10), (128 << 10) + 512, 640 << 10, (1 << 20) + 1536};
  const std::uint64_t offsets[] = {0, 4, 512, 2048, 4092};
  for (const std::uint64_t bytes : sizes) {
    for (const std::uint64_t at : offsets) {
      std::memset(r.heap(), 0xee, bytes + 8192);
      const std::uint64_t from = (bytes * 3 + at * 512) % (k_file - bytes) & ~std::uint64_t{511};
      ASSERT_EQ(xio_read(r.ctx(), r.heap() + at, r.storage(), from, bytes), XIO_OK) << bytes << " at " << at;
      ASSERT_TRUE(stamped(r.heap() + at, from, bytes)) << bytes << " at " << at;
      for (std::uint64_t i = 0; i < at; ++i) ASSERT_EQ(r.heap()[i], 0xee) << i;
      for (std::uint64_t i = at + bytes; i < bytes + 8192; ++i) ASSERT_EQ(r.heap()[i], 0xee) << i;
    }
  }
  EXPECT_EQ(r.quiet(), XIO_OK);
}

}  // namespace

// Sizes below, at and above one page, two pages, a list, MDTS; offsets in the page from 0 to the last dword.
TEST(nvme_io, reads_at_every_page_offset_by_sgls) { read_everywhere(1); }
TEST(nvme_io, reads_at_every_page_offset_by_prps) { read_everywhere(0); }

TEST(nvme_io, writes_reach_the_file_and_nothing_else) {
  scratch_file f;
  constexpr std::uint64_t total = 1 << 20;
  {
    rig r(f.path, {.flags = XIO_STORAGE_CREATE, .bytes = total, .mdts = 64 << 10});
    const std::uint64_t sizes[] = {512, 4096, 65536, 300 << 10};
    std::uint64_t at = 512;
    for (const std::uint64_t bytes : sizes) {
      stamp(r.heap() + 12, at, bytes);
      ASSERT_EQ(xio_write(r.ctx(), r.heap() + 12, r.storage(), at, bytes), XIO_OK);
      at += bytes;
    }
    ASSERT_EQ(xio_storage_sync(r.ctx(), r.storage()), XIO_OK);
    const auto data = f.read();
    ASSERT_EQ(data.size(), total);
    EXPECT_TRUE(stamped(data.data() + 512, 512, at - 512));
    for (std::uint64_t i = 0; i < 512; ++i) ASSERT_EQ(data[i], 0);
    for (std::uint64_t i = at; i < total; ++i) ASSERT_EQ(data[i], 0);
  }
  EXPECT_EQ(f.size(), total);
}

// Whole pages leave nothing in the page cache, and what goes through it besides is right.
TEST(nvme_io, past_the_page_cache) {
  stamped_file f(k_file + 5);
  f.cached(k_file, true);
  rig r(f.path, {.flags = XIO_STORAGE_DIRECT, .mdts = 128 << 10});
  ASSERT_EQ(f.cached(k_file), 0);
  for (const std::uint64_t memory : {0, 512, 12}) {  // the last lies badly for disks, and is cached
    EXPECT_EQ(xio_read(r.ctx(), r.heap() + memory, r.storage(), 4096, 1 << 20), XIO_OK);
    EXPECT_TRUE(stamped(r.heap() + memory, 4096, 1 << 20));
    EXPECT_EQ(f.cached(k_file) == 0, memory != 12);
  }
  stamp(r.heap(), 8192, 8192, 9);
  EXPECT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), 8192, 8192), XIO_OK);
  EXPECT_EQ(xio_write(r.ctx(), r.heap() + 8, r.storage(), 8200, 100), XIO_OK);
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), k_file - 4096, 4101), XIO_OK);
  EXPECT_EQ(xio_storage_sync(r.ctx(), r.storage()), XIO_OK);
  EXPECT_TRUE(stamped(f.read().data() + 8192, 8192, 8192, 9));
}

// A file's length is its own, with any block: every byte of it is reached, what a write does not name stays, and
// nothing is longer afterwards.
TEST(nvme_io, files_of_any_length) {
  for (const std::uint64_t bytes : {1, 511, 513, 4097, 100001}) {
    for (const std::uint32_t block : {512u, 4096u, 65536u}) {
      scratch_file f;
      std::vector<unsigned char> wanted = stamped_data(bytes);
      f.write(wanted);
      rig r(f.path, {.block = block, .mdts = 65536, .sgl = block == 4096 ? 0u : 1u});
      ASSERT_EQ(r.world().storages[0].bytes, bytes);
      std::mt19937 random(static_cast<unsigned>(bytes));
      for (int i = 0; i < 40; ++i) {
        // The first three are all of it, its first byte and its last.
        const std::uint64_t at = i == 0 || i == 1 ? 0 : i == 2 ? bytes - 1 : random() % bytes;
        const std::uint64_t n = i == 0 ? bytes : i < 3 ? 1 : 1 + random() % (bytes - at);
        unsigned char* buffer = r.heap() + random() % 4099;
        std::memset(r.heap(), 0xee, bytes + 8192);
        ASSERT_EQ(xio_read(r.ctx(), buffer, r.storage(), at, n), XIO_OK) << at << " " << n;
        ASSERT_EQ(std::memcmp(buffer, &wanted[at], n), 0) << at << " " << n;
        ASSERT_TRUE((buffer == r.heap() || buffer[-1] == 0xee) && buffer[n] == 0xee) << at << " " << n;
        ASSERT_EQ(xio_compare(r.ctx(), buffer, r.storage(), at, n), XIO_OK);
        for (std::uint64_t k = 0; k < n; ++k) wanted[at + k] = buffer[k] = static_cast<unsigned char>(random());
        if (i % 4 == 3) std::fill_n(&wanted[at], n, static_cast<unsigned char>(0));
        ASSERT_EQ(
            i % 4 == 3 ? xio_write_zeroes(r.ctx(), r.storage(), at, n) : xio_write(r.ctx(), buffer, r.storage(), at, n),
            XIO_OK);
        ASSERT_TRUE(f.read() == wanted) << at << " " << n << " of " << bytes << " in blocks of " << block;
      }
      EXPECT_PAIRS((xio_read(r.ctx(), r.heap(), r.storage(), bytes - 1, 2), XIO_ERR_ARG),
                   (xio_write(r.ctx(), r.heap(), r.storage(), bytes, 1), XIO_ERR_ARG), (f.size(), bytes));
    }
  }
}

// Writes of neighbouring bytes in the same blocks, many at a time, by two drives over one file: none is lost.
TEST(nvme_io, neighbours_in_a_block_are_kept) {
  constexpr std::uint64_t k_bytes = 40000;
  scratch_file f(k_bytes);
  rig one(f.path, {.depth = 64}), two(f.path, {.depth = 64});
  const auto data = stamped_data(k_bytes);
  std::vector<std::thread> all;
  for (std::uint64_t t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      rig& mine = t % 2 == 0 ? one : two;
      std::memcpy(mine.heap() + t * k_bytes, data.data(), k_bytes);
      for (std::uint64_t at = 7 * t; at < k_bytes; at += 28)
        (void)xio_write_nbi(mine.ctx(), mine.heap() + t * k_bytes + at, mine.storage(), at,
                            std::min<std::uint64_t>(7, k_bytes - at));
    });
  for (std::thread& t : all) t.join();
  EXPECT_PAIRS((one.quiet(), XIO_OK), (two.quiet(), XIO_OK));
  EXPECT_TRUE(f.read() == data);
}

TEST(nvme_io, a_block_device_has_all_its_bytes) {
  scratch_file f(1001 * 512);
  const loop_device device(f.path);
  if (device.path().empty()) GTEST_SKIP() << "no loop device can be had here; root has them where /dev/loop-control is";
  {
    rig r(device.path(), {.block = 4096});
    EXPECT_EQ(r.world().storages[0].bytes, 1001u * 512);
    stamp(r.heap(), 124 * 4096, 4096);
    EXPECT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), 124 * 4096, 4096), XIO_OK);
    EXPECT_EQ(xio_storage_sync(r.ctx(), r.storage()), XIO_OK);
    EXPECT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), 1001 * 512 - 5, 5), XIO_OK);
    EXPECT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), 125 * 4096, 4096), XIO_ERR_ARG);
  }
  expect_words(refusal([&] { rig(device.path(), {.block = 4096, .bytes = 1001 * 512 + 1}); }),
               {"too short: it has 512512 bytes"});
  const rig all(device.path(), {.block = 512, .bytes = 1001 * 512});
  const auto data = f.read();
  ASSERT_EQ(data.size(), 1001u * 512);
  EXPECT_TRUE(stamped(data.data() + 124 * 4096, 124 * 4096, 4096));
}

TEST(nvme_io, an_empty_file_opens_and_holds_nothing) {
  scratch_file f;
  rig r(f.path, {});
  EXPECT_PAIRS((r.world().storages[0].bytes, 0u), (xio_read(r.ctx(), r.heap(), r.storage(), 0, 0), XIO_OK),
               (xio_read(r.ctx(), r.heap(), r.storage(), 0, 512), XIO_ERR_ARG));
}

namespace {

// `threads` host threads, each with requests of its own in flight, read and rewrite blocks of their own.
void storm(rig& r, int threads, int rounds, std::uint64_t seed) {
  constexpr std::uint64_t k_share = 64 << 10;
  std::atomic<int> wrong{0};
  xio::test::at_once(threads, [&](int t) {
    std::mt19937 random(static_cast<unsigned>(seed) + static_cast<unsigned>(t));
    const std::uint64_t base = static_cast<std::uint64_t>(t) * k_share;
    unsigned char* mine = r.heap() + base * 2;
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t bytes = 512u << random() % 5;
      const std::uint64_t at = base + (random() % (k_share - bytes) & ~511u);
      const std::uint64_t salt = random();
      stamp(mine, at, bytes, salt);
      const xio_req_t w = xio_write_nbi(r.ctx(), mine, r.storage(), at, bytes);
      if (r.wait(w) != XIO_OK) ++wrong;
      const xio_req_t a = xio_read_nbi(r.ctx(), mine + k_share, r.storage(), at, bytes);
      const xio_req_t b = xio_read_nbi(r.ctx(), mine + k_share + 16384, r.storage(), at, 512);
      if (r.wait(b) != XIO_OK || r.wait(a) != XIO_OK) ++wrong;
      if (!stamped(mine + k_share, at, bytes, salt) || !stamped(mine + k_share + 16384, at, 512, salt)) ++wrong;
    }
  });
  EXPECT_PAIRS((wrong, 0), (r.quiet(), XIO_OK), (r.device().invalid_doorbells(), 0u));
  const auto& s = *r.ring().state;
  EXPECT_PAIRS((s.issued, dev::ring_completed(r.ring())), (s.credits, r.ring().depth - 1));
}

}  // namespace

TEST(nvme_io, four_entry_queue_wraps) {
  stamped_rig r({.depth = 4});
  storm(r, 4, 300, 1);
  EXPECT_GT(r.ring().state->issued, 3u * 16 * 8);  // many laps of SQ, CQ and command ids
}

TEST(nvme_io, tickets_cross_32_bits) {
  stamped_rig r({.depth = 4, .ticket_start = (std::uint64_t{1} << 32) - 16});
  ASSERT_EQ(r.ring().state->issued, 0xfffffff0u);
  storm(r, 2, 100, 2);
  EXPECT_GT(r.ring().state->issued, std::uint64_t{1} << 32);
}

TEST(nvme_io, completions_in_random_order) {
  stamped_file f;
  for (const std::uint32_t depth : {4u, 16u, 64u}) {
    rig r(f.path, {.depth = depth});
    r.device().shuffle(depth);
    storm(r, 4, 150, 3);
  }
}

// A command that does not complete for long: others go on until its id would be taken again, then wait, then go on.
TEST(nvme_io, a_slow_command_keeps_its_id) {
  stamped_rig r({.depth = 4});
  r.device().inject({.what = model::nvme::fault::kind::hold, .first_lba = 4096, .last_lba = 4096});
  const xio_req_t slow = xio_read_nbi(r.ctx(), r.heap(), r.storage(), 4096 * 512, 512);
  std::atomic<int> posted{0};
  std::atomic<int> wrong{0};
  std::thread others([&] {
    for (int i = 1; i <= 60; ++i) {
      const auto at = static_cast<std::uint64_t>(i) * 512;
      const xio_req_t q = xio_read_nbi(r.ctx(), r.heap() + at, r.storage(), at, 512);
      ++posted;
      if (r.wait(q) != XIO_OK || !stamped(r.heap() + at, at, 512)) ++wrong;
    }
  });
  // depth 4: 16 ids. The two slots that are free are no credits, for the next ticket has the id of the slow one.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(posted, 15);
  EXPECT_EQ(r.test(slow), XIO_PENDING);
  const dev::ring_state* state = r.ring().state;
  const auto now = [](const auto* word) { return dev::load<dev::scope::agent, dev::order::relaxed>(word); };
  EXPECT_PAIRS((now(&state->issued), 16u), (now(&state->granted), 16u), (now(&state->credits), 0),
               (now(&state->kept_back), 2u));
  r.device().release();
  others.join();
  EXPECT_PAIRS((wrong, 0), (posted, 60), (r.wait(slow), XIO_OK));
  EXPECT_TRUE(stamped(r.heap(), 4096 * 512, 512));
  EXPECT_PAIRS((now(&state->credits), 3), (now(&state->kept_back), 0u));
}

// Its list too: lists are by command id, so younger commands do not write over the one of a slow command.
TEST(nvme_io, a_delayed_command_with_a_list) {
  stamped_rig r({.depth = 4, .sgl = 0});
  ASSERT_NE(r.ring().nvme.list_pages, nullptr);
  r.device().inject({.what = model::nvme::fault::kind::delay, .delay = std::chrono::milliseconds(100)});
  const xio_req_t slow = xio_read_nbi(r.ctx(), r.heap() + (1 << 20), r.storage(), 0, 256 << 10);
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), i * 65536, 256 << 10), XIO_OK);
  EXPECT_EQ(r.wait(slow), XIO_OK);
  EXPECT_TRUE(stamped(r.heap() + (1 << 20), 0, 256 << 10));
}

// Another storage may have the place of a closed one: its handle and its requests do nothing there.
TEST(nvme_io, handles_and_requests_do_not_outlive_their_storage) {
  stamped_rig r({.timeout_ms = 300});
  xio_req_t old = 0;
  for (int i = 0; i < 5; ++i) old = xio_read_nbi(r.ctx(), r.heap(), r.storage(), 0, 512);
  EXPECT_EQ(r.wait(old), XIO_OK);
  const xio_storage_t closed = r.storage();
  ASSERT_EQ(r.quiet(), XIO_OK);
  // As the world does it, with an empty ring in the place.
  r.world().storages[0].live = 2;
  dev::ring_state& state = *r.ring().state;
  state.issued = state.published = state.completed = 0;
  EXPECT_PAIRS((xio_write(r.ctx(), r.heap(), closed, 0, 512), XIO_ERR_STATE),
               (xio_storage_sync(r.ctx(), closed), XIO_ERR_STATE),
               (xio_read(r.ctx(), r.heap(), {closed.view, 0}, 0, 512), XIO_ERR_STATE), (r.test(old), XIO_ERR_ARG),
               (r.wait(old), XIO_ERR_ARG), (state.failed, 0u), (state.issued, 0u));
  // One whose tickets begin behind those.
  state.first = 64, state.issued = state.completed = 128;
  EXPECT_PAIRS((r.test(old), XIO_ERR_ARG), (r.wait(old), XIO_ERR_ARG),
               (r.test(dev::make_storage_request(r.ring(), 63, 1)), XIO_ERR_ARG),
               (r.test(dev::make_storage_request(r.ring(), 64, 1)), XIO_OK));
}

TEST(nvme_io, commands_that_the_drive_does_not_have) {
  stamped_file f;
  rig r(f.path, {});
  r.world().storages[0].features = dev::storage_zeroes;
  EXPECT_EQ(xio_compare(r.ctx(), r.heap(), r.storage(), 0, 512), XIO_ERR_UNSUPPORTED);
  EXPECT_EQ(r.wait(xio_compare_nbi(r.ctx(), r.heap(), r.storage(), 0, 512)), XIO_ERR_UNSUPPORTED);
  EXPECT_EQ(r.view().error, static_cast<std::uint32_t>(XIO_ERR_UNSUPPORTED));
  EXPECT_EQ(xio_write_zeroes(r.ctx(), r.storage(), 0, 512), XIO_OK);
  r.world().storages[0].features = dev::storage_compares;
  EXPECT_EQ(xio_write_zeroes(r.ctx(), r.storage(), 512, 512), XIO_ERR_UNSUPPORTED);
  std::memset(r.heap(), 0, 512);
  EXPECT_EQ(xio_compare(r.ctx(), r.heap(), r.storage(), 0, 512), XIO_OK);
  std::vector<unsigned char> want = stamped_data(k_file);
  std::memset(want.data(), 0, 512);
  EXPECT_EQ(f.read(), want);
}

// More zeroes than a command could carry as data, and more than one command can name (65536 blocks).
TEST(nvme_io, zeroes_beyond_one_command) {
  scratch_file f;
  constexpr std::uint64_t total = 80 << 20;
  rig r(f.path, {.flags = XIO_STORAGE_CREATE, .bytes = total, .mdts = 8 << 20});
  std::memset(r.heap(), 0x77, 1 << 20);
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{40} << 20, total - 1024})
    ASSERT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), at, 1024), XIO_OK);
  ASSERT_EQ(xio_write_zeroes(r.ctx(), r.storage(), 512, total - 1024), XIO_OK);
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{40} << 20, total - 1024}) {
    ASSERT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), at, 1024), XIO_OK);
    for (std::uint64_t i = 0; i < 1024; ++i)
      ASSERT_EQ(r.heap()[i], at + i < 512 || at + i >= total - 512 ? 0x77 : 0) << at + i;
  }
}

// Places that are only just there, where offset + length would not fit 64 bits, or a block number 32.
TEST(nvme_io, offsets_beyond_the_end) {
  const std::string path = "/dev/shm/xio_nvme_far_" + std::to_string(getpid());
  constexpr std::uint64_t total = (std::uint64_t{1} << 62) + (1 << 20);
  {
    rig r(path, {.flags = XIO_STORAGE_CREATE, .bytes = total, .mdts = 8192});
    ASSERT_EQ(r.world().storages[0].bytes, total);
    for (const std::uint64_t at : {std::uint64_t{1} << 41, std::uint64_t{1} << 62, total - 65536}) {
      stamp(r.heap(), at, 65536);
      ASSERT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), at, 65536), XIO_OK) << at;
      std::memset(r.heap(), 0, 65536);
      ASSERT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), at, 65536), XIO_OK) << at;
      EXPECT_TRUE(stamped(r.heap(), at, 65536)) << at;
    }
    const std::uint64_t places[][2] = {{total, 512},
                                       {total - 512, 1024},
                                       {std::uint64_t{1} << 63, 512},
                                       {(std::uint64_t{1} << 63) - 512, 1024},
                                       {0 - std::uint64_t{512}, 512},
                                       {0 - std::uint64_t{512}, 1024},
                                       {512, 0 - std::uint64_t{512}},
                                       {1 << 20, 0 - std::uint64_t{512}}};
    for (const auto& p : places) {
      EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), p[0], p[1]), XIO_ERR_ARG) << p[0] << " " << p[1];
      EXPECT_EQ(xio_write_zeroes(r.ctx(), r.storage(), p[0], p[1]), XIO_ERR_ARG) << p[0] << " " << p[1];
    }
    EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), total, 0), XIO_OK);
  }
  unlink(path.c_str());
}
