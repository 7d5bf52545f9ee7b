// SPDX-License-Identifier: MIT
// A kernel that waits for what never comes ends with XIO_ERR_TIMEOUT, in time; the process, its ctx and the next
// kernels go on as if nothing had been.
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
  const int status = rig::result_of(work, 1, 1, t.ctx, in, out, signal, k_words * sizeof *in, t.right);
  rig::expect_status(status, XIO_OK, "a put");
  t.barrier();
  const std::vector<uint64_t> got = rig::team::read(in, k_words);
  size_t wrong = 0;
  for (size_t i = 0; i < k_words; ++i) wrong += got[i] != word(t.left, i);
  rig::expect(wrong == 0, "a put in round %llu: %zu words are wrong", rig::ull(round), wrong);
  rig::expect(rig::team::read(signal, 1)[0] == round, "the signal of round %llu", rig::ull(round));
  t.barrier();
}

__global__ void just_sync(xio_ctx_t ctx, int* status) { *status = xio_sync_all(ctx); }

// The host reads this of the ctx's last failure, a wait on a word of the heap or a barrier.
void expect_sentence(const rig::team& t, const char* begin, const char* part) {
  const xio_error_info_t info = rig::error_of(t);
  rig::expect_status(info.status, XIO_ERR_TIMEOUT, "what the host reads");
  rig::expect(
      std::strncmp(info.sentence, begin, std::strlen(begin)) == 0 && std::strstr(info.sentence, part) != nullptr,
      "the host reads \"%s\"", info.sentence);
}

void expect_time_out(const rig::team& t, const uint64_t* never) {
  const rig::device_array<int> status(k_groups * k_threads);
  const rig::device_array<uint64_t> usual(1), unused(1);
  RUN(set_limit, 1, 1, t.ctx, k_limit_ms, usual.data());
  const auto begin = rig::clock_type::now();
  RUN(wait_in_vain, k_groups, k_threads, t.ctx, never, status.data());
  const double took = rig::ms_since(begin);
  rig::expect(took >= static_cast<double>(k_limit_ms), "the wait ended after %.0f ms", took);
  RUN(set_limit, 1, 1, t.ctx, usual.get()[0], unused.data());
  const std::vector<int> got = status.get();
  for (size_t i = 0; i < got.size(); ++i)
    rig::expect_status(got[i], i == 3 ? XIO_OK : XIO_ERR_TIMEOUT, "a wait in vain");
  expect_sentence(t, "xio_signal_wait_until: the word at ", " did not become == 77 within XIO_TIMEOUT_MS, it held 0;");
}

// Waits of each kind, one after the other; none of them can end well.
__global__ void wait_each(xio_ctx_t ctx, const int* words, uint32_t* packet, int which, int* status) {
  size_t index = 0, indices[4] = {};
  const uint64_t* word = reinterpret_cast<const uint64_t*>(words);
  switch (which) {
    case 0: *status = xio_wait_until(ctx, words, XIO_CMP_LT, -5); break;
    case 1: *status = xio_wait_until_all(ctx, words, 4, nullptr, XIO_CMP_GE, 0x10); break;
    case 2: *status = xio_wait_until_any(ctx, words, 4, nullptr, XIO_CMP_NE, 0, &index); break;
    case 3: *status = xio_wait_until_some(ctx, words, 4, indices, nullptr, XIO_CMP_GT, 0, &index); break;
    case 4: *status = xio_wait_counter(ctx, word, 9); break;
    case 5: *status = xio_wait_packet(ctx, packet, word, 4, 5); break;
    default: break;
  }
}

// Expects the text of xio_ctx_error for each, and that quiet reports none of it: the caller had the status.
void expect_named(const rig::team& t, const int* never) {
  const struct {
    const char *call, *words;
  } named[] = {
      {"xio_wait_until: the word at ", "did not become < -5 within XIO_TIMEOUT_MS, it held 0;"},
      {"xio_wait_until_all: 4 words from ", "did not become >= 16 within"},
      {"xio_wait_until_any: 4 words from ", "did not become != 0 within"},
      {"xio_wait_until_some: 4 words from ", "did not become > 0 within"},
      {"xio_wait_counter: the word at ", "did not become >= 9 within"},
      {"xio_wait_packet: the packet of flag 5 at ", "has not come within XIO_TIMEOUT_MS"},
  };
  const rig::device_array<uint32_t> packet(1);
  const rig::device_array<uint64_t> usual(1), unused(1);
  RUN(set_limit, 1, 1, t.ctx, k_limit_ms, usual.data());
  int which = 0;
  for (const auto& n : named) {
    rig::expect_status(rig::result_of(wait_each, 1, 1, t.ctx, never, packet.data(), which++), XIO_ERR_TIMEOUT, n.call);
    expect_sentence(t, n.call, n.words);
  }
  RUN(set_limit, 1, 1, t.ctx, usual.get()[0], unused.data());
  rig::expect_quiet(t.ctx, XIO_OK, "quiet after waits in vain");
}

// PE 0 comes to a barrier alone, and reads which PE is missing. The other comes when that is over.
void expect_alone(const rig::team& t) {
  int status = XIO_OK;
  const rig::device_array<uint64_t> usual(1), unused(1);
  if (t.me == 0) {
    RUN(set_limit, 1, 1, t.ctx, k_limit_ms, usual.data());
    status = rig::result_of(just_sync, 1, 1, t.ctx);
    rig::expect_status(status, XIO_ERR_TIMEOUT, "a sync alone");
    expect_sentence(t, "a barrier or sync of all: PE 1 has not come to number ", " within XIO_TIMEOUT_MS, ");
    RUN(set_limit, 1, 1, t.ctx, usual.get()[0], unused.data());
  }
  t.barrier();
  if (t.me == 1) status = rig::result_of(just_sync, 1, 1, t.ctx);
  rig::expect_status(status, t.me == 0 ? XIO_ERR_TIMEOUT : XIO_OK, "the other's");
  t.barrier();
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
  expect_named(t, reinterpret_cast<const int*>(t.symmetric<uint64_t>(2)));
  if (t.n == 2) expect_alone(t);
  expect_work_done(t, in, out, signal, 3);
  MUST(hipGetLastError());
  return rig::verdict("timeout", t);
}
