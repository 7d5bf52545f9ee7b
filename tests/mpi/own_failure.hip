// SPDX-License-Identifier: MIT
// Waits on words see that a queue of their own ctx has failed, and return that failure and not a timeout: the peer may
// be waiting for the op that failed. XIO_MODEL_FAULTS makes ops of PE 0's queues fail (own_failure.sh says which).
//   own_failure rdma              the fourth op of the ctx's queue pair fails
//   own_failure nvme DIRECTORY    the drive loses its first command
#include "rig.hpp"

namespace {

constexpr int k_kinds = 8;
// The contract is 10 ms; a machine that runs many things at once may take its time. The world's timeout is far away.
constexpr long long k_most_ms = 2000;

// The wait of that kind, on words that nobody changes.
__device__ xio_status_t wait_for(const xio_ctx_t& ctx, int kind, const uint64_t* words, uint32_t* into) {
  size_t index = 0, indices[2] = {};
  switch (kind) {
    case 0: return xio_wait_until(ctx, words, XIO_CMP_EQ, 1);
    case 1: return xio_wait_until_all(ctx, words, 2, nullptr, XIO_CMP_EQ, 1);
    case 2: return xio_wait_until_any(ctx, words, 2, nullptr, XIO_CMP_EQ, 1, &index);
    case 3: return xio_wait_until_some(ctx, words, 2, indices, nullptr, XIO_CMP_EQ, 1, &index);
    case 4: return xio_signal_wait_until(ctx, words, XIO_CMP_EQ, 1);
    case 5: return xio_wait_counter(ctx, words, 1);
    case 6: return xio_wait_packet(ctx, into, words, 8, 1);
    default: return xio_imm_wait(ctx, into, xio_my_pe(ctx));
  }
}

// Posts what fails, and waits at once: nothing else fetches its completion.
__global__ void put_and_wait(xio_ctx_t ctx, uint64_t* to, const uint64_t* never, uint32_t* into, int kind,
                             int* status) {
  const uint32_t lane = threadIdx.x;
  if (lane == 0)
    for (uint64_t i = 0; i < 8; ++i) (void)xio_put_nbi(ctx, to, to + 8, 8, 1);
  status[lane] = wait_for(ctx, kind, never, into + 2 * lane);
}

// A command that never completes stops its queue when the wait for it ends, after `ms`. The wait for a word has all the
// time of the world, and need not take it.
__global__ void read_and_wait(xio_ctx_t ctx, xio_storage_t storage, void* memory, const uint64_t* never, uint32_t* into,
                              uint64_t ms, int* status) {
  xio::dev::world_view& w = *xio::dev::ctx_of(ctx).world;
  const uint64_t usual = w.timeout_ticks;
  w.timeout_ticks = ms * w.ticks_per_ms;
  status[0] = xio_read(ctx, memory, storage, 0, 512);
  w.timeout_ticks = usual;
  status[1] = wait_for(ctx, 0, never, into);
}

// A word that comes is seen though a queue has failed.
__global__ void wait_for_what_is_there(xio_ctx_t ctx, const uint64_t* there, int* status) {
  *status = xio_wait_until(ctx, there, XIO_CMP_EQ, 4711);
}

void expect_failure(const rig::team& t, xio_ctx_t ctx, const char* engine, long long took) {
  rig::expect(took <= k_most_ms, "the wait took %lld ms", took);
  const xio_error_info_t info = rig::error_of(t.world(), ctx);
  rig::expect(std::strcmp(info.engine, engine) == 0, "the host reads of %s: \"%s\"", info.engine, info.sentence);
}

void by_rdma(const rig::team& t) {
  auto* to = t.symmetric<uint64_t>(16);
  const auto* never = t.symmetric<uint64_t>(8);
  auto* there = t.symmetric<uint64_t>(1);
  rig::team::write(there, std::vector<uint64_t>{4711});
  constexpr unsigned lanes = 70;
  const rig::device_array<int> status(lanes);
  const rig::device_array<uint32_t> into(2 * lanes);
  for (int kind = 0; kind < k_kinds; ++kind) {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.immediates = 16;
    xio_ctx_t ctx{};
    MUST(xio_ctx_create(t.world(), &attr, &ctx));
    const unsigned n = kind % 2 == 0 ? 1 : lanes;
    if (t.me == 0) {
      const auto begin = rig::clock_type::now();
      RUN(put_and_wait, 1, n, ctx, to, never, into.data(), kind, status.data());
      const auto took = static_cast<long long>(rig::ms_since(begin));
      for (unsigned i = 0; i < n; ++i)
        rig::expect_status(status.get()[i], XIO_ERR_TRANSPORT, "a wait beside a failure");
      expect_failure(t, ctx, "rdma", took);
      std::printf("kind %d: %lld ms\n", kind, took);
      rig::expect_status(rig::result_of(wait_for_what_is_there, 1, 1, ctx, there), XIO_OK, "a wait for what is there");
    }
    t.barrier();
    MUST(xio_ctx_destroy(t.world(), ctx));
  }
}

void by_drive(const rig::team& t, const std::string& directory) {
  auto* memory = t.symmetric<unsigned char>(4096);
  const auto* never = t.symmetric<uint64_t>(8);
  if (t.me == 0) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = XIO_STORAGE_CREATE;
    attr.bytes = 1 << 20;
    xio_storage_t storage{};
    MUST(xio_storage_open(t.world(), ("file:" + directory + "/loses.img").c_str(), &attr, &storage));
    const rig::device_array<int> status(2);
    const rig::device_array<uint32_t> into(2);
    const auto begin = rig::clock_type::now();
    RUN(read_and_wait, 1, 1, t.ctx, storage, memory, never, into.data(), uint64_t{200}, status.data());
    const auto took = static_cast<long long>(rig::ms_since(begin));
    for (const int got : status.get())
      rig::expect_status(got, XIO_ERR_TIMEOUT, "a read that is lost, and a wait beside it");
    expect_failure(t, t.ctx, "nvme", took);
    MUST(xio_storage_close(t.world(), storage));
  }
  t.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what != "rdma" && (what != "nvme" || argc != 3)) {
    std::fprintf(stderr, "usage: own_failure rdma | own_failure nvme DIRECTORY\n");
    return 2;
  }
  const rig::team t;
  if (what == "rdma") {
    by_rdma(t);
  } else {
    by_drive(t, argv[2]);
  }
  return rig::verdict("own_failure", t, false);
}
