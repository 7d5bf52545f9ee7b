// SPDX-License-Identifier: MIT
// A kernel that waits for what never comes ends with XIO_ERR_TIMEOUT, in time; the process, its ctx and the next
// kernels go on as if nothing had been.
#include <chrono>
#include <cstdint>
#include <vector>

#include "rig.hpp"

namespace {

constexpr uint64_t k_limit_ms = 200;
constexpr unsigned k_groups = 2, k_threads = 70;

// The device's deadline alone: the host's exchanges of the same world keep their time.
__global__ void set_limit(xio_ctx_t ctx, uint64_t ms, uint64_t* before) {
  xio::dev::world_view& w = *xio::dev::ctx_of(ctx).world;
  *before = w.timeout_ticks / w.ticks_per_ms;
  w.timeout_ticks = ms * w.ticks_per_ms;
}

// All but one of the callers wait for a word that nobody writes.
__global__ void wait_in_vain(xio_ctx_t ctx, const uint64_t* word, int* status) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  status[i] = i == 3 ? XIO_OK : xio_signal_wait_until(ctx, word, XIO_CMP_EQ, 77);
}

__global__ void work(xio_ctx_t ctx, uint64_t* in, const uint64_t* out, uint64_t* signal, size_t bytes, int to,
                     int* status) {
  *status = xio_put_signal(ctx, in, out, bytes, signal, 1, XIO_SIGNAL_ADD, to);
  const xio_status_t quiet = xio_quiet(ctx);
  if (*status == XIO_OK) *status = quiet;
}

void expect_work_done(const rig::team& t, uint64_t* in, uint64_t* out, uint64_t* signal, uint64_t round) {
  constexpr size_t k_words = 600;
  std::vector<uint64_t> words(k_words);
  const auto word = [&](int pe, size_t i) { return round << 32 | static_cast<uint64_t>(pe) << 16 | i; };
  for (size_t i = 0; i < k_words; ++i) words[i] = word(t.me, i);
  rig::team::write(out, words);
  t.barrier();
  const rig::device_array<int> status(1);
  RUN(work, 1, 1, t.ctx, in, out, signal, k_words * sizeof *in, (t.me + 1) % t.n, status.data());
  rig::expect_status(static_cast<xio_status_t>(status.get()[0]), XIO_OK, "a put");
  t.barrier();
  const std::vector<uint64_t> got = rig::team::read(in, k_words);
  size_t wrong = 0;
  for (size_t i = 0; i < k_words; ++i) wrong += got[i] != word((t.me + t.n - 1) % t.n, i);
  rig::expect(wrong == 0, "a put in round %llu: %zu words are wrong", static_cast<unsigned long long>(round), wrong);
  rig::expect(rig::team::read(signal, 1)[0] == round, "the signal of round %llu",
              static_cast<unsigned long long>(round));
  t.barrier();
}

void expect_time_out(const rig::team& t, const uint64_t* never) {
  const rig::device_array<int> status(k_groups * k_threads);
  const rig::device_array<uint64_t> usual(1), unused(1);
  RUN(set_limit, 1, 1, t.ctx, k_limit_ms, usual.data());
  const auto begin = std::chrono::steady_clock::now();
  RUN(wait_in_vain, k_groups, k_threads, t.ctx, never, status.data());
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  rig::expect(took.count() >= static_cast<long long>(k_limit_ms), "the wait ended after %lld ms",
              static_cast<long long>(took.count()));
  RUN(set_limit, 1, 1, t.ctx, usual.get()[0], unused.data());
  const std::vector<int> got = status.get();
  for (size_t i = 0; i < got.size(); ++i)
    rig::expect_status(static_cast<xio_status_t>(got[i]), i == 3 ? XIO_OK : XIO_ERR_TIMEOUT, "a wait in vain");
}

}  // namespace

int main() {
  const rig::team t;
  auto* in = t.symmetric<uint64_t>(1024);
  auto* out = t.symmetric<uint64_t>(1024);
  auto* signal = t.symmetric<uint64_t>(1);
  const auto* never = t.symmetric<uint64_t>(1);
  for (uint64_t round = 1; round <= 2; ++round) {
    expect_work_done(t, in, out, signal, round);
    expect_time_out(t, never);
  }
  expect_work_done(t, in, out, signal, 3);
  MUST(hipGetLastError());
  return rig::verdict("timeout", t);
}
