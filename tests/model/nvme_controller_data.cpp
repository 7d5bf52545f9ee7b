// SPDX-License-Identifier: MIT
// Data pointers and I/O commands of the software drive against NVMe base 2.0, 4.1, and NVM command set 1.0, 3.2.
#include "nvme_hand.hpp"

using namespace xio::test;
namespace w = xio::wire::nvme;

namespace {

w::sqe read_of(std::uint64_t lba, std::uint32_t blocks, std::uint64_t prp1 = 0, std::uint64_t prp2 = 0) {
  return w::make_io(w::opcode::read, 0, 1, prp1, prp2, lba, blocks);
}

// Descriptors at `at` of the memory, which the drive reads as a segment.
void lay(hand& h, std::uint64_t at, const std::vector<w::sgl_descriptor>& list) {
  std::memcpy(h.memory() + at, list.data(), list.size() * sizeof list[0]);
}

bool all_are(const unsigned char* at, std::size_t bytes, unsigned char value) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (at[i] != value) return false;
  return true;
}

}  // namespace

// 4.1.1: a list over several pages, from an offset in the first of them.
TEST(nvme_data, chained_prp_lists) {
  ready_hand h({.shape = {.mdts_bytes = 4 << 20}, .file_bytes = 4 << 20});
  constexpr std::uint64_t bytes = 3 << 20, page = 4096, n = bytes / page - 1;
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4096 - 8}, std::uint64_t{4096 - 16}}) {
    std::memset(h.data(), 0xee, bytes + 4096);
    // By hand, entry by entry: pages in turned order, links where a page of the list ends.
    std::uint64_t at = 0x80000 + offset, left = n;
    for (std::uint64_t i = 0; i < n; ++i) {
      if ((at + 8) % page == 0 && left > 1) {
        const std::uint64_t next = 0x80000 + (at - 0x80000) / page * 2 * page + 2 * page;
        const std::uint64_t link = h.bus(next);
        std::memcpy(h.memory() + at, &link, 8);
        at = next;
      }
      const std::uint64_t entry = h.data_bus((n - i) * page);
      std::memcpy(h.memory() + at, &entry, 8);
      at += 8;
      --left;
    }
    ASSERT_EQ(h.io(read_of(0, bytes / 512, h.data_bus(), h.bus(0x80000 + offset))), 0u) << offset;
    EXPECT_TRUE(stamped(h.data(), 0, page));
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_TRUE(stamped(h.data() + (n - i) * page, (i + 1) * page, page)) << i;
    EXPECT_TRUE(all_are(h.data() + bytes, 4096, 0xee));
  }
}

// Two entries are left in the page of the list, and two are needed: the last of them is data, not a link.
TEST(nvme_data, a_prp_list_that_just_fits) {
  ready_hand h;
  const std::uint64_t entries[] = {h.data_bus(8192), h.data_bus(4096)};
  std::memcpy(h.memory() + 0x80000 + 4080, entries, sizeof entries);
  ASSERT_EQ(h.io(read_of(0, 24, h.data_bus(), h.bus(0x80000 + 4080))), 0u);
  EXPECT_TRUE(stamped(h.data(), 0, 4096));
  EXPECT_TRUE(stamped(h.data() + 8192, 4096, 4096));
  EXPECT_TRUE(stamped(h.data() + 4096, 8192, 4096));
}

// A list in one entry that leads to itself must end, and not by the end of time.
TEST(nvme_data, a_prp_list_that_leads_nowhere) {
  ready_hand h;
  const std::uint64_t self = h.bus(0x80000 + 4088);
  std::memcpy(h.memory() + 0x80000 + 4088, &self, 8);
  EXPECT_EQ(h.io(read_of(0, 32, h.data_bus(), self)), 0x013u);
}

