// SPDX-License-Identifier: MIT
// What a GPU may go on seeing as it was: each kernel first brings the old value into its caches, and then the call must
// make it fresh (docs/ordering.md, store buffering), or find what the host has changed meanwhile.
#include "rig.hpp"

namespace {

using rig::clock_type;

// How long an L1 of the software AMD GPU keeps what it has is chosen once for a workgroup, so kernels are many.
constexpr uint64_t k_kernels = 8, k_turns = 4;

struct board {
  alignas(128) uint64_t x;
  alignas(128) uint64_t arrived;
  alignas(128) uint64_t saw[k_kernels * k_turns + 1];  // of a turn: 1 where the other PE missed this one's word, else 2
};

// An ordinary load, for which the call before has to acquire.
__device__ inline uint64_t look(const uint64_t* p) { return *p; }

// store buffering, by ordinary loads of words that the caches have. The PEs synchronise by volatile words, which
// acquire nothing. `theirs` is the board of the other PE, an even one's being the next, as it is mapped here.
__global__ void store_buffering(xio_ctx_t ctx, board* b, board* theirs, int other, uint64_t first, uint32_t* both,
                                int* bad) {
  for (uint64_t turn = first; turn < first + k_turns; ++turn) {
    if (look(&b->x) >= turn) *bad = 1;
    *static_cast<volatile uint64_t*>(&theirs->arrived) = turn;
    const xio_deadline_t end = xio_deadline(ctx);
    while (*static_cast<volatile uint64_t*>(&b->arrived) < turn && xio_pause_until(end)) {
    }
    if (xio_p(ctx, &b->x, turn, other) != XIO_OK || xio_quiet(ctx) != XIO_OK) *bad = 2;
    const uint64_t missed = look(&b->x) < turn ? 1 : 2;
    if (xio_p(ctx, &b->saw[turn], missed, other) != XIO_OK || xio_barrier_all(ctx) != XIO_OK) *bad = 3;
    if (missed == 1 && look(&b->saw[turn]) == 1) *both += 1;
  }
}

void quiet_then_load(const rig::team& t) {
  auto* b = t.symmetric<board>(1);
  const int other = t.me ^ 1;
  const rig::device_array<uint32_t> both(1);
  const rig::device_array<int> bad(1);
  if (!rig::expect(t.n % 2 == 0, "stale is for pairs of PEs")) return;
  t.barrier();
  auto* theirs = static_cast<board*>(xio_ptr(t.world(), b, other));
  for (uint64_t i = 0; i < k_kernels; ++i)
    RUN(store_buffering, 1, 1, t.ctx, b, theirs, other, 1 + i * k_turns, both.data(), bad.data());
  t.barrier();
  rig::expect(bad.get()[0] == 0, "store buffering by ordinary loads: step %d failed", bad.get()[0]);
  rig::expect(both.get()[0] == 0, "store buffering by ordinary loads: both missed %u times", both.get()[0]);
}

// --- Memory that is registered while a kernel runs ------------------------------------------------------

constexpr uint32_t k_steps = 7;   // of the host: the memory is registered in those of odd numbers
constexpr size_t k_bytes = 4096;  // more than an entry holds, so that a key is needed

struct talk {
  uint32_t step, done;
  int status[k_steps];
};

// A put in each step of the host. In between the kernel calls nothing else.
__global__ void put_meanwhile(xio_ctx_t ctx, unsigned char* to, const unsigned char* from, int pe,
                              volatile talk* host) {
  for (uint32_t i = 0; i < k_steps; ++i) {
    const xio_deadline_t end = xio_deadline(ctx);
    while (host->step <= i && xio_pause_until(end)) {
    }
    int status = XIO_OK;
    do {
      status = xio_put(ctx, to, from, k_bytes, pe);
    } while (i % 2 == 1 && status == XIO_ERR_NOT_REGISTERED && xio_pause_until(end));
    host->status[i] = status;
    host->done = i + 1;
  }
  (void)xio_quiet(ctx);
}

void registered_meanwhile(const rig::team& t) {
  auto* to = t.symmetric<unsigned char>(k_bytes);
  const rig::device_array<unsigned char> from(k_bytes);
  void* shared = nullptr;
  MUST(hipHostMalloc(&shared, sizeof(talk), 0));
  auto* host = static_cast<volatile talk*>(shared);
  hipStream_t stream;
  MUST(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  const auto end = clock_type::now() + std::chrono::seconds(60);
  for (uint64_t kernel = 0; kernel < k_kernels; ++kernel) {
    std::memset(shared, 0, sizeof(talk));
    t.barrier();
    hipLaunchKernelGGL(put_meanwhile, dim3(1), dim3(1), 0, stream, t.ctx, to, from.data(), t.right, host);
    MUST(hipGetLastError());
    for (uint32_t i = 0; i < k_steps; ++i) {
      if (i % 2 == 1) MUST(xio_mem_register(t.world(), from.data(), k_bytes));
      if (i % 2 == 0 && i != 0) MUST(xio_mem_unregister(t.world(), from.data()));
      host->step = i + 1;
      while (host->done <= i && clock_type::now() < end) {
      }
    }
    MUST(hipStreamSynchronize(stream));
    for (uint32_t i = 0; i < k_steps; ++i)
      rig::expect_status(host->status[i], i % 2 == 1 ? XIO_OK : XIO_ERR_NOT_REGISTERED,
                         "a put of memory that is registered, or not, while the kernel runs");
    t.barrier();
  }
  MUST(hipStreamDestroy(stream));
  MUST(hipHostFree(shared));
}

}  // namespace

int main() {
  const rig::team t;
  rig::limit_waits(t);
  if (t.route == "direct") quiet_then_load(t);
  if (t.route == "rdma") registered_meanwhile(t);
  return rig::verdict("stale", t, t.route != "sdma");  // by which there is nothing here
}
