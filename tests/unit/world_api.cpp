// SPDX-License-Identifier: MIT
// The C API in a world of one: every wrong pointer, handle and value is a status and a sentence that names it.
#include "config.h"

#include <sys/resource.h>

#include <filesystem>

#include "base/thread.hpp"
#include "bootstrap_rig.hpp"
#include "gpu/gpu.hpp"
#include "local_world.hpp"
#include "says.hpp"
#include "xio/sdma.h"

namespace {

using xio::test::says;
using xio::test::start_world;

// The heap may be memory of a GPU.
char byte_at(const void* heap, std::size_t i) {
  char c = 0x55;
  xio::gpu::copy(&c, static_cast<const char*>(heap) + i, 1);
  return c;
}

struct api : testing::Test {
  void SetUp() override { ASSERT_NE(w_ = start_world(), nullptr); }
  void TearDown() override { EXPECT_EQ(xio_finalize(w_), XIO_OK) << xio_last_error(); }
  xio_world_t* w_ = nullptr;
};

// --- Worlds ------------------------------------------------------------------------------------------

TEST(api_world, starts_ends_and_starts_again) {
  for (int i = 0; i < 3; ++i) {
    xio_world_t* w = start_world();
    EXPECT_PAIRS((xio_my_pe(w), 0), (xio_n_pes(w), 1), (xio_finalize(w), XIO_OK));
  }
}

TEST(api_world, several_live_at_once_and_apart) {
  xio_world_t* a = start_world(1 << 20);
  xio_world_t* b = start_world(2 << 20);
  void *in_a = nullptr, *in_b = nullptr;
  ASSERT_EQ(xio_calloc(a, 1000, 1, &in_a), XIO_OK);
  ASSERT_EQ(xio_calloc(b, 1000, 1, &in_b), XIO_OK);
  xio::gpu::copy(in_a, std::string(1000, '\1').data(), 1000);
  EXPECT_EQ(byte_at(in_b, 0), 0);
  EXPECT_REFUSED(xio_free(a, in_b), XIO_ERR_NOT_SYMMETRIC, "not in the symmetric heap");
  xio_ctx_t of_a{};
  ASSERT_EQ(xio_ctx_create(a, nullptr, &of_a), XIO_OK);
  EXPECT_REFUSED(xio_ctx_destroy(b, of_a), XIO_ERR_ARG, "not of this world");
  EXPECT_PAIRS((xio_finalize(a), XIO_OK), (byte_at(in_b, 999), 0), (xio_free(b, in_b), XIO_OK),
               (xio_finalize(b), XIO_OK));
}

TEST(api_world, null_and_stale_ones_are_refused_everywhere) {
  xio_world_t* stale = start_world();
  ASSERT_EQ(xio_finalize(stale), XIO_OK);
  const auto every = [](xio_world_t* w, xio_status_t wanted, const char* words) {
    void* p = nullptr;
    int local = 0;
    xio_ctx_t c{};
    xio_storage_t s{};
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    xio_error_info_t info = XIO_ERROR_INFO_INIT;
    EXPECT_REFUSED(xio_finalize(w), wanted, words);
    EXPECT_REFUSED(xio_host_barrier(w), wanted, words);
    EXPECT_REFUSED(xio_malloc(w, 1, &p), wanted, words);
    EXPECT_REFUSED(xio_calloc(w, 1, 1, &p), wanted, words);
    EXPECT_REFUSED(xio_align(w, 128, 1, &p), wanted, words);
    EXPECT_REFUSED(xio_free(w, nullptr), wanted, words);
    size_t none = 0;
    EXPECT_REFUSED(xio_free_dropped(w, nullptr, &none), wanted, words);
    EXPECT_REFUSED(xio_mem_register(w, &local, 4), wanted, words);
    EXPECT_REFUSED(xio_mem_unregister(w, &local), wanted, words);
    EXPECT_REFUSED(xio_ctx_create(w, nullptr, &c), wanted, words);
    EXPECT_REFUSED(xio_ctx_destroy(w, c), wanted, words);
    EXPECT_REFUSED(xio_ctx_recover(w, c), wanted, words);
    EXPECT_REFUSED(xio_ctx_stats(w, c, XIO_ROUTE_RDMA, &stats), wanted, words);
    EXPECT_REFUSED(xio_ctx_error(w, c, &info), wanted, words);
    EXPECT_REFUSED(xio_storage_open(w, "file:/dev/null", nullptr, &s), wanted, words);
    EXPECT_REFUSED(xio_storage_close(w, s), wanted, words);
    EXPECT_REFUSED(xio_storage_size(w, s, nullptr, nullptr), wanted, words);
    EXPECT_REFUSED(xio_storage_grow(w, s, 1), wanted, words);
    EXPECT_REFUSED(xio_storage_stats(w, s, &stats), wanted, words);
    EXPECT_PAIRS((xio_route_name(w, c, 8, 0), nullptr), (xio_ptr(w, &local, 0), nullptr), (xio_my_pe(w), -1),
                 (xio_n_pes(w), -1));
  };
  every(nullptr, XIO_ERR_ARG, "world is null");
  every(stale, XIO_ERR_STATE, "was finalized");
}

// The system says EAGAIN for both limits; the child's status says which one the sentence blamed.
TEST(api_world, a_thread_without_room_is_blamed_on_the_limit_of_memory) {
  const int blamed_for = xio::test::in_child([] {
    int blamed = 2;
    const rlimit none{1 << 20, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &none) != 0) return 3;
    try {
      // The C library keeps stacks of threads that have ended, and they take none of the limit.
      for (int i = 0; i < 64; ++i) xio::start_thread("a test", [] { pause(); }).detach();
    } catch (const xio::error& e) {
      if (std::strstr(e.what(), "ulimit -v, now 1024") != nullptr) blamed = 0;
      if (std::strstr(e.what(), "ulimit -u") != nullptr) blamed = 1;
    }
    return blamed;
  });
  EXPECT_EQ(blamed_for, 0);
}

