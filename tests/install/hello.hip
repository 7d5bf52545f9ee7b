// SPDX-License-Identifier: MIT
// A user's program: built against an installed XIO by pkg-config alone. One PE puts a number to itself.
#include <xio/hip.h>
#include <xio/xio.h>
#include <xio/xio_device.hpp>

#include <cstdio>

__global__ void hello(xio_ctx_t ctx, int* to, int* from, int* status) {
  xio_put(ctx, to, from, sizeof(int), 0);
  *status = xio_quiet(ctx);
}

#define MUST(call)                                                                \
  if ((call) != 0) {                                                              \
    std::printf("%s at line %d failed: %s\n", #call, __LINE__, xio_last_error()); \
    return 1;                                                                     \
  }

int main() {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  void *to = nullptr, *from = nullptr, *status = nullptr;
  MUST(xio_init(nullptr, &world));
  MUST(xio_malloc(world, sizeof(int), &to));
  MUST(xio_malloc(world, sizeof(int), &from));
  MUST(xio_malloc(world, sizeof(int), &status));
  MUST(xio_ctx_create(world, nullptr, &ctx));
  const int sent = 42, poison = -1;
  int got = 0, outcome = -1;
  MUST(hipMemcpy(from, &sent, sizeof sent, hipMemcpyHostToDevice));
  MUST(hipMemcpy(to, &poison, sizeof poison, hipMemcpyHostToDevice));
  MUST(hipMemcpy(status, &poison, sizeof poison, hipMemcpyHostToDevice));
  hipLaunchKernelGGL(hello, dim3(1), dim3(1), 0, nullptr, ctx, static_cast<int*>(to), static_cast<int*>(from),
                     static_cast<int*>(status));
  MUST(hipDeviceSynchronize());
  MUST(hipMemcpy(&got, to, sizeof got, hipMemcpyDeviceToHost));
  MUST(hipMemcpy(&outcome, status, sizeof outcome, hipMemcpyDeviceToHost));
  MUST(xio_ctx_destroy(world, ctx));
  MUST(xio_finalize(world));
  std::printf("put %d, got %d, quiet %d\n", sent, got, outcome);
  return got == sent && outcome == 0 ? 0 : 1;
}
