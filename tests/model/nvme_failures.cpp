// SPDX-License-Identifier: MIT
// No status without proof: thousands of ops of every kind, half of which fail, on queues whose ids are soon used again.
// The status of each op is known beforehand, and no call may report another, blocking or not, early or late.

#include "../unit/local_world.hpp"
#include "full_disk.hpp"
#include "nvme_rig.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

using namespace xio;
using namespace xio::test;

namespace {

using dev::u32;
using dev::u64;

// Of each drive: blocks that are written, blocks of k_there that are read and compared, blocks where every command
// fails.
constexpr u64 k_blocks = 2048;
constexpr unsigned char k_there = 0x5a, k_poison = 0x11;
constexpr u32 k_bad_code = 0x281, k_differs = 0x285;
constexpr u64 k_long = 24 << 10;  // three commands, or stripes of two drives
constexpr u32 k_kept = 8;         // requests that a lane has open

struct counts {
  u64 false_ok, false_error, wrong_code, wrong_data, failed, well;
};

struct args {
  xio_ctx_t ctx;
  xio_storage_t storage;
  unsigned char* heap;
  u64 third;  // bytes of each kind of blocks
  u32 rounds;
  counts* out;
};

enum class kind : u32 { read, write, compare, zeroes };

// One op, and what it must come to.
struct op {
  kind what;
  bool bad;
  bool differs;  // it fails because the blocks are not what the buffer holds
  u64 at, bytes;