// 4.1.2
TEST(nvme_data, sgls_gather) {
  ready_hand h;
  const auto block = [&](std::uint64_t at, std::uint32_t bytes) {
    return w::make_sgl(w::sgl::data_block, h.data_bus(at), bytes);
  };
  // One block at an odd address.
  ASSERT_EQ(h.io(w::with_sgl(read_of(3, 5), block(1, 2560))), 0u);
  EXPECT_TRUE(stamped(h.data() + 1, 1536, 2560));
  // Blocks of odd sizes, a zero-length one among them, over two segments.
  std::memset(h.data(), 0xee, 65536);
  lay(h, 0x80000,
      {block(100, 7), block(0, 0), block(4000, 1017), w::make_sgl(w::sgl::last_segment, h.bus(0x90008), 32)});
  lay(h, 0x90008, {block(20000, 1), block(30000, 1023)});
  ASSERT_EQ(h.io(w::with_sgl(read_of(8, 4), w::make_sgl(w::sgl::segment, h.bus(0x80000), 64))), 0u);
  std::vector<unsigned char> got;
  for (const auto& [at, bytes] : {std::pair{100, 7}, {4000, 1017}, {20000, 1}, {30000, 1023}})
    got.insert(got.end(), h.data() + at, h.data() + at + bytes);
  EXPECT_TRUE(stamped(got.data(), 4096, 2048));
  EXPECT_TRUE(all_are(h.data() + 107, 4000 - 107, 0xee));
  EXPECT_TRUE(all_are(h.data() + 31023, 1000, 0xee));
  // The same way back.
  w::sqe write =
      w::with_sgl(w::make_io(w::opcode::write, 0, 1, 0, 0, 64, 4), w::make_sgl(w::sgl::segment, h.bus(0x80000), 64));
  ASSERT_EQ(h.io(write), 0u);
  ASSERT_EQ(h.io(read_of(64, 4, h.data_bus(40960))), 0u);
  EXPECT_TRUE(stamped(h.data() + 40960, 4096, 2048));
  // With a separate metadata pointer's type: there are no metadata, so it is the same.
  w::sqe both = w::with_sgl(read_of(1, 1), block(0, 512));
  both.dw[0] ^= 3 << 14;
  EXPECT_EQ(h.io(both), 0u);
}

