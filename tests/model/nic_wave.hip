// SPDX-License-Identifier: MIT
// The RDMA lane from kernels: whole waves on one queue, lanes that diverge, more lanes than the ring has slots or the
// ctx has scratch words.
#include <gtest/gtest.h>
#include <xio/hip.h>

#include <vector>

#include "nic_rig.hpp"
#include "xio/device/rdma.hpp"

namespace {

using namespace xio::dev;
using xio::test::nic_rig;
using xio::test::nic_rig_shape;

constexpr u64 k_base = 4096;
constexpr u32 k_rounds = 16;

__device__ xio_status_t wait_for(const ctx_view& c, u32 pe, xio_req_t request) {
  if (request == 0) return XIO_OK;
  const ring_view& r = *c.peers[pe].rdma;
  return ring_wait_below<mlx5_codec>(r, request_ticket(r, request) + 1, *c.world);
}

__device__ void note(u32* bad, xio_status_t status) {
  if (status != XIO_OK) fetch_add<scope::system, order::relaxed>(bad, 1u);
}

// Every lane puts its own bytes in a place of its own, each round another size.
__global__ void put_kernel(const ctx_view* c, unsigned char* source, u32* bad) {
  const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 round = 0; round < k_rounds; ++round) {
    const u64 at = k_base + (u64{me} * k_rounds + round) * 64;
    xio_req_t request = 0;
    note(bad, rdma::put(*c, me % 2, at, source + at, (me + round * 5) % 65, &request));
    if (round % 4 == me % 4) note(bad, wait_for(*c, me % 2, request));
  }
  note(bad, ring_quiet<mlx5_codec>(*c->peers[me % 2].rdma, *c->world));
}

__global__ void add_kernel(const ctx_view* c, u64* seen, u32* bad) {
  const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 round = 0; round < k_rounds; ++round) {
    u64 old = ~u64{0};
    note(bad, rdma::atomic(*c, 1, k_base, me % 3 == 0 ? 4 : 8, amo::add, 1, 0, true, &old));
    seen[me * k_rounds + round] = old;
  }
}

// Each lane signals its own flag behind its data; odd lanes go through the two-slot atomic as well.
__global__ void signal_kernel(const ctx_view* c, unsigned char* source, u32* bad) {
  const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
  const u64 flag = k_base + u64{me} * 8;
  const u64 data = k_base + 16384 + u64{me} * 128;
  for (u32 round = 1; round <= k_rounds; ++round) {
    xio_req_t request = 0;
    note(bad,
         rdma::put_signal(*c, 1, data, source + data, 1 + (me + round) % 100, flag, round, XIO_SIGNAL_SET, &request));
    if (me % 2 == 1) note(bad, rdma::atomic(*c, 1, flag, 8, amo::bit_or, u64{1} << 40, 0, false, nullptr));
  }
  note(bad, ring_quiet<mlx5_codec>(*c->peers[1].rdma, *c->world));
}

class NicWave : public testing::TestWithParam<nic_rig_shape> {
 protected:
  static constexpr u32 k_blocks = 3, k_threads = 128, k_all = k_blocks * k_threads;

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
    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
    u32 count = 0;
    xio::gpu::copy(&count, bad.data(), sizeof count);
    EXPECT_EQ(count, 0u) << "statuses that are not XIO_OK";
    for (int pe = 0; pe < 2; ++pe) {
      const auto s = rig->state(0, pe);
      EXPECT_EQ(s.issued, s.completed);
      EXPECT_EQ(s.credits, static_cast<std::int64_t>(GetParam().depth));
      EXPECT_EQ(s.failed, 0u) << "vendor " << s.vendor;
      EXPECT_LE(s.doorbells, s.issued - GetParam().ticket_start);
    }
  }

  std::unique_ptr<nic_rig> rig;
  xio::gpu::buffer bad;
  std::vector<unsigned char> bytes;
};

TEST_P(NicWave, PutsOfAllLanesToTwoQueues) {
  hipLaunchKernelGGL(put_kernel, dim3(k_blocks), dim3(k_threads), 0, nullptr, rig->pes[0].view(),
                     rig->pes[0].heap->data(), bad.as<u32>());
  finish();
  const auto far = heap_of(1);
  for (u32 lane = 1; lane < k_all; lane += 2)
    for (u32 round = 0; round < k_rounds; ++round) {
      const std::size_t at = k_base + (std::size_t{lane} * k_rounds + round) * 64;
      const u32 n = (lane + round * 5) % 65;
      for (u32 i = 0; i < 64; ++i)
        ASSERT_EQ(far[at + i], i < n ? bytes[at + i] : 0) << "lane " << lane << " round " << round << " byte " << i;
    }
}

TEST_P(NicWave, FetchingAddsSeeEveryValueOnce) {
  xio::gpu::buffer seen(k_all * k_rounds * sizeof(u64), xio::gpu::place::device);
  hipLaunchKernelGGL(add_kernel, dim3(k_blocks), dim3(k_threads), 0, nullptr, rig->pes[0].view(), seen.as<u64>(),
                     bad.as<u32>());
  finish();
  std::vector<u64> values(k_all * k_rounds);
  xio::gpu::copy(values.data(), seen.data(), seen.size());
  std::vector<bool> had(values.size());
  for (const u64 v : values) {
    ASSERT_LT(v, had.size());
    ASSERT_FALSE(had[v]) << v << " was seen twice";
    had[v] = true;
  }
  std::vector<u64> used(rig->pes[0].scratch_used.size() / 8);
  xio::gpu::copy(used.data(), rig->pes[0].scratch_used.data(), used.size() * 8);
  for (const u64 word : used) EXPECT_EQ(word, 0u) << "scratch words were kept";
}

TEST_P(NicWave, SignalsAndTheirData) {
  hipLaunchKernelGGL(signal_kernel, dim3(k_blocks), dim3(k_threads), 0, nullptr, rig->pes[0].view(),
                     rig->pes[0].heap->data(), bad.as<u32>());
  finish();
  const auto far = heap_of(1);
  for (u32 lane = 0; lane < k_all; ++lane) {
    u64 flag;
    std::memcpy(&flag, far.data() + k_base + lane * 8, 8);
    ASSERT_EQ(flag, k_rounds | (lane % 2 == 1 ? u64{1} << 40 : 0)) << "lane " << lane;
    const std::size_t data = k_base + 16384 + lane * 128;
    u32 most = 0;
    for (u32 round = 1; round <= k_rounds; ++round) most = std::max(most, 1 + (lane + round) % 100);
    for (u32 i = 0; i < 128; ++i) ASSERT_EQ(far[data + i], i < most ? bytes[data + i] : 0) << "lane " << lane;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NicWave,
                         testing::Values(nic_rig_shape{256, 0, 1u << 30, 1024, 30000, 1 << 20},
                                         nic_rig_shape{4, (u64{1} << 32) - 8, 1u << 30, 64, 30000, 1 << 20},
                                         nic_rig_shape{16, (u64{1} << 16) - 16, 16, 2, 30000, 1 << 20}),
                         [](const auto& info) { return "depth_" + std::to_string(info.param.depth); });

}  // namespace
