// SPDX-License-Identifier: MIT
// The storage API from kernels: waves in every divergence, workgroups on queues of their own, cooperative forms.
#include "full_disk.hpp"
#include "nvme_rig.hpp"
#include "xio/hip.h"

using namespace xio;
using namespace xio::test;

namespace {

constexpr std::uint64_t k_block = 512;

struct args {
  xio_ctx_t ctx;
  xio_storage_t storage;
  unsigned char* heap;
  int* wrong;
};

__device__ std::uint64_t global_thread() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

__device__ xio_status_t finish(const args& a, xio_req_t request) {
  if (request == 0) return XIO_OK;
  const dev::ctx_view& c = dev::ctx_of(a.ctx);
  return dev::storage_wait(*dev::request_ring(c, request), *c.world, request);
}

// Every lane its own blocks; lanes part ways: some write, some read, some split, some do nothing.
__global__ void mixed(args a, int rounds) {
  const std::uint64_t me = global_thread();
  unsigned char* buffer = a.heap + me * 16 * k_block;
  const std::uint64_t at = me * 16 * k_block;
  for (int i = 0; i < rounds; ++i) {
    if (me % 5 == 0) continue;
    stamp(buffer, at, 16 * k_block, static_cast<std::uint64_t>(i));
    xio_status_t status = XIO_OK;
    if (me % 3 == 0) {
      status = xio_write(a.ctx, buffer, a.storage, at, 16 * k_block);
    } else {
      xio_req_t r[4];
      for (int k = 0; k < 4; ++k)
        r[k] = xio_write_nbi(a.ctx, buffer + k * 4 * k_block, a.storage, at + k * 4 * k_block, 4 * k_block);
      for (int k = 0; k < 4; ++k)
        if (finish(a, r[k]) != XIO_OK) status = XIO_ERR_STORAGE;
    }
    std::memset(buffer, 0, 16 * k_block);
    if (xio_read(a.ctx, buffer, a.storage, at, 16 * k_block) != XIO_OK) status = XIO_ERR_STORAGE;
    if (status != XIO_OK || !stamped(buffer, at, 16 * k_block, static_cast<std::uint64_t>(i)))
      dev::fetch_add<dev::scope::agent, dev::order::relaxed>(a.wrong, 1);
  }
}

__global__ void together(args a) {
  constexpr std::uint64_t bytes = 64 << 10;
  const std::uint64_t mine = blockIdx.x * bytes;
  if (xio_read_wg(a.ctx, a.heap + mine, a.storage, mine, bytes) != XIO_OK || !stamped(a.heap + mine, mine, bytes))
    dev::fetch_add<dev::scope::agent, dev::order::relaxed>(a.wrong, 1);
  __syncthreads();
  // Each thread a part, written out by one of them.
  stamp(a.heap + mine + threadIdx.x * k_block, mine + threadIdx.x * k_block, k_block, 77);
  if (xio_write_wg(a.ctx, a.heap + mine, a.storage, mine, blockDim.x * k_block) != XIO_OK)
    dev::fetch_add<dev::scope::agent, dev::order::relaxed>(a.wrong, 1);
  const std::uint64_t wave = threadIdx.x / 64 * 64 * k_block;
  unsigned char* copy = a.heap + (2 << 20) + mine + wave;
  const xio_req_t r = xio_read_nbi_wave(a.ctx, copy, a.storage, mine + wave, 64 * k_block);
  if (finish(a, r) != XIO_OK || !stamped(copy, mine + wave, 64 * k_block, 77))
    dev::fetch_add<dev::scope::agent, dev::order::relaxed>(a.wrong, 1);
  if (xio_storage_sync_wg(a.ctx, a.storage) != XIO_OK)
    dev::fetch_add<dev::scope::agent, dev::order::relaxed>(a.wrong, 1);
}

// Every lane has a block of its own that it turns over: read, changed, written, read again. Even lanes leave the write
// to the wait of the read behind it and then to quiet, odd ones wait.
__global__ void crowd(args a) {
  const std::uint64_t at = global_thread() * k_block;
  unsigned char* block = a.heap + at;
  bool good = xio_read(a.ctx, block, a.storage, at, k_block) == XIO_OK && stamped(block, at, k_block);
  stamp(block, at, k_block, 5);
  const xio_req_t write = xio_write_nbi(a.ctx, block, a.storage, at, k_block);
  if (threadIdx.x % 2 == 1) good = finish(a, write) == XIO_OK && good;
  if (!good) dev::fetch_add<dev::scope::agent, dev::order::relaxed>(a.wrong, 1);
}

// One thread writes blocks and reads them again.
__global__ void alone(args a, int blocks, xio_status_t* status) {
  for (int i = 0; i < blocks && *status == XIO_OK; ++i) {
    stamp(a.heap, i * k_block, k_block, 3);
    *status = xio_write(a.ctx, a.heap, a.storage, i * k_block, k_block);
    if (*status != XIO_OK) return;
    *status = xio_read(a.ctx, a.heap + k_block, a.storage, i * k_block, k_block);
    if (!stamped(a.heap + k_block, i * k_block, k_block, 3)) *a.wrong = 1;
  }
}

// With OS threads for lanes, ThreadSanitizer's way to run, the machine takes every turn.
bool lanes_help() {
  const char* exec = std::getenv("XIO_HOST_EXEC");
  return exec == nullptr || std::string(exec) != "threads";
}

// A device that does not end its turn: its machine's thread does nothing else meanwhile, if lanes help.
class hog : public progress::device {
 public:
  explicit hog(progress::machine& m) : machine_(m) {
    machine_.add(this);
    EXPECT_TRUE(until([this] { return has_it_.load(); }));
    if (!lanes_help()) over_ = true;
  }
  ~hog() {
    over_ = true;
    machine_.remove(this);
  }
  bool poll() override {
    has_it_ = true;
    until([this] { return over_.load(); });
    return false;
  }

