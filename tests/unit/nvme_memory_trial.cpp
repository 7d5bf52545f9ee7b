// SPDX-License-Identifier: MIT
// A drive that was given memory and reaches another one is found before any op goes there, and what is on it stays.
#include "transport/nvme/memory_trial.hpp"

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "says.hpp"

namespace xio::nvme {
namespace {

namespace w = wire::nvme;
using test::says;

constexpr std::uint64_t k_known = 0x10000, k_tried = 0x20000;
constexpr std::uint32_t k_block = 512;

alignas(4096) unsigned char g_known[k_trial_bytes], g_tried[k_trial_bytes], g_elsewhere[k_trial_bytes];

// A drive of which each direction is set.
struct drive_plan {
  unsigned char* reads_from = g_tried;  // where it finds the memory that is tried, when it reads it and when it writes
  unsigned char* writes_to = g_tried;
  bool compares = true, ends = true;
  std::uint32_t status = w::k_ok;
  int writers = 0;  // commands between which somebody else writes the block
  unsigned char block[k_block] = {7, 7, 7};
  std::vector<w::opcode> seen;

  std::uint32_t run(const w::sqe& command) {
    if (!ends) fail(XIO_ERR_TIMEOUT, "has not completed a command within 10 ms");
    const auto what = static_cast<w::opcode>(w::opcode_of(command));
    seen.push_back(what);
    EXPECT_PAIRS((w::nsid_of(command), 3u), (w::slba_of(command), 0u), (w::blocks_of(command), 1u));
    if (status != w::k_ok) return status;
    if (writers > 0 && --writers >= 0) ++block[0];
    const bool known = w::prp1_of(command) == k_known;
    EXPECT_TRUE(known || w::prp1_of(command) == k_tried);
    if (what == w::opcode::compare)
      return std::memcmp(known ? g_known : reads_from, block, k_block) == 0 ? w::k_ok : w::k_compare_failure;
    EXPECT_EQ(what, w::opcode::read) << "nothing is written to the drive";
    std::memcpy(known ? g_known : writes_to, block, k_block);
    return w::k_ok;
  }
};

trial_result tried(drive_plan& plan, std::uint32_t block_bytes = k_block) {
  std::memset(g_elsewhere, 0, sizeof g_elsewhere);
  drive_facts facts;
  facts.nsid = 3;
  facts.block_bytes = block_bytes;
  facts.compares = plan.compares;
  return try_memory(
      facts, [&](const w::sqe& command) { return plan.run(command); }, {g_known, k_known}, {g_tried, k_tried},
      gpu::payload());
}
trial_verdict verdict_of(drive_plan plan) { return tried(plan).verdict; }

TEST(nvme_memory_trial, takes_a_drive_that_reaches_the_memory) {
  EXPECT_EQ(verdict_of({}), trial_verdict::same);
  drive_plan empty;
  std::memset(empty.block, 0, sizeof empty.block);
  EXPECT_EQ(verdict_of(empty), trial_verdict::same);
  drive_plan plain;
  plain.compares = false;
  EXPECT_EQ(verdict_of(plain), trial_verdict::same);
}

TEST(nvme_memory_trial, sees_each_direction_by_itself) {
  drive_plan reads, writes, both, plain;
  reads.reads_from = g_elsewhere;
  writes.writes_to = g_elsewhere;
  both.reads_from = both.writes_to = g_elsewhere;
  plain.writes_to = g_elsewhere;
  plain.compares = false;
  EXPECT_EQ(verdict_of(reads), trial_verdict::different) << "what kernels store is not read";
  EXPECT_EQ(verdict_of(writes), trial_verdict::different) << "what the drive writes is not seen";
  EXPECT_PAIRS((verdict_of(both), trial_verdict::different), (verdict_of(plain), trial_verdict::different));
}

// Memory elsewhere may hold the very block: of zeroes, for one. A changed word is seen all the same.
TEST(nvme_memory_trial, is_not_deceived_by_memory_that_holds_the_same) {
  drive_plan plan;
  std::memset(plan.block, 0, sizeof plan.block);
  plan.reads_from = g_elsewhere;
  EXPECT_EQ(verdict_of(plan), trial_verdict::different);
}

TEST(nvme_memory_trial, writes_nowhere_once_the_drive_has_read_other_memory) {
  drive_plan plan;
  plan.reads_from = plan.writes_to = g_elsewhere;
  EXPECT_EQ(tried(plan).verdict, trial_verdict::different);
  EXPECT_EQ(std::count(plan.seen.begin(), plan.seen.end(), w::opcode::read), 3) << "each into known memory";
}

TEST(nvme_memory_trial, bears_others_who_write_the_block) {
  drive_plan plan;
  plan.writers = 3;
  EXPECT_EQ(verdict_of(plan), trial_verdict::same);
}

// Its queue takes no more commands.
TEST(nvme_memory_trial, leaves_a_command_that_does_not_end_to_the_caller) {
  drive_plan late;
  late.ends = false;
  EXPECT_THROW(tried(late), error);
}

// Nothing is known of the memory then.
TEST(nvme_memory_trial, blames_no_memory_where_a_command_does_not_end_well) {
  drive_plan failed;
  failed.status = w::k_unrecovered_read;
  const auto bad = tried(failed);
  EXPECT_EQ(bad.verdict, trial_verdict::unknown);
  EXPECT_PRED2(says, bad.why, "block 0 cannot be read");
  drive_plan large;
  EXPECT_EQ(tried(large, 8192).verdict, trial_verdict::unknown);
  EXPECT_TRUE(large.seen.empty());
}

}  // namespace
}  // namespace xio::nvme
