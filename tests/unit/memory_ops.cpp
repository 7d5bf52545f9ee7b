// SPDX-License-Identifier: MIT
// Kernels on memory of xio_mem_alloc, by every engine: registered in parts, registered again out of the cache, and
// after it was freed.
#include "memory_ops.hpp"
#include "../model/scratch_file.hpp"
#include "gpu/gpu.hpp"
#include "local_world.hpp"

namespace {

#define MUST(call) ASSERT_EQ(call, XIO_OK) << xio_last_error()

using xio::test::k_part;

constexpr std::size_t k_block = 16 * k_part;

struct memory_ops : testing::Test {
  void SetUp() override {
    ASSERT_NE(w_ = xio::test::start_world(), nullptr);
    void* p = nullptr;
    MUST(xio_malloc(w_, k_part, &p));
    sym_ = static_cast<unsigned char*>(p);
    MUST(xio_mem_alloc(XIO_MEM_HOST_COHERENT, 4096, nullptr, &p));
    statuses_ = static_cast<xio_status_t*>(p);
  }
  void TearDown() override {
    EXPECT_EQ(xio_mem_free(statuses_), XIO_OK) << xio_last_error();
    EXPECT_EQ(xio_finalize(w_), XIO_OK) << xio_last_error();
  }

  unsigned char* take() { return static_cast<unsigned char*>(xio::test::take(XIO_MEM_DEVICE_FINE_GRAINED, k_block)); }
  xio_ctx_t ctx(xio_route_t route) { return xio::test::start_ctx(w_, route); }
  static std::vector<unsigned char> pattern(unsigned seed) {
    std::vector<unsigned char> out(k_part);
    for (std::size_t i = 0; i < k_part; ++i) out[i] = static_cast<unsigned char>(i * 13 + seed);
    return out;
  }
  static void put(void* to, const std::vector<unsigned char>& data) { xio::gpu::copy(to, data.data(), data.size()); }
  static std::vector<unsigned char> get(const void* from) {
    std::vector<unsigned char> out(k_part);
    xio::gpu::copy(out.data(), from, k_part);
    return out;
  }
  void run(xio_ctx_t c, unsigned char* from, unsigned char* to) {
    ASSERT_TRUE(xio::test::put_and_get(c, sym_, from, to, statuses_));
  }
  void run(xio_ctx_t c, xio_storage_t s, unsigned char* from, unsigned char* to) {
    ASSERT_TRUE(xio::test::write_and_read(c, s, from, to, statuses_));
  }
  void expect_statuses(xio_status_t wanted) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(statuses_[i], wanted) << "step " << i;
  }
  std::uint64_t hits() {
    xio_mem_cache_stats_t s = XIO_MEM_CACHE_STATS_INIT;
    EXPECT_EQ(xio_mem_cache_stats(w_, &s), XIO_OK);
    return s.hits;
  }

  // Parts of a block in turn, then the block again, then freed: the same for every engine. op(from, to).
  template <class Op>
  void parts_and_their_end(const Op& op) {
    unsigned char* p = take();
    unsigned char *from = p + 3 * k_part, *to = p + 9 * k_part;
    put(from, pattern(1));
    op(from, to);
    expect_statuses(XIO_ERR_NOT_REGISTERED);
    EXPECT_EQ(get(to), std::vector<unsigned char>(k_part, 0));

    MUST(xio_mem_register(w_, from, k_part));
    op(from, to);
    EXPECT_EQ(statuses_[0], XIO_OK);
    EXPECT_EQ(statuses_[2], XIO_ERR_NOT_REGISTERED) << "engines know the block, but this part is not registered";
    MUST(xio_mem_register(w_, to, k_part));
    EXPECT_EQ(hits(), 1u);
    op(from, to);
    expect_statuses(XIO_OK);
    EXPECT_EQ(get(to), pattern(1));
    MUST(xio_mem_unregister(w_, from));
    op(from, to);
    EXPECT_EQ(statuses_[0], XIO_ERR_NOT_REGISTERED);
    MUST(xio_mem_unregister(w_, to));

    MUST(xio_mem_register(w_, p, k_block));
    EXPECT_EQ(hits(), 2u);
    put(from, pattern(2));
    op(from, to);
    expect_statuses(XIO_OK);
    EXPECT_EQ(get(to), pattern(2));

    MUST(xio_mem_free(p));
    op(from, to);
    expect_statuses(XIO_ERR_NOT_REGISTERED);

    // The next allocation at these addresses is other memory, which is not registered yet.
    unsigned char* next = take();
    op(next, next + k_part);
    expect_statuses(XIO_ERR_NOT_REGISTERED);
    MUST(xio_mem_register(w_, next, k_block));
    EXPECT_EQ(hits(), 2u);
    put(next, pattern(3));
    op(next, next + k_part);
    expect_statuses(XIO_OK);
    EXPECT_EQ(get(next + k_part), pattern(3));
    MUST(xio_mem_free(next));
  }

  xio_world_t* w_ = nullptr;
  unsigned char* sym_ = nullptr;
  xio_status_t* statuses_ = nullptr;
};

TEST_F(memory_ops, by_rdma) {
  const xio_ctx_t c = ctx(XIO_ROUTE_RDMA);
  parts_and_their_end([&](unsigned char* from, unsigned char* to) { run(c, from, to); });
  EXPECT_EQ(xio_ctx_destroy(w_, c), XIO_OK);
}

