// SPDX-License-Identifier: MIT
// A program whose kernels have loads and stores and one NIC family: what it needs works, and what would need more is
// refused by the host. A process of its own, for what a file left out is left out of the process.
#define XIO_ENGINES direct + rdma
#define XIO_FAMILIES ionic
#include "../gtest.hpp"

#include <xio/hip.h>
#include <xio/xio.h>

#include <xio/xio_device.hpp>

namespace {

__global__ void put_and_wait(xio_ctx_t ctx, std::uint64_t* to, const std::uint64_t* from, int* status) {
  status[0] = xio_put(ctx, to, from, 64, 0);
  status[1] = xio_put_signal(ctx, to + 8, from, 64, to + 16, 7, XIO_SIGNAL_ADD, 0);
  status[2] = xio_p(ctx, to + 17, 9, 0);
  status[3] = xio_quiet(ctx);
  status[4] = xio_signal_wait_until(ctx, to + 16, XIO_CMP_GE, 7);
  status[5] = static_cast<int>(xio_atomic_fetch_add(ctx, to + 17, std::uint64_t{1}, 0));
}

// A world of one with those variables, or why there is none.
struct alone {
  explicit alone(const char* route = "auto", const char* family = "auto", const char* hdp = "auto") {
    std::vector<xio_option_t> options{{"XIO_ROUTE", route}, {"XIO_NIC_FAMILY", family}, {"XIO_HDP", hdp}};
    options.push_back({"XIO_BOOTSTRAP", "local"});
    options.push_back({"XIO_BACKEND", "model"});
    xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
    attr.heap_bytes = 1 << 20;
    attr.options = options.data();
    attr.option_count = options.size();
    status = xio_init(&attr, &world);
    if (status != XIO_OK) why = xio_last_error();
  }
  ~alone() {
    if (world == nullptr) return;
    EXPECT_EQ(xio_finalize(world), XIO_OK) << xio_last_error();
  }
  xio_world_t* world = nullptr;
  xio_status_t status = XIO_OK;
  std::string why;
};

void expect_data_moves(xio_world_t* world) {
  xio_ctx_t ctx;
  ASSERT_EQ(xio_ctx_create(world, nullptr, &ctx), XIO_OK) << xio_last_error();
  void* block = nullptr;
  ASSERT_EQ(xio_calloc(world, 1, 4096, &block), XIO_OK) << xio_last_error();
  std::uint64_t* to = static_cast<std::uint64_t*>(block);
  std::uint64_t from[8];
  for (std::uint64_t i = 0; i < 8; ++i) from[i] = 100 + i;
  ASSERT_EQ(hipMemcpy(to + 32, from, sizeof from, hipMemcpyHostToDevice), hipSuccess);
  int* status = nullptr;
  ASSERT_EQ(hipHostMalloc(reinterpret_cast<void**>(&status), 6 * sizeof *status), hipSuccess);
  hipLaunchKernelGGL(put_and_wait, dim3(1), dim3(1), 0, nullptr, ctx, to, to + 32, status);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status[i], XIO_OK) << i;
  EXPECT_EQ(status[5], 9);
  std::uint64_t found[18];
  ASSERT_EQ(hipMemcpy(found, to, sizeof found, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_PAIRS((std::memcmp(found, from, sizeof from), 0), (std::memcmp(found + 8, from, sizeof from), 0),
               (found[16], 7u), (found[17], 10u));
  EXPECT_PAIRS((hipHostFree(status), hipSuccess), (xio_free(world, block), XIO_OK),
               (xio_ctx_destroy(world, ctx), XIO_OK) << xio_last_error());
}

TEST(left_out, loads_and_stores_are_there) {
  alone a;
  ASSERT_EQ(a.status, XIO_OK) << a.why;
  expect_data_moves(a.world);
}

TEST(left_out, the_family_that_was_kept_is_there) {
  alone a("rdma", "ionic");
  ASSERT_EQ(a.status, XIO_OK) << a.why;
  expect_data_moves(a.world);
}

void expect_refused(xio_status_t status, const std::string& why, const std::string& words) {
  EXPECT_EQ(status, XIO_ERR_STATE) << why;
  EXPECT_NE(why.find(words), std::string::npos) << why;
}

TEST(left_out, a_world_that_needs_an_engine_is_refused) {
  alone a("sdma");
  expect_refused(a.status, a.why, "xio_init: kernels reach PE 0 by route sdma");
  expect_refused(a.status, a.why, "add sdma to its XIO_ENGINES");
}

TEST(left_out, a_world_that_must_flush_the_hdp_is_refused) {
  alone a("auto", "auto", "host");
  expect_refused(a.status, a.why, "add hdp to its XIO_ENGINES");
}

TEST(left_out, a_ctx_of_another_family_is_refused) {
  alone a("rdma", "mlx5");
  ASSERT_EQ(a.status, XIO_OK) << a.why;
  xio_ctx_t ctx;
  const xio_status_t status = xio_ctx_create(a.world, nullptr, &ctx);
  expect_refused(status, xio_last_error(), "add mlx5 to its XIO_FAMILIES");
}

TEST(left_out, a_ctx_of_another_engine_is_refused) {
  alone a;
  ASSERT_EQ(a.status, XIO_OK) << a.why;
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_SDMA;
  xio_ctx_t ctx;
  const xio_status_t status = xio_ctx_create(a.world, &attr, &ctx);
  expect_refused(status, xio_last_error(), "xio_ctx_create: kernels reach PE 0 by route sdma");
}

TEST(left_out, a_storage_is_refused) {
  alone a;
  ASSERT_EQ(a.status, XIO_OK) << a.why;
  xio_storage_t s;
  const xio_status_t status = xio_storage_open(a.world, "file:/dev/null", nullptr, &s);
  expect_refused(status, xio_last_error(), "add nvme to its XIO_ENGINES");
}

// A second file of a program may leave out more.
TEST(left_out, what_any_file_left_out_is_left_out) {
  {
    alone a("rdma", "ionic");
    EXPECT_EQ(a.status, XIO_OK) << a.why;
  }
  xio_internal_program_has(XIO_HAS_DIRECT | XIO_HAS_SDMA, 0);
  alone b("rdma", "ionic");
  expect_refused(b.status, b.why, "add rdma to its XIO_ENGINES");
  alone c("sdma");
  expect_refused(c.status, c.why, "add sdma to its XIO_ENGINES");
}

}  // namespace