// Every call, of every header; the status of each leaves the child by a pipe.
TEST(api_world, a_forked_child_is_refused_everywhere) {
  xio_world_t* w = start_world();
  xio_ctx_t c{};
  ASSERT_EQ(xio_ctx_create(w, nullptr, &c), XIO_OK);
  void* block = nullptr;
  ASSERT_EQ(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 4096, nullptr, &block), XIO_OK);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    void* p = nullptr;
    int local = 0;
    std::uint64_t offset = 0;
    xio_world_t* other = nullptr;
    xio_storage_t s{};
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    xio_error_info_t info = XIO_ERROR_INFO_INIT;
    xio_mem_cache_stats_t cache = XIO_MEM_CACHE_STATS_INIT;
    xio_mem_pair_t pair{};
    xio_mem_place_t place = XIO_MEM_PLACE_INIT;
    xio_sdma_link_t* link = nullptr;
    const xio_status_t all[] = {xio_init(nullptr, &other),
                                xio_host_barrier(w),
                                xio_malloc(w, 1, &p),
                                xio_calloc(w, 1, 1, &p),
                                xio_align(w, 128, 1, &p),
                                xio_free(w, nullptr),
                                xio_mem_register(w, &local, 4),
                                xio_mem_unregister(w, &local),
                                xio_mem_cache_stats(w, &cache),
                                xio_ctx_create(w, nullptr, &c),
                                xio_ctx_stats(w, c, XIO_ROUTE_RDMA, &stats),
                                xio_ctx_error(w, c, &info),
                                xio_ctx_destroy(w, c),
                                xio_storage_open(w, "file:/dev/null", nullptr, &s),
                                xio_storage_size(w, s, nullptr, nullptr),
                                xio_storage_stats(w, s, &stats),
                                xio_storage_close(w, s),
                                xio_mem_supports(XIO_MEM_HOST_PLAIN),
                                xio_mem_alloc(XIO_MEM_HOST_PLAIN, 64, nullptr, &p),
                                xio_mem_where(block, &place),
                                xio_mem_pair_alloc(XIO_MEM_HOST_PLAIN, XIO_MEM_HOST_PLAIN, 64, nullptr, &pair),
                                xio_mem_pair_to_device(&pair, 0, 0),
                                xio_mem_pair_to_host(&pair, 0, 0),
                                xio_mem_pair_free(&pair),
                                xio_mem_export_dmabuf(block, 4096, 0, &local, &offset),
                                xio_mem_close_dmabuf(-1),
                                xio_mem_free(block),
                                xio_sdma_connect(nullptr, &link),
                                xio_sdma_disconnect(nullptr),
                                xio_finalize(w)};
    const bool none = xio_my_pe(w) == -1 && xio_n_pes(w) == -1 && xio_ptr(w, block, 0) == nullptr &&
                      xio_route_name(w, c, 8, 0) == nullptr && says(xio_last_error(), "was forked");
    (void)!write(ends[1], all, sizeof all);
    _exit(none ? 0 : 1);
  }
  close(ends[1]);
  xio_status_t one = XIO_OK;
  int calls = 0;
  for (; read(ends[0], &one, sizeof one) == sizeof one; ++calls) EXPECT_EQ(one, XIO_ERR_STATE) << "call " << calls;
  EXPECT_EQ(calls, 30);
  close(ends[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_PAIRS((status, 0), (xio_host_barrier(w), XIO_OK), (xio_mem_free(block), XIO_OK), (xio_finalize(w), XIO_OK));
}

TEST(api_world, init_says_what_is_wrong_with_the_environment) {
  const auto with = [](const char* variable, const char* value, const char* words) {
    setenv(variable, value, 1);
    setenv("XIO_BOOTSTRAP", "local", 0);
    xio_world_t* w = reinterpret_cast<xio_world_t*>(8);
    EXPECT_REFUSED(xio_init(nullptr, &w), XIO_ERR_CONFIG, words);
    EXPECT_EQ(w, nullptr);
    unsetenv(variable);
    unsetenv("XIO_BOOTSTRAP");
  };
  with("XIO_HEAP_SIZE", "0", "XIO_HEAP_SIZE='0'");
  with("XIO_HEAP_SIZE", "64Q", "XIO_HEAP_SIZE='64Q'");
  with("XIO_HEAP_SIZE", "-1", "XIO_HEAP_SIZE='-1'");
  with("XIO_HEAP_SIZE", "99999999999999999999999", "XIO_HEAP_SIZE");
  with("XIO_ROUTE", "pigeon", "XIO_ROUTE='pigeon'");
  with("XIO_TIMEOUT_MS", "soon", "XIO_TIMEOUT_MS='soon'");
  with("XIO_BOOTSTRAP", "smoke", "XIO_BOOTSTRAP='smoke'");
  with("XIO_LOG_LEVEL", "loud", "XIO_LOG_LEVEL='loud'");
}

// Rank 0 of two, whose other one never comes. It would have joined it to say that its heap is wrong.
TEST(api_world, init_that_refuses_waits_for_the_others_no_longer_than_it_was_asked_to) {
  const auto refused_in = [](const char* timeout, std::uint32_t attr_timeout) {
    const std::string root = "127.0.0.1:" + std::to_string(rig::free_port());
    const std::vector<std::pair<const char*, const char*>> variables{
        {"XIO_BOOTSTRAP", "tcp"},   {"XIO_TCP_ROOT", root.c_str()},      {"XIO_TCP_RANK", "0"},
        {"XIO_TCP_SIZE", "2"},      {"XIO_TCP_KEY", rig::k_key.c_str()}, {"XIO_HEAP_SIZE", "bogus"},
        {"XIO_TIMEOUT_MS", timeout}};
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
    attr.timeout_ms = attr_timeout;
    xio_world_t* w = nullptr;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "XIO_HEAP_SIZE='bogus'");
    for (const auto& v : variables) unsetenv(v.first);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_LT(refused_in("500", 0), 10);
  EXPECT_LT(refused_in("600000", 500), 10);
}

TEST(api_world, init_says_what_is_wrong_with_its_attributes) {
  xio_world_t* w = nullptr;
  EXPECT_REFUSED(xio_init(nullptr, nullptr), XIO_ERR_ARG, "world is null");
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = "smoke";
  EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "smoke");
  attr.bootstrap = "local";
  attr.heap_bytes = SIZE_MAX;
  EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "heap_bytes");
  attr.heap_bytes = std::size_t{1} << 40;
  EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_NO_MEMORY, "lower XIO_HEAP_SIZE");
  attr.size = 3;
  EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "xio_init_attr_t.size is 3");
}