TEST_F(memory_ops, by_copy_engine) {
  const xio_ctx_t c = ctx(XIO_ROUTE_SDMA);
  parts_and_their_end([&](unsigned char* from, unsigned char* to) { run(c, from, to); });
  EXPECT_EQ(xio_ctx_destroy(w_, c), XIO_OK);
}

TEST_F(memory_ops, by_drive) {
  const xio::test::scratch_file f(1 << 20);
  const xio_ctx_t c = ctx(XIO_ROUTE_DIRECT);
  xio_storage_t s{};
  MUST(xio_storage_open(w_, ("file:" + f.path).c_str(), nullptr, &s));
  parts_and_their_end([&](unsigned char* from, unsigned char* to) { run(c, s, from, to); });
  EXPECT_EQ(xio_storage_close(w_, s), XIO_OK);
  EXPECT_EQ(xio_ctx_destroy(w_, c), XIO_OK);
}

// The first command of a queue fails, the fourth is lost.
class drives_that_err : public memory_ops {
 protected:
  void SetUp() override {
    setenv("XIO_MODEL_FAULTS", "nvme_error@0=write_fault,nvme_lose@3", 1);
    setenv("XIO_TIMEOUT_MS", "300", 1);
    memory_ops::SetUp();
  }
  void TearDown() override {
    memory_ops::TearDown();
    unsetenv("XIO_MODEL_FAULTS");
    unsetenv("XIO_TIMEOUT_MS");
  }
};

// The ctx reports the failure that says most: that of a drive's op rather than that of the queue that has stopped.
TEST_F(drives_that_err, are_named_by_their_ctx) {
  const xio::test::scratch_file f(1 << 20);
  const xio_ctx_t c = ctx(XIO_ROUTE_DIRECT);
  xio_storage_t s{};
  MUST(xio_storage_open(w_, ("file:" + f.path).c_str(), nullptr, &s));
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  const auto expect = [&](xio_status_t status, const char* engine, std::uint32_t vendor, std::uint64_t ticket) {
    ASSERT_EQ(xio_ctx_error(w_, c, &info), XIO_OK);
    EXPECT_EQ(info.status, status);
    EXPECT_STREQ(info.engine, engine);
    EXPECT_PAIRS((info.vendor, vendor), (info.ticket, ticket));
  };
  const auto expect_sentence = [&](const char* sentence) { EXPECT_STREQ(info.sentence, sentence); };
  expect(XIO_OK, "", 0, 0);
  expect_sentence("");
  run(c, s, sym_, sym_);  // command 0 fails, 1 does not
  EXPECT_PAIRS((statuses_[0], XIO_ERR_STORAGE), (statuses_[1], XIO_ERR_STORAGE), (statuses_[2], XIO_OK));
  expect(XIO_ERR_STORAGE, "nvme", 0x280, 0);
  expect_sentence(
      "nvme queue 1: op 0 failed: write fault (status 0x280); look at the drive's error log (nvme error-log, nvme "
      "smart-log)");
  run(c, s, sym_, sym_);  // command 2 does not, 3 is lost
  EXPECT_PAIRS((statuses_[0], XIO_OK), (statuses_[2], XIO_ERR_TIMEOUT));
  expect(XIO_ERR_TIMEOUT, "nvme", 0, 3);
  expect_sentence(
      "nvme queue 1: op 3 was not complete within XIO_TIMEOUT_MS; look whether its device and peer are alive, or raise "
      "it");
  run(c, s, sym_, sym_);  // refused
  EXPECT_EQ(statuses_[0], XIO_ERR_TIMEOUT);
  expect(XIO_ERR_TIMEOUT, "nvme", 0, 3);
  EXPECT_EQ(xio_storage_close(w_, s), XIO_OK);
  EXPECT_EQ(xio_ctx_destroy(w_, c), XIO_OK);
}

// Engines that open later learn of blocks that are registered in part, and of those that are only kept.
TEST_F(memory_ops, by_engines_that_open_late) {
  const xio::test::scratch_file f(1 << 20);
  unsigned char *p = take(), *kept = take();
  MUST(xio_mem_register(w_, p + k_part, 2 * k_part));
  MUST(xio_mem_register(w_, kept, k_block));
  MUST(xio_mem_unregister(w_, kept));

  xio_storage_t s{};
  MUST(xio_storage_open(w_, ("file:" + f.path).c_str(), nullptr, &s));
  const xio_ctx_t rdma = ctx(XIO_ROUTE_RDMA), sdma = ctx(XIO_ROUTE_SDMA), direct = ctx(XIO_ROUTE_DIRECT);
  MUST(xio_mem_register(w_, kept + 5 * k_part, 2 * k_part));
  EXPECT_EQ(hits(), 1u);
  unsigned seed = 10;
  for (unsigned char* base : {p + k_part, kept + 5 * k_part}) {
    const auto check = [&] {
      expect_statuses(XIO_OK);
      EXPECT_EQ(get(base + k_part), pattern(seed));
      put(base, pattern(++seed));
    };
    put(base, pattern(seed));
    run(rdma, base, base + k_part), check();
    run(sdma, base, base + k_part), check();
    run(direct, s, base, base + k_part), check();
  }
  // While all of them know it.
  MUST(xio_mem_free(p));
  MUST(xio_mem_free(kept));
  EXPECT_EQ(xio_storage_close(w_, s), XIO_OK);
  for (const xio_ctx_t& c : {rdma, sdma, direct}) EXPECT_EQ(xio_ctx_destroy(w_, c), XIO_OK);
}

}  // namespace
