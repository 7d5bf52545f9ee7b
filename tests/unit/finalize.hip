// SPDX-License-Identifier: MIT
// xio_finalize while a kernel still uses the world: it waits for the kernel, and no longer than it was told.
#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <string>
#include <thread>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

constexpr size_t k_bytes = 4096;

// In memory of the host that kernels reach, too.
struct report {
  int puts, status, stop;
};

int look(const int* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

// Puts until it is told to stop or so many are done.
__global__ void put_on(xio_ctx_t ctx, char* data, int most, report* out) {
  using namespace xio::dev;
  for (int done = 0; done < most && load<scope::system, order::relaxed>(&out->stop) == 0;) {
    const xio_status_t status = xio_put(ctx, data, data + k_bytes, k_bytes, 0);
    if (status != XIO_OK) store<scope::system, order::relaxed>(&out->status, static_cast<int>(status));
    store<scope::system, order::release>(&out->puts, ++done);
  }
}

class finalize : public testing::TestWithParam<xio_route_t> {
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
    hipLaunchKernelGGL(put_on, dim3(1), dim3(1), 0, nullptr, ctx, static_cast<char*>(data), puts, out_);
    wait_for_puts(1);
  }
  void wait_for_puts(int least) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (look(&out_->puts) < least && look(&out_->status) == XIO_OK && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    EXPECT_GE(look(&out_->puts), least);
  }
  void SetUp() override {
    void* p = nullptr;
    ASSERT_EQ(hipHostMalloc(&p, sizeof(report), hipHostMallocMapped), hipSuccess);
    out_ = new (p) report{0, XIO_OK, 0};
  }
  void TearDown() override { (void)hipHostFree(out_); }
  void stop() { __atomic_store_n(&out_->stop, 1, __ATOMIC_RELEASE); }
  xio_world_t* world_ = nullptr;
  report* out_ = nullptr;
};

TEST_P(finalize, waits_for_a_kernel) {
  constexpr int k_puts = 3000;
  start(30000, k_puts);
  EXPECT_EQ(xio_finalize(world_), XIO_OK) << xio_last_error();
  EXPECT_EQ(look(&out_->puts), k_puts);
  EXPECT_EQ(look(&out_->status), XIO_OK);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

TEST_P(finalize, leaves_a_kernel_that_does_not_end_what_it_uses) {
  start(200, 1 << 30);
  EXPECT_EQ(xio_finalize(world_), XIO_ERR_STATE);
  EXPECT_NE(std::string(xio_last_error()).find("a kernel still runs after 200 ms"), std::string::npos)
      << xio_last_error();
  const int before = look(&out_->puts);
  wait_for_puts(before + 100);
  stop();
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(look(&out_->status), XIO_OK);
  EXPECT_EQ(xio_my_pe(world_), -1) << "it is gone for the program";
}

INSTANTIATE_TEST_SUITE_P(by, finalize, testing::Values(XIO_ROUTE_DIRECT, XIO_ROUTE_RDMA, XIO_ROUTE_SDMA));

}  // namespace
