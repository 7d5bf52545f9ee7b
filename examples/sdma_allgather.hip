// SPDX-License-Identifier: MIT
// sdma_allgather: every PE's copy engines bring its block to every other PE of the machine.
//
//   mpirun -np 4 examples/sdma_allgather [BYTES]        (or: xiorun -n 4 examples/sdma_allgather)
//
// The lesson: a workgroup for each peer posts one put_signal and is free at once; the signal follows the data on the
// same queue, so a PE that sees it sees the block. No kernel copies a byte, nor does a processor where the engines are
// hardware.
#include <vector>

#include "arguments.hpp"

namespace {

struct job {
  xio_ctx_t ctx;
  unsigned char* blocks;  // symmetric: n_pes blocks, mine is the me-th
  uint64_t* arrived;      // symmetric: a signal for each sender
  size_t bytes;           // of one block
  int* status;            // host memory, one for each workgroup
};

// Workgroup i serves the peer that is i + 1 places behind us, so that not all send to one PE at the same time.
__global__ void allgather(job j) {
  const int n = xio_n_pes(j.ctx), me = xio_my_pe(j.ctx);
  const int peer = (me + 1 + static_cast<int>(blockIdx.x)) % n;
  unsigned char* mine = j.blocks + static_cast<size_t>(me) * j.bytes;
  if (threadIdx.x != 0) return;
  xio_put_signal_nbi(j.ctx, mine, mine, j.bytes, &j.arrived[me], 1, XIO_SIGNAL_SET, peer);
  xio_status_t s = xio_signal_wait_until(j.ctx, &j.arrived[peer], XIO_CMP_GE, 1);
  // Our own block has left, too, before the host may touch it.
  if (s == XIO_OK) s = xio_quiet(j.ctx);
  j.status[blockIdx.x] = s;
}

// Byte `at` of a PE's block: a step of a linear congruential generator, so that a block in the wrong place shows.
unsigned char pattern(int pe, size_t at) {
  const uint64_t x = (static_cast<uint64_t>(pe) << 40 | at) * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned char>(x >> 56);
}

void* symmetric(xio_world_t* world, size_t bytes) {
  void* block = nullptr;
  check(xio_calloc(world, 1, bytes, &block), "xio_calloc");
  return block;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "sdma_allgather [BYTES]");
  const size_t bytes = given.number("BYTES", 1000003, 1, 1 << 30);
  given.end();
  xio_world_t* world = nullptr;
  check(xio_init(nullptr, &world), "xio_init");
  const int n = xio_n_pes(world), me = xio_my_pe(world);
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_SDMA;
  job j{};
  check(xio_ctx_create(world, &attr, &j.ctx), "xio_ctx_create");
  j.bytes = bytes;
  j.blocks = static_cast<unsigned char*>(symmetric(world, bytes * static_cast<size_t>(n)));
  j.arrived = static_cast<uint64_t*>(symmetric(world, sizeof(uint64_t) * static_cast<size_t>(n)));
  const int peers = n > 1 ? n - 1 : 1;
  check(hipHostMalloc(reinterpret_cast<void**>(&j.status), sizeof(int) * static_cast<size_t>(peers), 0),
        "hipHostMalloc");

  std::vector<unsigned char> block(bytes);
  for (size_t i = 0; i < bytes; ++i) block[i] = pattern(me, i);
  unsigned char* mine = j.blocks + static_cast<size_t>(me) * bytes;
  check(hipMemcpy(mine, block.data(), bytes, hipMemcpyHostToDevice), "hipMemcpy");
  check(xio_host_barrier(world), "xio_host_barrier");

  hipLaunchKernelGGL(allgather, dim3(static_cast<unsigned>(peers)), dim3(64), 0, nullptr, j);
  check(hipDeviceSynchronize(), "allgather");
  for (int i = 0; i < peers; ++i) check(static_cast<xio_status_t>(j.status[i]), "allgather");

  size_t wrong = 0;
  for (int pe = 0; pe < n; ++pe) {
    check(hipMemcpy(block.data(), j.blocks + static_cast<size_t>(pe) * bytes, bytes, hipMemcpyDeviceToHost),
          "hipMemcpy");
    for (size_t i = 0; i < bytes; ++i) wrong += block[i] != pattern(pe, i) ? 1 : 0;
  }
  std::printf("PE %d of %d: %zu blocks of %zu bytes, %zu bytes wrong\n", me, n, static_cast<size_t>(n), bytes, wrong);
  check(xio_host_barrier(world), "xio_host_barrier");
  (void)hipHostFree(j.status);
  check(xio_finalize(world), "xio_finalize");
  return ended(wrong == 0 ? 0 : 1);
}
