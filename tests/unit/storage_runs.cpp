// SPDX-License-Identifier: MIT
// Commands for memory in several parts on the bus: every page of a command as NVMe base 2.0, 4.1.1, has it (PRP entry 1
// with the offset in its page, the rest whole pages, a list from three pages on), found by an own walk over the parts.
#include <random>

#include "../gtest.hpp"
#include "xio/device/impl/storage_command.hpp"

namespace {

using namespace xio::dev;

constexpr u64 k_page = 4096;

struct bus_run {
  u64 offset, address;
};

u64 walked(const std::vector<bus_run>& runs, u64 v) {
  u64 at = 0;
  for (const bus_run& r : runs)
    if (r.offset <= v) at = r.address + (v - r.offset);
  return at;
}

// The rows of `bytes` in such runs, for 1 << shift bytes each.
class table {
 public:
  table(const std::vector<bus_run>& runs, u64 bytes, u32 shift) : shift_(shift), rows_(((bytes - 1) >> shift) + 9) {
    while (reinterpret_cast<u64>(&rows_[first_]) % k_rows_align != 0) ++first_;
    std::size_t run = 0;
    for (u64 v = 0; v < bytes; v += u64{1} << shift) {
      while (run + 1 < runs.size() && runs[run + 1].offset <= v) ++run;
      rows_[first_ + (v >> shift)] = row_of(runs[run].offset, runs[run].address);
    }
  }
  u64 word() const { return rows_word(reinterpret_cast<u64>(&rows_[first_]), shift_); }

 private:
  u32 shift_;
  std::vector<u64> rows_;
  std::size_t first_ = 0;
};

// Parts of 1 to 5 pages at places that are no neighbours.
std::vector<bus_run> scattered(std::mt19937_64& random, u64 pages) {
  std::vector<bus_run> runs;
  for (u64 page = 0; page < pages;) {
    runs.push_back({page * k_page, ((random() & 0xffffff) + 1) * 16 * k_page});
    page += 1 + random() % 5;
  }
  return runs;
}

TEST(storage_runs, contiguous_memory_is_not_looked_up) {
  const bus_place p{0x12345000, 0};
  EXPECT_EQ(bus_address_of(p, 0x12345678), 0x12345678u);
}

TEST(storage_runs, every_offset_is_found) {
  std::mt19937_64 random(1);
  for (const u64 pages : {1, 2, 3, 7, 64, 1000}) {
    const auto runs = scattered(random, pages);
    const table rows(runs, pages * k_page, 12);
    const bus_place p{k_in_runs, rows.word()};
    for (u64 v = 0; v < pages * k_page; v += 4 * (1 + random() % 300))
      ASSERT_EQ(bus_address_of(p, k_in_runs | v), walked(runs, v)) << pages << " pages, " << v;
    ASSERT_EQ(bus_address_of(p, k_in_runs | (pages * k_page - 1)), walked(runs, pages * k_page - 1));
  }
}

TEST(storage_runs, rows_of_any_length) {
  std::mt19937_64 random(3);
  for (const u32 shift : {12u, 16u, 21u, 30u, k_most_row_shift}) {
    std::vector<bus_run> runs;
    const u64 count = shift == k_most_row_shift ? 1 : 300;
    for (u64 i = 0; i < count; ++i) runs.push_back({i << shift, ((random() & 0xffffff) + 1) << 21});
    const table rows(runs, count << shift, shift);
    const bus_place p{k_in_runs, rows.word()};
    for (int i = 0; i < 1000; ++i) {
      const u64 v = random() % (count << shift);
      ASSERT_EQ(bus_address_of(p, k_in_runs | v), walked(runs, v)) << shift << ", " << v;
    }
    const u64 last = (count << shift) - 1;
    ASSERT_EQ(bus_address_of(p, k_in_runs | last), walked(runs, last));
  }
}

TEST(storage_runs, prps_of_a_command) {
  std::mt19937_64 random(2);
  const auto runs = scattered(random, 600);
  const table rows(runs, 605 * k_page, 12);
  std::vector<u64> list(4096, 0xa5a5a5a5a5a5a5a5);
  ring_view r{};
  r.chunk = 1 << 20;
  r.nvme.list_pages = reinterpret_cast<unsigned char*>(list.data());
  r.nvme.list_pages_bus = 0x70000000;
  for (int round = 0; round < 2000; ++round) {
    transfer t{};
    t.shape.block_bytes = 512;
    t.shape.block_log2 = 9;
    t.shape.page_bytes = k_page;
    t.shape.transfer_bytes = 1 << 20;
    t.op = xio::wire::nvme::opcode::read;
    const u64 blocks = 1 + random() % 2048, start = 4 * (random() % (300 * 1024));
    t.bus = {k_in_runs | start, rows.word()};
    t.first = bus_address_of(t.bus, t.bus.at);
    t.bytes = blocks * 512;
    command c = command_of(t, piece{0, 7 * 512, t.bytes});
    const u64 prp1 = c.entry.dw[6] | u64{c.entry.dw[7]} << 32, prp2 = c.entry.dw[8] | u64{c.entry.dw[9]} << 32;
    ASSERT_EQ(prp1, walked(runs, start));
    const u64 first = start / k_page, pages = (start % k_page + t.bytes + k_page - 1) / k_page;
    if (pages == 1) {
      ASSERT_EQ(c.list_end, 0u);
      ASSERT_EQ(prp2, 0u);
    } else if (pages == 2) {
      ASSERT_EQ(c.list_end, 0u);
      ASSERT_EQ(prp2, walked(runs, (first + 1) * k_page));
    } else {
      ASSERT_NE(c.list_end, 0u);
      point_to_data(r, 0, c);
      ASSERT_EQ(c.entry.dw[8] | u64{c.entry.dw[9]} << 32, r.nvme.list_pages_bus);
      for (u64 i = 0; i + 1 < pages && i < 511; ++i)
        ASSERT_EQ(list[i], walked(runs, (first + 1 + i) * k_page)) << round << ", entry " << i << " of " << pages;
    }
  }
}

}  // namespace
