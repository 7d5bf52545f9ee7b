// SPDX-License-Identifier: MIT
// Host calls while a kernel still uses the world: xio_finalize waits for it on every stream, and no longer than its
// timeout; other calls do not wait for it.
#include <new>

#include "local_world.hpp"
#include "xio/hip.h"
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

struct finalize : testing::TestWithParam<xio_route_t> {
  void start(uint32_t timeout_ms, int puts, hipStream_t stream = nullptr) {
    ASSERT_NE(world_ = xio::test::start_world(1 << 20, timeout_ms), nullptr);
    const xio_ctx_t ctx = xio::test::start_ctx(world_, GetParam());
    void* data = nullptr;
    ASSERT_EQ(xio_malloc(world_, 2 * k_bytes, &data), XIO_OK) << xio_last_error();
    hipLaunchKernelGGL(put_on, dim3(1), dim3(1), 0, stream, ctx, static_cast<char*>(data), puts, out_);
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
  EXPECT_PAIRS((xio_finalize(world_), XIO_OK) << xio_last_error(), (look(&out_->puts), k_puts),
               (look(&out_->status), XIO_OK), (hipDeviceSynchronize(), hipSuccess));
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

TEST_P(finalize, knows_kernels_of_streams_that_wait_for_no_other) {
  hipStream_t apart = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&apart, hipStreamNonBlocking), hipSuccess);
  start(1000, 1 << 30, apart);
  EXPECT_EQ(xio_finalize(world_), XIO_ERR_STATE);
  const int before = look(&out_->puts);
  wait_for_puts(before + 100);
  stop();
  EXPECT_PAIRS((hipStreamSynchronize(apart), hipSuccess), (look(&out_->status), XIO_OK),
               (hipStreamDestroy(apart), hipSuccess));
}

// A persistent kernel: what the runtime would free only when it has ended must not hold up its host.
TEST_P(finalize, is_the_only_call_that_waits_for_a_kernel) {
  start(30000, 1 << 30);
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(xio_ctx_destroy(world_, xio::test::start_ctx(world_, GetParam())), XIO_OK) << xio_last_error();
    for (const xio_mem_kind_t kind : {XIO_MEM_HOST_MAPPED, XIO_MEM_HOST_PINNED, XIO_MEM_DEVICE_HIP}) {
      void* block = xio::test::take(kind, 100000);
      EXPECT_EQ(xio_mem_free(block), XIO_OK) << xio_last_error();
    }
    char name[] = "/tmp/xio-finalize-XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
    xio_storage_t drive;
    ASSERT_EQ(xio_storage_open(world_, (std::string("file:") + name).c_str(), nullptr, &drive), XIO_OK)
        << xio_last_error();
    EXPECT_EQ(xio_storage_close(world_, drive), XIO_OK) << xio_last_error();
    close(fd);
    unlink(name);
    // A thread that has copied has a stream of its own, which ends with it.
    std::thread([&] {
      void* block = nullptr;
      EXPECT_EQ(xio_mem_alloc(XIO_MEM_DEVICE_HIP, 4096, nullptr, &block), XIO_OK) << xio_last_error();
      EXPECT_EQ(xio_mem_free(block), XIO_OK) << xio_last_error();
    }).join();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  const int before = look(&out_->puts);
  wait_for_puts(before + 100);
  stop();
  EXPECT_EQ(xio_finalize(world_), XIO_OK) << xio_last_error();
  EXPECT_EQ(look(&out_->status), XIO_OK);
}

INSTANTIATE_TEST_SUITE_P(by, finalize, testing::Values(XIO_ROUTE_DIRECT, XIO_ROUTE_RDMA, XIO_ROUTE_SDMA));

}  // namespace