// 4.1.2.1 and the status codes of 3.3.3.2.1.1.
TEST(nvme_data, sgls_one_thing_wrong) {
  ready_hand h;
  const auto good = [&](std::uint32_t bytes) { return w::make_sgl(w::sgl::data_block, h.data_bus(), bytes); };
  const auto spoiled = [&](std::uint32_t bits) {
    w::sgl_descriptor d = good(1024);
    d.dw[3] |= bits;
    return d;
  };
  const auto one = [&](const w::sgl_descriptor& d) { return h.io(w::with_sgl(read_of(0, 2), d)); };
  const auto listed = [&](w::sgl type, const std::vector<w::sgl_descriptor>& list) {
    lay(h, 0x80000, list);
    return one(w::make_sgl(type, h.bus(0x80000), static_cast<std::uint32_t>(list.size() * 16)));
  };
  std::memset(h.data(), 0xee, 4096);
  EXPECT_EQ(one(good(1023)), 0x00fu);           // too short
  EXPECT_EQ(one(good(1025)), 0x00fu);           // too long
  EXPECT_EQ(one(good(0)), 0x00fu);              // nothing
  EXPECT_EQ(one(spoiled(0x01000000)), 0x011u);  // sub type: an offset
  EXPECT_EQ(one(spoiled(0x10000000)), 0x011u);  // a bit bucket
  EXPECT_EQ(one(spoiled(0x40000000)), 0x011u);  // keyed
  EXPECT_EQ(one(spoiled(0xf0000000)), 0x011u);  // vendor
  EXPECT_EQ(one(spoiled(0x00000100)), 0x002u);  // reserved
  EXPECT_EQ(one(w::make_sgl(w::sgl::data_block, 0x1000, 1024)), 0x004u);
  EXPECT_EQ(one(w::make_sgl(w::sgl::last_segment, h.bus(0x80000), 0)), 0x00du);
  EXPECT_EQ(one(w::make_sgl(w::sgl::last_segment, h.bus(0x80000), 24)), 0x00du);
  EXPECT_EQ(one(w::make_sgl(w::sgl::last_segment, h.bus(0x80004), 16)), 0x00du);
  EXPECT_EQ(one(w::make_sgl(w::sgl::last_segment, 0x1000, 16)), 0x004u);
  EXPECT_EQ(listed(w::sgl::last_segment, {good(1000)}), 0x00fu);
  EXPECT_EQ(listed(w::sgl::last_segment, {good(1000), good(25)}), 0x00fu);
  EXPECT_EQ(listed(w::sgl::last_segment, {good(1024), good(1)}), 0x00fu);
  const auto more = w::make_sgl(w::sgl::segment, h.bus(0x90000), 16);
  const auto last = w::make_sgl(w::sgl::last_segment, h.bus(0x90000), 16);
  EXPECT_EQ(listed(w::sgl::last_segment, {good(512), more}), 0x00du);
  EXPECT_EQ(listed(w::sgl::last_segment, {good(512), last}), 0x00du);
  EXPECT_EQ(listed(w::sgl::segment, {good(512), good(512)}), 0x00du);        // leads nowhere
  EXPECT_EQ(listed(w::sgl::segment, {last, good(512), good(512)}), 0x00eu);  // leads on too early
  // A segment that leads to itself.
  EXPECT_EQ(listed(w::sgl::segment, {w::make_sgl(w::sgl::segment, h.bus(0x80000), 16)}), 0x00eu);
  EXPECT_TRUE(all_are(h.data() + 1024, 3072, 0xee));
  EXPECT_EQ(one(good(1024)), 0u);

  ready_hand dwords({.shape = {.sgls = 2}});
  const auto aligned = [&](std::uint64_t at) {
    return dwords.io(w::with_sgl(read_of(0, 1), w::make_sgl(w::sgl::data_block, dwords.data_bus(at), 512)));
  };
  EXPECT_PAIRS((aligned(4), 0u), (aligned(2), 0x01eu));
}

// 3.2.1 of the command set: what differs is found wherever it is; nothing is written.
TEST(nvme_data, compares) {
  for (const bool direct : {true, false}) {
    ready_hand h({.direct = direct});
    const auto compare = [&](std::uint64_t lba, std::uint32_t blocks) {
      return h.io(w::make_io(w::opcode::compare, 0, 1, h.data_bus(), blocks > 8 ? h.data_bus(8192) : 0, lba, blocks));
    };
    stamp(h.data(), 0, 4096);
    stamp(h.data() + 8192, 4096, 4096);
    EXPECT_PAIRS((compare(0, 16), 0u), (compare(0, 8), 0u), (compare(1, 8), 0x285u));
    for (const int at : {0, 511, 4095, 8192, 8192 + 4095}) {
      h.data()[at] ^= 1;
      EXPECT_EQ(compare(0, 16), 0x285u) << at;
      h.data()[at] ^= 1;
    }
    EXPECT_PAIRS((compare(0, 16), 0u), (compare(2047, 2), 0x080u), (h.file().read(), stamped_data(1 << 20)));
  }
  // A protected namespace may be compared with.
  ready_hand h({.flags = XIO_STORAGE_READ_ONLY});
  stamp(h.data(), 512, 512);
  EXPECT_EQ(h.io(w::make_io(w::opcode::compare, 0, 1, h.data_bus(), 0, 1, 1)), 0u);
  EXPECT_EQ(h.io(w::make_io(w::opcode::write, 0, 1, h.data_bus(), 0, 1, 1)), 0x020u);
  EXPECT_EQ(h.io(w::make_io(w::opcode::write_zeroes, 0, 1, 0, 0, 1, 1)), 0x020u);
}