TEST(api_world, knows_its_version) {
  int major = -1, minor = -1, patch = -1;
  xio_version(&major, &minor, &patch);
  EXPECT_PAIRS((major, XIO_VERSION_MAJOR), (minor, XIO_VERSION_MINOR), (patch, XIO_VERSION_PATCH));
  xio_version(nullptr, nullptr, nullptr);
}

// --- Memory ------------------------------------------------------------------------------------------

TEST_F(api, memory_calls_check_their_pointers) {
  EXPECT_REFUSED(xio_malloc(w_, 1, nullptr), XIO_ERR_ARG, "xio_malloc: out is null");
  EXPECT_REFUSED(xio_calloc(w_, 1, 1, nullptr), XIO_ERR_ARG, "xio_calloc: out is null");
  EXPECT_REFUSED(xio_align(w_, 128, 1, nullptr), XIO_ERR_ARG, "xio_align: out is null");
  void* p = w_;
  EXPECT_REFUSED(xio_align(w_, 96, 1, &p), XIO_ERR_ARG, "alignment 96");
  EXPECT_EQ(p, nullptr);
  EXPECT_REFUSED(xio_calloc(w_, SIZE_MAX, 2, &p), XIO_ERR_ARG, "more than an address can count");
  EXPECT_REFUSED(xio_malloc(w_, SIZE_MAX, &p), XIO_ERR_NO_MEMORY, "raise XIO_HEAP_SIZE");
  EXPECT_REFUSED(xio_mem_register(w_, nullptr, 1), XIO_ERR_ARG, "base is null");
  EXPECT_REFUSED(xio_mem_unregister(w_, nullptr), XIO_ERR_ARG, "base is null");
  EXPECT_EQ(xio_free(w_, nullptr), XIO_OK);
}

