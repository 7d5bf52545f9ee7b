// SPDX-License-Identifier: MIT
#include "memory_ops.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace xio::test {
namespace {

__global__ void put_get(xio_ctx_t ctx, unsigned char* symmetric, unsigned char* from, unsigned char* to,
                        xio_status_t* statuses) {
  statuses[0] = xio_put(ctx, symmetric, from, k_part, 0);
  statuses[1] = xio_quiet(ctx);
  statuses[2] = xio_get(ctx, to, symmetric, k_part, 0);
  statuses[3] = xio_quiet(ctx);
}

__global__ void write_read(xio_ctx_t ctx, xio_storage_t storage, unsigned char* from, unsigned char* to,
                           xio_status_t* statuses) {
  statuses[0] = xio_write(ctx, from, storage, 8192, k_part);
  statuses[1] = xio_quiet(ctx);
  statuses[2] = xio_read(ctx, to, storage, 8192, k_part);
  statuses[3] = xio_quiet(ctx);
}

}  // namespace

bool put_and_get(xio_ctx_t ctx, unsigned char* symmetric, unsigned char* from, unsigned char* to,
                 xio_status_t* statuses) {
  hipLaunchKernelGGL(put_get, dim3(1), dim3(1), 0, nullptr, ctx, symmetric, from, to, statuses);
  return hipDeviceSynchronize() == hipSuccess;
}

bool write_and_read(xio_ctx_t ctx, xio_storage_t storage, unsigned char* from, unsigned char* to,
                    xio_status_t* statuses) {
  hipLaunchKernelGGL(write_read, dim3(1), dim3(1), 0, nullptr, ctx, storage, from, to, statuses);
  return hipDeviceSynchronize() == hipSuccess;
}

}  // namespace xio::test
