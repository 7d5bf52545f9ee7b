// SPDX-License-Identifier: MIT
// The RDMA lane from kernels: whole waves on one queue, lanes that diverge, more lanes than the ring has slots or the
// ctx has scratch words.
#include "nic_by_hand.hpp"
#include "nic_rig.hpp"
#include "nic_wave_kernels.hpp"

namespace {

using namespace xio::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct nic_wave : testing::TestWithParam<nic_rig_shape> {
  void SetUp() override {
    rig = std::make_unique<nic_rig>(GetParam());
    bad = xio::gpu::buffer(sizeof(u32), xio::gpu::place::device);
    bytes.resize(GetParam().heap_bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 + (i >> 8) + 1);
    xio::gpu::copy(rig->pes[0].heap->data(), bytes.data(), bytes.size());
    xio::gpu::fill_zero(rig->pes[1].heap->data(), bytes.size());
  }
  std::vector<unsigned char> heap_of(int pe) {
    std::vector<unsigned char> out(bytes.size());
    xio::gpu::copy(out.data(), rig->pes[pe].heap->data(), out.size());
    return out;
  }
  void finish() {
    u32 count = 0;
    xio::gpu::copy(&count, bad.data(), sizeof count);
    EXPECT_EQ(count, 0u) << "statuses that are not XIO_OK";
    for (int pe = 0; pe < 2; ++pe) {
      const auto s = rig->state(0, pe);
      EXPECT_EQ(s.issued, s.completed);
      // An ionic ring keeps one entry free.
      const bool ionic = GetParam().family.starts_with("ionic");
      EXPECT_EQ(s.credits, static_cast<std::int64_t>(GetParam().depth) - (ionic ? 1 : 0));
      EXPECT_EQ(s.failed, 0u) << "vendor " << s.vendor;
      EXPECT_LE(s.doorbells, s.issued - GetParam().ticket_start);
    }
  }

  std::unique_ptr<nic_rig> rig;
  xio::gpu::buffer bad;
  std::vector<unsigned char> bytes;
};

TEST_P(nic_wave, puts_of_all_lanes_to_two_queues) {
  ASSERT_TRUE(run_puts(rig->pes[0].view(), rig->pes[0].heap->data(), bad.as<u32>()));
  finish();
  const auto remote = heap_of(1);
  for (u32 lane = 1; lane < k_wave_lanes; lane += 2)
    for (u32 round = 0; round < k_wave_rounds; ++round) {
      const std::size_t at = k_wave_base + (std::size_t{lane} * k_wave_rounds + round) * 64;
      const u32 n = (lane + round * 5) % 65;
      for (u32 i = 0; i < 64; ++i)
        ASSERT_EQ(remote[at + i], i < n ? bytes[at + i] : 0) << "lane " << lane << " round " << round << " byte " << i;
    }
}

TEST_P(nic_wave, fetching_adds_see_every_value_once) {
  xio::gpu::buffer seen(k_wave_lanes * k_wave_rounds * sizeof(u64), xio::gpu::place::device);
  ASSERT_TRUE(run_adds(rig->pes[0].view(), seen.as<u64>(), bad.as<u32>()));
  finish();
  std::vector<u64> values(k_wave_lanes * k_wave_rounds);
  xio::gpu::copy(values.data(), seen.data(), seen.size());
  xio::test::expect_each_once(values);
  std::vector<u64> used(rig->pes[0].scratch_used.size() / 8);
  xio::gpu::copy(used.data(), rig->pes[0].scratch_used.data(), used.size() * 8);
  for (const u64 word : used) EXPECT_EQ(word, 0u) << "scratch words were kept";
}

TEST_P(nic_wave, signals_and_their_data) {
  ASSERT_TRUE(run_signals(rig->pes[0].view(), rig->pes[0].heap->data(), bad.as<u32>()));
  finish();
  const auto remote = heap_of(1);
  for (u32 lane = 0; lane < k_wave_lanes; ++lane) {
    u64 flag;
    std::memcpy(&flag, remote.data() + k_wave_base + lane * 8, 8);
    ASSERT_EQ(flag, k_wave_rounds | (lane % 2 == 1 ? u64{1} << 40 : 0)) << "lane " << lane;
    const std::size_t data = k_wave_base + 16384 + lane * 128;
    u32 most = 0;
    for (u32 round = 1; round <= k_wave_rounds; ++round) most = std::max(most, 1 + (lane + round) % 100);
    for (u32 i = 0; i < 128; ++i) ASSERT_EQ(remote[data + i], i < most ? bytes[data + i] : 0) << "lane " << lane;
  }
}

// Every family, in rings that are roomy, tiny, with little scratch memory, and in GPU memory.
std::vector<nic_rig_shape> shapes() {
  std::vector<nic_rig_shape> all;
  for (const char* family : k_families) {
    all.push_back({256, 0, 1u << 30, 1024, 30000, 1 << 20, family, 0, {}, 0, {}});
    all.push_back({4, (u64{1} << 32) - 8, 1u << 30, 64, 30000, 1 << 20, family, 0, {}, 0, {}});
    all.push_back({16, (u64{1} << 16) - 16, 16, 2, 30000, 1 << 20, family, 0, {}, 0, {}});
    // Nothing inline, and a completion queue of a length of its own where there is one.
    const bool queued = xio::rdma::find_family(family).most_cq_depth != 0;
    all.push_back({8, (u64{1} << 16) - 8, 1u << 30, 64, 30000, 1 << 20, family, queued ? 128u : 0u, 0, 0, {}});
    // Entries and completions in GPU memory.
    all.push_back({32, (u64{1} << 16) - 32, 1u << 30, 64, 30000, 1 << 20, family, 0, {}, 0, 3});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(shapes, nic_wave, testing::ValuesIn(shapes()), [](const auto& info) {
  return info.param.family + "_depth_" + std::to_string(info.param.depth);
});

}  // namespace
