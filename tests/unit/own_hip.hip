// SPDX-License-Identifier: MIT
// A program that has a HIP of its own (own_hip_functions.cpp) beside libxio's host platform, as a process of PyTorch
// has: its own functions stay its own, and neither XIO nor kernels on CPU threads come to them.
#include <dlfcn.h>

#include <cstdio>

#include "own_hip_functions.hpp"
#include "xio/hip.h"
#include "xio/memory.h"
#include "xio/xio.h"

__global__ void store(int* to, int value) { *to = value; }

namespace {

int g_failures = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "own_hip: not so: %s\n", what);
  ++g_failures;
}

}  // namespace

int main() {
  expect(dlsym(RTLD_DEFAULT, "hipMalloc") == own_hip_malloc_of_c(), "hipMalloc of the process is the program's");
  expect(dlsym(RTLD_DEFAULT, "_Z9hipMallocPPvm") == own_hip_malloc_of_cxx(), "so is the one with a name of C++");

  int* at = nullptr;
  expect(hipMalloc(&at, sizeof *at) == hipSuccess && at != nullptr, "memory of the host platform");
  if (at == nullptr) return 1;
  *at = -1;
  hipLaunchKernelGGL(store, dim3(1), dim3(1), 0, nullptr, at, 42);
  expect(hipDeviceSynchronize() == hipSuccess && *at == 42, "a kernel ran");
  expect(hipFree(at) == hipSuccess, "its memory is freed");

  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = "local";
  attr.heap_bytes = 1 << 20;
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  void *block = nullptr, *device = nullptr;
  expect(xio_init(&attr, &world) == XIO_OK && xio_ctx_create(world, nullptr, &ctx) == XIO_OK, "a world");
  expect(xio_malloc(world, 64, &block) == XIO_OK && xio_free(world, block) == XIO_OK, "symmetric memory");
  expect(xio_mem_alloc(XIO_MEM_DEVICE_FINE_GRAINED, 4096, nullptr, &device) == XIO_OK && xio_mem_free(device) == XIO_OK,
         "memory of the device");
  expect(xio_ctx_destroy(world, ctx) == XIO_OK && xio_finalize(world) == XIO_OK, "the world's end");

  expect(own_hip_calls() == 0, "nobody called the program's own HIP");
  void* mine = nullptr;
  expect(own_hip_call(&mine) == 77 && own_hip_calls() == 1 && mine == nullptr, "the program calls its own HIP");
  return g_failures == 0 ? 0 : 1;
}
