// SPDX-License-Identifier: MIT
// One of two sources of a program, as two_sources.sh compiles it: with a kernel of its own, and all that the device
// functions bring along.
#include <xio/hip.h>
#include <xio/xio_device.hpp>

__global__ void KERNEL(xio_ctx_t ctx, char* mine, char* symmetric, uint64_t* word, xio_storage_t storage) {
  xio_put(ctx, symmetric, mine, 1 << 20, 1);
  xio_get(ctx, mine, symmetric, 1 << 20, 1);
  xio_get_wg(ctx, mine, symmetric, 1 << 20, 1);
  xio_put_signal(ctx, symmetric, mine, 64, word, 1, XIO_SIGNAL_ADD, 1);
  xio_atomic_add<uint64_t>(ctx, word, 1, 1);
  xio_read(ctx, mine, storage, 0, 4096);
  xio_barrier_all(ctx);
}