// A namespace of a file that ends within a block: the block commands have its 24 whole blocks, those of bytes all of
// it.
TEST(nvme_data, commands_of_bytes) {
  ready_hand h({.shape = {.of_bytes = true}, .file_bytes = 100001, .block = 4096});
  EXPECT_EQ(h.admin(w::make_identify(w::cns::name_space, 1, h.data_bus())), 0u);
  EXPECT_EQ(h.identified<std::uint64_t>(0), 24u);  // NSZE
  const struct {
    std::uint8_t opcode;
    std::uint64_t offset;
    std::uint32_t bytes, dw12, dw13, status;
  } cases[] = {{0x82, 100000, 1, 0, 0, 0},       {0x82, 4095, 2, 0, 0, 0},
               {0x85, 0, 1, 0, 0, 0x285},        {0x88, 100000, 1, 0, 0, 0},
               {0x81, 4097, 5, 0, 0, 0},         {0x82, 100000, 2, 0, 0, 0x080},
               {0x82, 100001, 1, 0, 0, 0x080},   {0x82, ~std::uint64_t{0}, 2, 0, 0, 0x080},
               {0x02, 24, 4096, 0, 0, 0x080},    {0x80, 0, 1, 0, 0, 0x001},
               {0x89, 0, 1, 0, 0, 0x001},        {0x82, 0, 1, 1u << 24, 0, 0x002},
               {0x82, 0, 1, 1u << 30, 0, 0x002}, {0x82, 0, 1, 0, 1, 0x002}};
  auto wanted = stamped_data(100001);
  for (const auto& c : cases) {
    std::memset(h.data(), 0xee, 4096);
    w::sqe e = w::make_io(w::opcode::read, 0, 1, c.opcode == 0x88 ? 0 : h.data_bus(), 0, c.offset, 1);
    if (c.opcode >= 0x80) e.dw[12] = c.bytes - 1;
    e.dw[0] = c.opcode;
    e.dw[12] |= c.dw12;
    e.dw[13] = c.dw13;
    EXPECT_EQ(h.io(e), c.status) << int{c.opcode} << " " << c.offset;
    const bool reads = c.opcode == 0x82 && c.status == 0;
    EXPECT_TRUE(!reads || std::memcmp(h.data(), &wanted[c.offset], c.bytes) == 0) << c.offset;
    EXPECT_TRUE(all_are(h.data() + (reads ? c.bytes : 0), 64, 0xee)) << c.offset;
    if (c.opcode == 0x81) std::memset(&wanted[c.offset], 0xee, c.bytes);
    if (c.opcode == 0x88) std::memset(&wanted[c.offset], 0, c.bytes);
    EXPECT_TRUE(h.file().read() == wanted) << int{c.opcode} << " " << c.offset;
  }
}

TEST(nvme_data, zeroes_by_both_engines) {
  for (const bool plain : {false, true}) {
    ready_hand h({.shape = {.plain_io = plain}, .block = 4096});
    w::sqe zero = w::make_io(w::opcode::write_zeroes, 0, 1, 0, 0, 7, 200);  // more than MDTS would take in data
    zero.dw[12] |= 1u << 30;                                                // FUA
    EXPECT_EQ(h.io(zero), 0u);
    std::vector<unsigned char> want = stamped_data(1 << 20);
    std::memset(want.data() + 7 * 4096, 0, 200 * 4096);
    EXPECT_EQ(h.file().read(), want);
    zero.dw[12] |= 1u << 20;  // reserved
    EXPECT_EQ(h.io(zero), 0x002u);
    EXPECT_EQ(h.io(w::make_io(w::opcode::write_zeroes, 0, 1, 0, 0, 255, 2)), 0x080u);
  }
}

