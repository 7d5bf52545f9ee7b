// SPDX-License-Identifier: MIT
// xio_finalize while a kernel still uses the world, on the host platform: it waits for the kernel, and no longer than
// it was told.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

constexpr size_t k_bytes = 4096;

struct report {
  std::atomic<int> puts{0};
  std::atomic<int> status{XIO_OK};
  std::atomic<bool> stop{false};
};

// Puts until it is told to stop or so many are done.
__global__ void put_on(xio_ctx_t ctx, char* data, int most, report* out) {
  while (!out->stop && out->puts < most) {
    const xio_status_t status = xio_put(ctx, data, data + k_bytes, k_bytes, 0);
    if (status != XIO_OK) out->status = status;
    ++out->puts;
  }
}

class host_finalize : public testing::TestWithParam<xio_route_t> {
 protected:
  void start(uint32_t timeout_ms, int puts) {
    xio_init_attr_t world_attr = XIO_INIT_ATTR_INIT;
    world_attr.bootstrap = "local";
    world_attr.heap_bytes = 1 << 20;
    world_attr.timeout_ms = timeout_ms;
    ASSERT_EQ(xio_init(&world_attr, &world_), XIO_OK) << xio_last_error();
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.route = GetParam();
    xio_ctx_t ctx;
    ASSERT_EQ(xio_ctx_create(world_, &attr, &ctx), XIO_OK) << xio_last_error();
    void* data = nullptr;
    ASSERT_EQ(xio_malloc(world_, 2 * k_bytes, &data), XIO_OK) << xio_last_error();
    hipLaunchKernelGGL(put_on, dim3(1), dim3(1), 0, nullptr, ctx, static_cast<char*>(data), puts, &out_);
    while (out_.puts == 0) std::this_thread::yield();
  }
  xio_world_t* world_ = nullptr;
  report out_;
};

TEST_P(host_finalize, waits_for_a_kernel) {
  constexpr int k_puts = 3000;
  start(30000, k_puts);
  EXPECT_EQ(xio_finalize(world_), XIO_OK) << xio_last_error();
  EXPECT_EQ(out_.puts, k_puts);
  EXPECT_EQ(out_.status, XIO_OK);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

TEST_P(host_finalize, leaves_a_kernel_that_does_not_end_what_it_uses) {
  start(200, 1 << 30);
  EXPECT_EQ(xio_finalize(world_), XIO_ERR_STATE);
  EXPECT_NE(std::string(xio_last_error()).find("a kernel still runs after 200 ms"), std::string::npos)
      << xio_last_error();
  const int before = out_.puts;
  while (out_.puts < before + 100 && out_.status == XIO_OK) std::this_thread::yield();
  out_.stop = true;
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(out_.status, XIO_OK);
  EXPECT_EQ(xio_my_pe(world_), -1) << "it is gone for the program";
}

INSTANTIATE_TEST_SUITE_P(by, host_finalize, testing::Values(XIO_ROUTE_DIRECT, XIO_ROUTE_RDMA, XIO_ROUTE_SDMA));

}  // namespace