  __device__ u32 code() const { return !bad ? 0 : differs ? k_differs : k_bad_code; }
};

__device__ u64 next(u64* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

__device__ op draw(const args& a, u64* state) {
  const u64 r = next(state);
  op o{static_cast<kind>(r & 3), (r >> 2 & 1) != 0, false, 0, (r >> 3 & 7) == 0 ? k_long : 512};
  o.differs = o.bad && o.what == kind::compare && (r >> 6 & 1) != 0;
  const bool changes = o.what == kind::write || o.what == kind::zeroes;
  const u64 third = o.bad && !o.differs ? 2 : changes ? 0 : 1;
  o.at = third * a.third + next(state) % ((a.third - o.bytes) / 512) * 512;
  return o;
}

__device__ void prepare(const op& o, unsigned char* buffer) {
  const int value = o.what == kind::read ? k_poison : o.differs ? 0xa5 : k_there;
  std::memset(buffer, value, o.bytes);
}

__device__ xio_status_t do_it(const args& a, const op& o, unsigned char* buffer) {
  switch (o.what) {
    case kind::read: return xio_read(a.ctx, buffer, a.storage, o.at, o.bytes);
    case kind::write: return xio_write(a.ctx, buffer, a.storage, o.at, o.bytes);
    case kind::compare: return xio_compare(a.ctx, buffer, a.storage, o.at, o.bytes);
    default: return xio_write_zeroes(a.ctx, a.storage, o.at, o.bytes);
  }
}

__device__ xio_req_t begin(const args& a, const op& o, unsigned char* buffer) {
  switch (o.what) {
    case kind::read: return xio_read_nbi(a.ctx, buffer, a.storage, o.at, o.bytes);
    case kind::write: return xio_write_nbi(a.ctx, buffer, a.storage, o.at, o.bytes);
    case kind::compare: return xio_compare_nbi(a.ctx, buffer, a.storage, o.at, o.bytes);
    default: return xio_write_zeroes_nbi(a.ctx, a.storage, o.at, o.bytes);
  }
}

__device__ void add(u64* to, bool yes) {
  if (yes) dev::fetch_add<dev::scope::agent, dev::order::relaxed>(to, u64{1});
}

__device__ void judge(const args& a, const op& o, xio_status_t status, const unsigned char* buffer) {
  add(o.bad ? &a.out->failed : &a.out->well, true);
  add(&a.out->false_ok, o.bad && status == XIO_OK);
  add(&a.out->false_error, o.bad ? status != XIO_OK && status != XIO_ERR_STORAGE : status != XIO_OK);
  if (o.what != kind::read) return;
  const unsigned char want = o.bad ? k_poison : k_there;
  add(&a.out->wrong_data, buffer[0] != want || std::memcmp(buffer, buffer + 1, o.bytes - 1) != 0);
}

__device__ void judge(const args& a, const op& o, xio_req_t request, const unsigned char* buffer, bool by_test) {
  xio_status_t status = by_test ? xio_test(a.ctx, request) : xio_wait(a.ctx, request);
  while (status == XIO_PENDING) {
    xio_pause();
    status = xio_test(a.ctx, request);
  }
  judge(a, o, status, buffer);
  add(&a.out->wrong_code, xio_storage_code(a.ctx, request) != o.code());
}

// Each lane its own ops, in turn blocking and not. A request is asked for when its place is wanted again, and those
// that are left once more at the end.
__global__ void lanes(args a) {
  const u64 me = u64{blockIdx.x} * blockDim.x + threadIdx.x;
  unsigned char* mine = a.heap + me * (k_kept + 1) * k_long;
  u64 state = me * 2654435761u + 1;
  op kept[k_kept];
  xio_req_t requests[k_kept];
  u32 used = 0;
  for (u32 i = 0; i < a.rounds; ++i) {
    const op o = draw(a, &state);
    if (i % 2 == 0) {
      prepare(o, mine);
      judge(a, o, do_it(a, o, mine), mine);
      continue;
    }
    const u32 place = used++ % k_kept;
    unsigned char* buffer = mine + (place + 1) * k_long;
    if (used > k_kept) judge(a, kept[place], requests[place], buffer, i % 4 == 1);
    prepare(o, buffer);
    kept[place] = o;
    requests[place] = begin(a, o, buffer);
  }
  for (u32 again = 0; again < 2; ++again)
    for (u32 k = 0; k < k_kept && k < used; ++k)
      judge(a, kept[k], requests[k], mine + (k + 1) * k_long, (k + again) % 2 == 0);
}

// One lane that asks for nothing before the end. The first half are well, one at a time.
__global__ void late(args a, xio_req_t* requests, op* ops) {
  u64 state = 99;
  for (u32 i = 0; i < a.rounds; ++i) {
    op o = draw(a, &state);
    while (o.what == kind::read || (i < a.rounds / 2 && o.bad)) o = draw(a, &state);
    prepare(o, a.heap);
    ops[i] = o;
    requests[i] = begin(a, o, a.heap);
    if (i < a.rounds / 2 || i % 64 == 0) judge(a, o, requests[i], a.heap, true);
    // The buffer is nobody's before the next op.
    if (i >= a.rounds / 2) (void)xio_storage_sync(a.ctx, a.storage);
  }
  for (u32 i = 0; i < a.rounds; ++i) judge(a, ops[i], requests[i], a.heap, i % 2 == 0);
}

__global__ void flushes(args a) {
  for (u32 i = 0; i < a.rounds; ++i) add(&a.out->false_ok, xio_storage_sync(a.ctx, a.storage) != XIO_ERR_STORAGE);
}

__global__ void quiet(args a, int* statuses) {
  statuses[0] = xio_quiet(a.ctx);
  statuses[1] = xio_quiet(a.ctx);
  statuses[2] = xio_storage_sync(a.ctx, a.storage);
}

// Writes one block, which fails or not, and leaves its request unasked.
__global__ void leave_one(args a, u64 at, xio_req_t* request) {
  *request = xio_write_nbi(a.ctx, a.heap, a.storage, at, 512);
  for (u32 i = 0; i < a.rounds; ++i) (void)xio_write(a.ctx, a.heap, a.storage, at, 512);
}

__global__ void ask(args a, xio_req_t request, int* statuses) {
  statuses[0] = xio_wait(a.ctx, request);
  statuses[1] = xio_test(a.ctx, request);
  statuses[2] = static_cast<int>(xio_storage_code(a.ctx, request));
}

struct shape {
  const char* doorbell;
  u32 drives, queues, depth;
};

struct nvme_failures : testing::TestWithParam<shape> {
  void open(const std::string& faults) {
    setenv("XIO_NVME_DOORBELL", GetParam().doorbell, 1);
    setenv("XIO_MODEL_FAULTS", faults.c_str(), 1);
    setenv("XIO_NVME_MDTS", "8k", 1);
    ASSERT_NE(world_ = start_world(64 << 20), nullptr);
    ASSERT_EQ(xio_ctx_create(world_, nullptr, &a_.ctx), XIO_OK) << xio_last_error();
    for (u32 i = 0; i < GetParam().drives; ++i) {
      files_.push_back(std::make_unique<scratch_file>());
      files_.back()->write(std::vector<unsigned char>(3 * k_blocks * 512, k_there));
      name_ += (i == 0 ? "file:" : ",file:") + files_.back()->path;
    }
    ASSERT_NO_FATAL_FAILURE(open_storage());
    void* heap = nullptr;
    ASSERT_EQ(xio_malloc(world_, 60 << 20, &heap), XIO_OK) << xio_last_error();
    a_.heap = static_cast<unsigned char*>(heap);
    a_.third = GetParam().drives * k_blocks * 512;
    a_.out = &counts_;
  }
  void open_storage() {
    xio_storage_attr_t how = XIO_STORAGE_ATTR_INIT;
    how.queues = GetParam().queues;
    how.depth = GetParam().depth;
    how.stripe_bytes = 16 << 10;
    ASSERT_EQ(xio_storage_open(world_, name_.c_str(), &how, &a_.storage), XIO_OK) << xio_last_error();
  }
  void TearDown() override {
    if (world_ == nullptr) return;
    EXPECT_PAIRS((xio_storage_close(world_, a_.storage), XIO_OK), (xio_ctx_destroy(world_, a_.ctx), XIO_OK),
                 (xio_finalize(world_), XIO_OK));
    for (const char* name : {"XIO_NVME_DOORBELL", "XIO_MODEL_FAULTS", "XIO_NVME_MDTS"}) unsetenv(name);
  }
  void expect_nothing_false() {
    EXPECT_PAIRS((counts_.false_ok, 0u), (counts_.false_error, 0u), (counts_.wrong_code, 0u), (counts_.wrong_data, 0u));
  }
  void expect_reported_once() {
    int statuses[3] = {};
    RUN(quiet, 1, 1, a_, statuses);
    EXPECT_PAIRS((statuses[0], XIO_ERR_STORAGE), (statuses[1], XIO_OK), (statuses[2], XIO_OK));
  }

  xio_world_t* world_ = nullptr;
  std::vector<std::unique_ptr<scratch_file>> files_;
  std::string name_;
  args a_{};
  counts counts_{};
};

INSTANTIATE_TEST_SUITE_P(doorbells, nvme_failures,
                         testing::Values(shape{"bar", 1, 1, 4}, shape{"bar", 2, 2, 8}, shape{"shadow", 1, 2, 4},
                                         shape{"shadow", 2, 1, 16}, shape{"host", 1, 2, 8}, shape{"bridge", 1, 1, 8}),
                         [](const auto& info) {
                           const shape& s = info.param;
                           return std::string(s.doorbell) + "_" + std::to_string(s.drives) + "x" +
                                  std::to_string(s.queues) + "_of_" + std::to_string(s.depth);
                         });

// Every command fails there, of any kind.
std::string bad_blocks() {
  return "nvme_error=1:0x281/lba" + std::to_string(2 * k_blocks) + "-" + std::to_string(3 * k_blocks - 1);
}

}  // namespace

TEST_P(nvme_failures, thousands_by_many_lanes) {
  open(bad_blocks());
  a_.rounds = 48;
  RUN(lanes, 2, 64, a_);
  expect_nothing_false();
  EXPECT_GT(counts_.failed, 2000u);
  EXPECT_GT(counts_.well, 2000u);
  expect_reported_once();
}

TEST_P(nvme_failures, are_known_when_asked_for_late) {
  open(bad_blocks());
  a_.rounds = 2000;
  std::vector<xio_req_t> requests(a_.rounds);
  std::vector<op> ops(a_.rounds);
  RUN(late, 1, 1, a_, requests.data(), ops.data());
  expect_nothing_false();
  EXPECT_GT(counts_.failed, 400u);
}

TEST_P(nvme_failures, of_flushes) {
  open("nvme_error=1:write_fault/flush");
  a_.rounds = 300;
  RUN(flushes, 1, 4, a_);
  EXPECT_EQ(counts_.false_ok, 0u);
}

// Another storage in the place of a closed one says nothing of the other's ops.
TEST_P(nvme_failures, are_not_taken_for_those_of_the_next_storage) {
  open(bad_blocks());
  const u64 bad = 2 * a_.third, good = 0;
  for (int again = 0; again < 3; ++again) {
    a_.rounds = 10;
    xio_req_t failed = 0, fresh = 0;
    RUN(leave_one, 1, 1, a_, bad, &failed);
    ASSERT_EQ(xio_storage_close(world_, a_.storage), XIO_OK);
    ASSERT_NO_FATAL_FAILURE(open_storage());
    a_.rounds = 40;
    hipLaunchKernelGGL(leave_one, dim3(1), dim3(1), 0, nullptr, a_, good, &fresh);
    int statuses[3] = {};
    RUN(ask, 1, 1, a_, failed, statuses);
    EXPECT_PAIRS((statuses[0], XIO_ERR_ARG), (statuses[1], XIO_ERR_ARG), (statuses[2], 0));
    RUN(ask, 1, 1, a_, fresh, statuses);
    EXPECT_EQ(statuses[0], XIO_OK);
  }
}

namespace {

// Blocks of 4 KiB on a file system that has room for the fewest of them. The data of every op that succeeded are in the
// file.
void write_more_than_fits(const std::string& place) {
  constexpr u64 block = 4096, blocks = 4096;
  scratch_file f(blocks * block, place);
  std::vector<int> statuses(blocks);
  {
    rig r(f.path, {.depth = 4, .heap_bytes = blocks * block});
    const auto write = [&](u64 from) {
      // In turn blocking, and asked for when all are over.
      std::vector<xio_req_t> requests(blocks);
      for (u64 i = from; i < blocks; i += 4) {
        unsigned char* at = r.heap() + i * block;
        stamp(at, i * block, block);
        if (i % 8 < 4)
          statuses[i] = xio_write(r.ctx(), at, r.storage(), i * block, block);
        else
          requests[i] = xio_write_nbi(r.ctx(), at, r.storage(), i * block, block);
      }
      EXPECT_LE(r.quiet(), XIO_OK);
      for (u64 i = from; i < blocks; i += 4)
        if (i % 8 >= 4) statuses[i] = i % 16 >= 12 ? r.wait(requests[i]) : r.test(requests[i]);
    };
    std::vector<std::thread> writers;
    for (u64 t = 0; t < 4; ++t) writers.emplace_back(write, t);
    for (auto& t : writers) t.join();
    EXPECT_GT(r.ring().state->op_errors, blocks / 2);
  }
  u64 well = 0;
  const int fd = ::open(f.path.c_str(), O_RDONLY);
  std::vector<unsigned char> data(block);
  for (u64 i = 0; i < blocks; ++i) {
    if (statuses[i] != XIO_OK) {
      EXPECT_EQ(statuses[i], XIO_ERR_STORAGE) << i;
      continue;
    }
    ++well;
    ASSERT_EQ(pread(fd, data.data(), block, static_cast<off_t>(i * block)), static_cast<ssize_t>(block));
    EXPECT_TRUE(stamped(data.data(), i * block, block)) << i;
  }
  close(fd);
  EXPECT_GT(well, 0u);
  EXPECT_LE(well * block, 1280u << 10);
}

}  // namespace

TEST(nvme_failures_of_a_file_system, that_is_full) { full_disk::run_in_a_child(write_more_than_fits); }

// Counts of failures may have wrapped, and of two that ask one may have counted earlier.
TEST(nvme_failures_counted, beyond_31_bits) {
  EXPECT_FALSE(dev::has_more_errors(7, 7));
  EXPECT_TRUE(dev::has_more_errors(7, 8));
  EXPECT_FALSE(dev::has_more_errors(8, 7));
  EXPECT_TRUE(dev::has_more_errors(dev::k_errors_wrap, 1));
  EXPECT_TRUE(dev::has_more_errors(dev::k_errors_wrap - 5, 3));
  EXPECT_FALSE(dev::has_more_errors(3, dev::k_errors_wrap - 5));
}