TEST_F(api, dropped_blocks_leave_the_list_as_they_are_freed) {
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(xio_malloc(w_, 64, &first), XIO_OK);
  ASSERT_EQ(xio_malloc(w_, 64, &second), XIO_OK);
  void* blocks[] = {second, first};
  size_t count = 2;
  EXPECT_EQ(xio_free_dropped(w_, blocks, &count), XIO_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_REFUSED(xio_free(w_, first), XIO_ERR_STATE, "freed already");
  EXPECT_EQ(xio_free_dropped(w_, nullptr, &count), XIO_OK);
  count = 2;
  EXPECT_REFUSED(xio_free_dropped(w_, blocks, &count), XIO_ERR_STATE, "xio_free_dropped: ");
  EXPECT_EQ(count, 2u);
  EXPECT_REFUSED(xio_free_dropped(w_, nullptr, &count), XIO_ERR_ARG, "blocks is null");
  EXPECT_REFUSED(xio_free_dropped(w_, blocks, nullptr), XIO_ERR_ARG, "count is null");
}

TEST_F(api, ptr_is_null_but_for_symmetric_memory) {
  void* p = nullptr;
  ASSERT_EQ(xio_malloc(w_, 64, &p), XIO_OK);
  EXPECT_PAIRS((xio_ptr(w_, p, 0), p), (xio_ptr(w_, p, 1), nullptr), (xio_ptr(w_, p, -1), nullptr),
               (xio_ptr(w_, &p, 0), nullptr), (xio_ptr(w_, nullptr, 0), nullptr));
}

// --- Contexts ----------------------------------------------------------------------------------------

TEST_F(api, contexts_are_refused_after_their_end) {
  EXPECT_REFUSED(xio_ctx_create(w_, nullptr, nullptr), XIO_ERR_ARG, "ctx is null");
  xio_ctx_t c{};
  EXPECT_REFUSED(xio_ctx_destroy(w_, c), XIO_ERR_ARG, "the ctx is empty");
  EXPECT_REFUSED(xio_ctx_recover(w_, c), XIO_ERR_ARG, "the ctx is empty");
  ASSERT_EQ(xio_ctx_create(w_, nullptr, &c), XIO_OK) << xio_last_error();
  EXPECT_STREQ(xio_route_name(w_, c, 1 << 20, 0), "direct");
  EXPECT_EQ(xio_route_name(w_, c, 8, 1), nullptr);
  EXPECT_PRED2(says, xio_last_error(), "PE 1");
  EXPECT_EQ(xio_route_name(w_, c, 8, -1), nullptr);
  xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
  EXPECT_REFUSED(xio_ctx_stats(w_, c, XIO_ROUTE_DIRECT, &stats), XIO_ERR_ARG, "no rings");
  EXPECT_REFUSED(xio_ctx_stats(w_, c, XIO_ROUTE_RDMA, nullptr), XIO_ERR_ARG, "out is null");
  EXPECT_EQ(xio_ctx_stats(w_, c, XIO_ROUTE_RDMA, &stats), XIO_OK);
  // A caller that knows less than this library: what follows is not written.
  stats = {offsetof(xio_engine_stats_t, bytes), 1, 2, 3};
  EXPECT_EQ(xio_ctx_stats(w_, c, XIO_ROUTE_RDMA, &stats), XIO_OK);
  EXPECT_PAIRS((stats.doorbells, 0u), (stats.bytes, 3u), (stats.size, offsetof(xio_engine_stats_t, bytes)));
  stats.size = sizeof stats.size;
  EXPECT_REFUSED(xio_ctx_stats(w_, c, XIO_ROUTE_RDMA, &stats), XIO_ERR_CONFIG, "set it to sizeof(xio_engine_stats_t)");
  xio_mem_cache_stats_t cache{};
  EXPECT_REFUSED(xio_mem_cache_stats(w_, &cache), XIO_ERR_CONFIG, "xio_mem_cache_stats_t.size is 0");
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  std::memset(&info, 0x5a, sizeof info);
  EXPECT_REFUSED(xio_ctx_error(w_, c, &info), XIO_ERR_CONFIG, "xio_error_info_t.size is 6510615555426900570");
  info.size = sizeof info;
  EXPECT_REFUSED(xio_ctx_error(w_, c, nullptr), XIO_ERR_ARG, "info is null");
  EXPECT_EQ(xio_ctx_error(w_, c, &info), XIO_OK);
  EXPECT_EQ(info.status, XIO_OK);
  EXPECT_STREQ(info.engine, "");
  EXPECT_STREQ(info.sentence, "");
  const void* before = c.view;
  EXPECT_PAIRS((xio_ctx_recover(w_, c), XIO_OK) << xio_last_error(), (c.view, before),
               (xio_ctx_destroy(w_, c), XIO_OK));
  EXPECT_REFUSED(xio_ctx_destroy(w_, c), XIO_ERR_STATE, "destroyed already");
  EXPECT_REFUSED(xio_ctx_recover(w_, c), XIO_ERR_STATE, "destroyed already");
  EXPECT_REFUSED(xio_ctx_stats(w_, c, XIO_ROUTE_RDMA, &stats), XIO_ERR_STATE, "destroyed already");
  EXPECT_REFUSED(xio_ctx_error(w_, c, &info), XIO_ERR_STATE, "destroyed already");
  EXPECT_EQ(xio_route_name(w_, c, 8, 0), nullptr);
  c.id += 5;
  EXPECT_REFUSED(xio_ctx_destroy(w_, c), XIO_ERR_ARG, "never created");
}

// --- Storage -----------------------------------------------------------------------------------------

TEST_F(api, storage_calls_check_their_arguments) {
  xio_storage_t s{};
  EXPECT_REFUSED(xio_storage_open(w_, nullptr, nullptr, &s), XIO_ERR_ARG, "name is null");
  EXPECT_REFUSED(xio_storage_open(w_, "file:/dev/null", nullptr, nullptr), XIO_ERR_ARG, "storage is null");
  EXPECT_REFUSED(xio_storage_close(w_, s), XIO_ERR_ARG, "the storage is empty");
  EXPECT_NE(xio_storage_open(w_, "file:/no/such/file", nullptr, &s), XIO_OK);
  EXPECT_PRED2(says, xio_last_error(), "/no/such/file");
  EXPECT_EQ(s.view, nullptr);
  EXPECT_NE(xio_storage_open(w_, "tape:7", nullptr, &s), XIO_OK);
  EXPECT_PRED2(says, xio_last_error(), "tape:7");
  EXPECT_NE(xio_storage_open(w_, "", nullptr, &s), XIO_OK);
  EXPECT_NE(xio_storage_open(w_, "file:/", nullptr, &s), XIO_OK);
}

#ifdef XIO_ENABLE_MODEL
// Each file of several gets as many whole stripes as all of them have.
TEST_F(api, several_files_grow_as_one) {
  const std::string one = testing::TempDir() + "/xio_stripes_a", two = testing::TempDir() + "/xio_stripes_b";
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE;
  attr.stripe_bytes = 4096;
  xio_storage_t s{};
  ASSERT_EQ(xio_storage_open(w_, ("file:" + one + "?size=5000,file:" + two + "?size=9000").c_str(), &attr, &s), XIO_OK)
      << xio_last_error();
  uint64_t bytes = 0;
  constexpr uint64_t cases[][4] = {{0, 8192, 5000, 9000}, {20000, 24576, 12288, 12288}, {7, 24576, 12288, 12288}};
  for (const auto& [asked, whole, first, second] : cases) {
    EXPECT_EQ(xio_storage_grow(w_, s, asked), XIO_OK) << xio_last_error();
    EXPECT_EQ(xio_storage_size(w_, s, &bytes, nullptr), XIO_OK);
    EXPECT_PAIRS((bytes, whole), (std::filesystem::file_size(one), first), (std::filesystem::file_size(two), second));
  }
  ASSERT_EQ(truncate(two.c_str(), 100), 0);
  EXPECT_REFUSED(xio_storage_grow(w_, s, 99999), XIO_ERR_STATE, "xio_stripes_b: it was made shorter");
  EXPECT_EQ(xio_storage_close(w_, s), XIO_OK);
  std::filesystem::remove(one);
  std::filesystem::remove(two);
}

TEST_F(api, storages_open_tell_their_size_and_close) {
  char path[] = "/tmp/xio_storage_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 10000), 0);
  close(fd);
  const std::string name = std::string("file:") + path;
  std::vector<xio_storage_t> open(16);
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_READ_ONLY;
  for (auto& s : open) ASSERT_EQ(xio_storage_open(w_, name.c_str(), &attr, &s), XIO_OK) << xio_last_error();
  xio_storage_t more{};
  EXPECT_REFUSED(xio_storage_open(w_, name.c_str(), &attr, &more), XIO_ERR_NO_MEMORY, "close one");
  uint64_t bytes = 0;
  uint32_t block = 0;
  EXPECT_PAIRS((xio_storage_size(w_, open[0], &bytes, &block), XIO_OK), (block, 512u), (bytes, 10000u));
  EXPECT_REFUSED(xio_storage_grow(w_, open[0], 10001), XIO_ERR_ARG, "from 10000 to 10001 bytes: open it without READ");
  ASSERT_EQ(truncate(path, 10007), 0);
  EXPECT_EQ(xio_storage_grow(w_, open[0], 0), XIO_OK) << xio_last_error();
  EXPECT_EQ(xio_storage_size(w_, open[0], &bytes, nullptr), XIO_OK);
  EXPECT_EQ(bytes, 10007u);  // of which only those that ask hear
  EXPECT_EQ(xio_storage_size(w_, open[1], &bytes, nullptr), XIO_OK);
  EXPECT_EQ(bytes, 10000u);
  xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
  EXPECT_EQ(xio_storage_stats(w_, open[0], &stats), XIO_OK);
  EXPECT_EQ(stats.ops, 0u);
  EXPECT_REFUSED(xio_storage_stats(w_, open[0], nullptr), XIO_ERR_ARG, "out is null");
  stats.size = 4097;
  EXPECT_REFUSED(xio_storage_stats(w_, open[0], &stats), XIO_ERR_CONFIG, "xio_engine_stats_t.size is 4097");
  EXPECT_EQ(xio_storage_close(w_, open[3]), XIO_OK);
  EXPECT_REFUSED(xio_storage_close(w_, open[3]), XIO_ERR_STATE, "closed already");
  EXPECT_REFUSED(xio_storage_size(w_, open[3], &bytes, &block), XIO_ERR_STATE, "closed already");
  EXPECT_EQ(xio_storage_open(w_, name.c_str(), &attr, &open[3]), XIO_OK) << xio_last_error();
  unlink(path);
  // The rest is finalize's.
}
#endif

}  // namespace