 private:
  template <class F>
  static bool until(F f) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!f() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return f();
  }
  progress::machine& machine_;
  std::atomic<bool> has_it_{false}, over_{false};
};

struct kernel_test : testing::Test {
  // Thousands of lanes, far more than the queue has entries.
  void launch_crowd(unsigned groups, unsigned threads, std::uint32_t depth, std::uint64_t shuffle) {
    const std::uint64_t lanes = std::uint64_t{groups} * threads;
    scratch_file f;
    f.write(stamped_data(lanes * k_block));
    rig r(f.path, {.depth = depth, .timeout_ms = 120000});
    r.device().shuffle(shuffle);
    int wrong = 0;
    const args a{r.ctx(), r.storage(), r.heap(), &wrong};
    RUN(crowd, groups, threads, a);
    EXPECT_PAIRS((wrong, 0), (r.quiet(), XIO_OK));
    const dev::ring_state& s = *r.ring().state;
    EXPECT_PAIRS((s.issued, 2 * lanes), (dev::ring_completed(r.ring()), s.issued), (s.credits, depth - 1),
                 (r.device().invalid_doorbells(), 0u));
    const auto data = f.read();
    ASSERT_EQ(data.size(), lanes * k_block);
    for (std::uint64_t i = 0; i < lanes; ++i)
      ASSERT_TRUE(stamped(data.data() + i * k_block, i * k_block, k_block, 5)) << i;
  }

  static void expect_alone(rig& r, xio_status_t wanted) {
    int wrong = 0;
    xio_status_t status = XIO_OK;
    RUN(alone, 1, 1, args{r.ctx(), r.storage(), r.heap(), &wrong}, 64, &status);
    EXPECT_PAIRS((status, wanted), (wrong, 0));
  }

  void launch_mixed(const rig::how& h, unsigned groups, unsigned threads, int rounds, std::uint64_t shuffle) {
    scratch_file f(std::uint64_t{groups} * threads * 16 * k_block);
    rig r(f.path, h);
    r.device().shuffle(shuffle);
    int wrong = 0;
    const args a{r.ctx(), r.storage(), r.heap(), &wrong};
    RUN(mixed, groups, threads, a, rounds);
    EXPECT_PAIRS((wrong, 0), (r.quiet(), XIO_OK), (r.device().invalid_doorbells(), 0u));
    for (std::uint32_t q = 0; q < r.drive().queue_count(); ++q) {
      EXPECT_GT(r.ring(q).state->issued, 0u) << "nothing went by queue " << q;
      EXPECT_PAIRS((r.ring(q).state->issued, dev::ring_completed(r.ring(q))), (r.ring(q).state->credits, h.depth - 1),
                   (r.ring(q).state->issued, r.ring(q).state->published));
    }
  }
};

}  // namespace

TEST_F(kernel_test, one_wave) { launch_mixed({.depth = 256}, 1, 64, 3, 0); }
TEST_F(kernel_test, a_wave_wider_than_the_queue) { launch_mixed({.depth = 4}, 1, 64, 2, 0); }
TEST_F(kernel_test, splits_in_every_lane) { launch_mixed({.depth = 16, .mdts = 8192}, 2, 64, 2, 5); }
TEST_F(kernel_test, many_workgroups_on_one_queue) { launch_mixed({.depth = 64}, 4, 128, 2, 9); }
TEST_F(kernel_test, queues_by_workgroup) { launch_mixed({.depth = 64, .queues = 3}, 5, 64, 2, 0); }

TEST_F(kernel_test, thousands_of_lanes_on_four_entries) { launch_crowd(64, 64, 4, 0); }
TEST_F(kernel_test, thousands_of_lanes_on_sixteen_entries) { launch_crowd(16, 256, 16, 3); }

TEST_F(kernel_test, waves_and_workgroups) {
  scratch_file f;
  f.write(stamped_data(1 << 20));
  rig r(f.path, {.depth = 16, .queues = 2, .mdts = 16384});
  int wrong = 0;
  const args a{r.ctx(), r.storage(), r.heap(), &wrong};
  RUN(together, 4, 128, a);
  EXPECT_PAIRS((wrong, 0), (r.quiet(), XIO_OK));
}

// The thread of a lane that waits alone takes the drive's turns: nothing goes to the machine's thread and back.
TEST_F(kernel_test, a_lane_that_waits_alone_needs_no_other_thread) {
  scratch_file f(64 * k_block);
  rig r(f.path, {.timeout_ms = 5000});
  const hog h(r.machine());
  expect_alone(r, XIO_OK);
  EXPECT_TRUE(stamped(f.read().data() + 63 * k_block, 63 * k_block, k_block, 3));
}

TEST_F(kernel_test, nor_does_a_wave) {
  scratch_file f(64 * 16 * k_block);
  rig r(f.path, {.timeout_ms = 5000});
  const hog h(r.machine());
  int wrong = 0;
  RUN(mixed, 1, 64, args{r.ctx(), r.storage(), r.heap(), &wrong}, 1);
  EXPECT_EQ(wrong, 0);
}

// Nor does the signal of the file-size limit reach the program by that way.
TEST_F(kernel_test, a_lane_finds_a_full_disk) {
  scratch_file f(64 * k_block);
  rig r(f.path, {.timeout_ms = 5000});
  const hog h(r.machine());
  const full_disk::file_limit limit(32 * k_block, SIG_DFL);
  expect_alone(r, XIO_ERR_STORAGE);
}