// Where a file system cannot zero a range by itself, zeroes are written.
TEST(nvme_data, zeroes_where_there_is_no_zeroing) {
  xio::model::nvme::file_job job{};
  job.what = xio::model::nvme::file_job::kind::zero;
  job.offset = 4096;
  job.bytes = 200000;
  EXPECT_FALSE(job.apply_result(-EOPNOTSUPP));
  EXPECT_EQ(job.what, xio::model::nvme::file_job::kind::write);
  std::size_t sum = 0;
  for (const iovec& v : job.parts) {
    EXPECT_TRUE(all_are(static_cast<const unsigned char*>(v.iov_base), v.iov_len, 0));
    sum += v.iov_len;
  }
  EXPECT_EQ(sum, 200000u);
  EXPECT_FALSE(job.apply_result(65536 + 100));
  EXPECT_TRUE(job.apply_result(200000 - 65636));
  EXPECT_EQ(job.error, 0);
}

TEST(nvme_data, writes_that_must_be_on_the_medium) {
  for (const bool cache : {true, false}) {
    ready_hand h({.shape = {.write_cache = cache}});
    stamp(h.data(), 0, 4096, 5);
    w::sqe write = w::make_io(w::opcode::write, 0, 1, h.data_bus(), 0, 16, 8);
    write.dw[12] |= 1u << 30;
    EXPECT_EQ(h.io(write), 0u);
    EXPECT_EQ(h.admin(w::make_set_features(w::feature::volatile_write_cache, 0)), cache ? 0u : 0x002u);
    write.dw[12] &= ~(1u << 30);
    write.dw[10] = 32;
    EXPECT_EQ(h.io(write), 0u);
    const auto file = h.file().read();
    EXPECT_TRUE(stamped(file.data() + 8192, 0, 4096, 5));
    EXPECT_TRUE(stamped(file.data() + 16384, 0, 4096, 5));
    EXPECT_EQ(h.io(w::make_command(0x00, 0, 0xffffffff, 0, 0)), 0u);  // a flush of all namespaces
  }
}

// Namespaces are equal parts of the file; none reaches into the next.
TEST(nvme_data, namespaces_keep_apart) {
  ready_hand h({.shape = {.namespaces = 4}});
  ASSERT_EQ(h.admin(w::make_identify(w::cns::name_space, 3, h.data_bus())), 0u);
  EXPECT_EQ(h.identified<std::uint64_t>(0), 512u);
  const auto on = [&](w::opcode op, std::uint32_t nsid, std::uint64_t lba, std::uint32_t blocks) {
    return h.io(w::make_io(op, 0, nsid, op == w::opcode::write_zeroes ? 0 : h.data_bus(), 0, lba, blocks));
  };
  EXPECT_EQ(on(w::opcode::read, 3, 1, 1), 0u);
  EXPECT_TRUE(stamped(h.data(), 2 * (256 << 10) + 512, 512));
  EXPECT_PAIRS((on(w::opcode::read, 3, 511, 2), 0x080u), (on(w::opcode::read, 5, 0, 1), 0x00bu),
               (on(w::opcode::read, 0, 0, 1), 0x00bu), (on(w::opcode::write_zeroes, 2, 0, 512), 0u));
  std::vector<unsigned char> want = stamped_data(1 << 20);
  std::memset(want.data() + (256 << 10), 0, 256 << 10);
  EXPECT_EQ(h.file().read(), want);
}

namespace {

// Into the rest of a page and the beginning of another, and nothing beside them is touched.
void expect_read_of_two_pages(hand& h) {
  std::memset(h.data(), 0xee, 16384);
  ASSERT_EQ(h.io(read_of(8, 8, h.data_bus(4), h.data_bus(8192))), 0u);
  EXPECT_TRUE(all_are(h.data(), 4, 0xee));
  std::vector<unsigned char> got(h.data() + 4, h.data() + 4096);
  got.insert(got.end(), h.data() + 8192, h.data() + 8196);
  EXPECT_TRUE(stamped(got.data(), 4096, 4096));
  EXPECT_TRUE(all_are(h.data() + 8196, 4096, 0xee));
}

}  // namespace

TEST(nvme_data, copies_where_the_file_cannot_reach) {
  ready_hand h({.direct = false});
  expect_read_of_two_pages(h);
}

// Wherever the data lie, the copy lies in whole pages, as O_DIRECT wants it.
TEST(nvme_data, copies_go_past_the_page_cache) {
  hand h({.flags = XIO_STORAGE_DIRECT, .direct = false});
  h.make_queues();
  h.file().cached(1 << 20, true);
  ASSERT_EQ(h.io(read_of(8, 8, h.data_bus(4), h.data_bus(8192))), 0u);
  EXPECT_EQ(h.file().cached(1 << 20), 0);
  EXPECT_TRUE(stamped(h.data() + 4, 4096, 4092 - 4092 % 8));
  ASSERT_EQ(h.io(w::make_io(w::opcode::write, 0, 1, h.data_bus(4), h.data_bus(8192), 0, 8)), 0u);
  EXPECT_TRUE(stamped(h.file().read().data(), 4096, 4096));
}

// On a GPU's machine what a kernel registers may be host memory all the same: nothing of it goes through a copy, but
// for what the drive itself has to say. It is no memory for queues, though.
TEST(nvme_data, reads_and_writes_host_memory_itself) {
  static int copies;
  copies = 0;
  hand h({.direct = false, .in_the_host = true, .copy = [](void* to, const void* from, std::size_t n) {
            ++copies;
            std::memcpy(to, from, n);
          }});
  h.make_queues();
  expect_read_of_two_pages(h);
  stamp(h.data(), 0, 4096, 9);
  ASSERT_EQ(h.io(w::make_io(w::opcode::write, 0, 1, h.data_bus(), 0, 0, 8)), 0u);
  EXPECT_TRUE(stamped(h.file().read().data(), 0, 4096, 9));
  EXPECT_EQ(h.io(w::make_io(w::opcode::compare, 0, 1, h.data_bus(), 0, 0, 8)), 0u);
  h.data()[77] ^= 1;
  EXPECT_EQ(h.io(w::make_io(w::opcode::compare, 0, 1, h.data_bus(), 0, 0, 8)), 0x285u);
  EXPECT_EQ(copies, 0);
  ASSERT_EQ(h.admin(w::make_identify(w::cns::controller, 0, h.data_bus())), 0u);
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(h.admin(w::make_create_cq(2, 8, h.data_bus())), 0x004u);
}

// Writes keep each other out of one file, so the machine keeps a drive that has many of them. Reads are shared in a
// turn. Of both engines: where there is no io_uring a file is read and written by plain calls, 16 at a time.
void a_turn_with_many_writes_is_heavy(bool plain) {
  hand h({.shape = {.plain_io = plain}});
  const std::uint32_t most = std::string(h.device().io_engine()) == "plain" ? 16 : 64;
  h.make_queues(64);
  const auto is_heavy_after = [&](w::opcode op, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) h.put(h.io_queue(), w::make_io(op, i, 1, h.data_bus(i * 512), 0, i, 1));
    const std::uint64_t before = h.device().commands();
    h.ring(h.io_queue());
    h.turn();
    const bool heavy = h.device().heavy();
    // Half a wave's writes in a turn, so that their completions do not wait for the other half.
    EXPECT_EQ(h.device().commands() - before, std::min({count, most, op == w::opcode::write ? 32u : 64u}));
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(hand::status(h.next(h.io_queue())), 0u);
    h.consume(h.io_queue());
    h.turn();
    EXPECT_EQ(h.device().heavy(), heavy);  // a turn without commands says nothing
    return heavy;
  };
  EXPECT_TRUE(is_heavy_after(w::opcode::write, 16));
  EXPECT_FALSE(is_heavy_after(w::opcode::write, 15));
  EXPECT_TRUE(is_heavy_after(w::opcode::write, 48));
  EXPECT_FALSE(is_heavy_after(w::opcode::read, 48));
  EXPECT_FALSE(is_heavy_after(w::opcode::write, 1));
}
TEST(nvme_data, a_turn_with_many_writes_is_heavy) {
  for (const bool plain : {false, true}) a_turn_with_many_writes_is_heavy(plain);
}
