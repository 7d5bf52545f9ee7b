// SPDX-License-Identifier: MIT
// Calls on a stream (xio/stream.h): what each moves, by sizes, into poisoned memory; what the host's books refuse; and
// failures, of which the first ends all later calls; replays of graphs. `stream dead`: the last PE is not there any
// more. `stream dies`: it ends in the middle of replays.
#include <xio/stream.h>

#include <cstdint>
#include <vector>

#include "stream_host.hpp"

namespace {

using namespace stream_test;

// --- Threads -----------------------------------------------------------------------------------------

// Each thread has a stream and a part of dst, and one of them makes and ends contexts meanwhile.
void give_by_threads(const place& p) {
  constexpr size_t k_threads = 4, k_puts = 40, k_bytes = 200;
  rig::team::write(p.dst, bytes_t(p.room(), rig::k_poison));
  p.t.barrier();
  std::vector<std::thread> threads;
  std::vector<int> wrong(k_threads);
  int device = 0;
  MUST(hipGetDevice(&device));
  for (size_t k = 0; k < k_threads; ++k)
    threads.emplace_back([&, k] {
      hipStream_t own;
      MUST(hipSetDevice(device));
      MUST(hipStreamCreateWithFlags(&own, hipStreamNonBlocking));
      for (size_t i = 0; i < k_puts; ++i) {
        const size_t at = (k * k_puts + i) * k_bytes;
        wrong[k] += xio_put_on_stream(p.t.world(), p.t.ctx, p.dst + at, p.src + at, k_bytes, p.next(), own, nullptr);
        wrong[k] += xio_put_on_stream(p.t.world(), p.t.ctx, nullptr, p.src, 8, 0, own, nullptr) != XIO_ERR_ARG;
      }
      wrong[k] += xio_quiet_on_stream(p.t.world(), p.t.ctx, own, nullptr);
      MUST(hipStreamSynchronize(own));
      MUST(hipStreamDestroy(own));
    });
  for (int i = 0; i < 3; ++i) {
    xio_ctx_t other;
    MUST(xio_ctx_create(p.t.world(), nullptr, &other));
    MUST(xio_ctx_destroy(p.t.world(), other));
  }
  for (std::thread& one : threads) one.join();
  for (const int w : wrong) rig::expect(w == 0, "a thread's puts: %d", w);
  p.t.barrier();
  bytes_t wanted = place::block(p.last(), 0, k_threads * k_puts * k_bytes);
  wanted.resize(p.room(), rig::k_poison);
  rig::expect_same(rig::team::read(p.dst, p.room()), wanted, "puts of four threads");
}

// --- Words that kernels get --------------------------------------------------------------------------

__global__ void barrier_by_words(const xio_ctx_t* ctx, const xio_team_t* team, int* status) {
  const xio_ctx_t c = *ctx;
  const xio_team_t t = *team;
  *status = xio_team_my_pe(t) == xio_my_pe(c) ? xio_team_barrier(c, t) : XIO_ERR_INTERNAL;
}

void pass_words(const place& p) {
  const xio_ctx_t* ctx = nullptr;
  const xio_team_t* team = nullptr;
  MUST(xio_ctx_device(p.t.world(), p.t.ctx, &ctx));
  MUST(xio_team_device(p.t.world(), p.team, &team));
  const int status = rig::result_of(barrier_by_words, 1, 1, ctx, team);
  rig::expect_status(status, XIO_OK, "a ctx and a team as words");
  rig::expect_status(xio_team_device(p.t.world(), xio_team_t{}, &team), XIO_ERR_STATE, "the empty team as a word");
}

// --- Graphs ------------------------------------------------------------------------------------------

constexpr size_t k_words = 700;
constexpr uint64_t k_sent = 1000;

// The words of one stream's graph.
struct loop_words {
  int64_t *mine, *sums, *all, *from_last;  // symmetric: 1, 1, a word of each PE, k_words
  uint64_t* sig;
  int* bad;
};

__global__ void prepare_round(loop_words w, int me) {
  ++*w.mine;
  for (size_t i = threadIdx.x; i < k_words; i += blockDim.x) w.from_last[k_words + i] = *w.mine * (me + 1);
}
// One replay later than prepare_round every PE has the same number.
__global__ void judge_round(loop_words w, int n, int last) {
  const int64_t round = *w.mine;
  if (*w.sums != round * n) ++*w.bad;
  for (int pe = 0; pe < n; ++pe)
    if (w.all[pe] != round) ++*w.bad;
  for (size_t i = 0; i < k_words; ++i)
    if (w.from_last[i] != round * (last + 1)) ++*w.bad;
}

// A graph that does the same with another number in every replay. barriers: of all PEs, which one stream at a time
// makes.
hipGraphExec_t capture_loop(const place& p, const loop_words& w, bool barriers) {
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  MUST(hipStreamBeginCapture(p.stream, hipStreamCaptureModeGlobal));
  hipLaunchKernelGGL(prepare_round, dim3(1), dim3(1), 0, p.stream, w, p.t.me);
  GIVE(xio_reduce_on_stream, p.team, XIO_REDUCE_SUM, XIO_INT64, w.sums, w.mine, 1);
  GIVE(xio_fcollect_on_stream, p.team, w.all, w.mine, sizeof *w.mine);
  GIVE(xio_put_signal_on_stream, w.from_last, w.from_last + k_words, k_words * sizeof *w.from_last, w.sig, k_sent,
       XIO_SIGNAL_ADD, p.next());
  GIVE(xio_signal_take_on_stream, w.sig, k_sent);
  hipLaunchKernelGGL(judge_round, dim3(1), dim3(1), 0, p.stream, w, p.t.n, p.last());
  if (barriers)
    GIVE_ALONE(xio_barrier_all_on_stream);
  else
    GIVE(xio_team_barrier_on_stream, p.team);
  expect_first(p, XIO_OK, "in a capture");
  MUST(hipStreamEndCapture(p.stream, &graph));
  MUST(hipGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(hipGraphDestroy(graph));
  return exec;
}

loop_words words_of(const place& p) {
  loop_words w{p.t.symmetric<int64_t>(1),
               p.t.symmetric<int64_t>(1),
               p.t.symmetric<int64_t>(static_cast<size_t>(p.t.n)),
               p.t.symmetric<int64_t>(2 * k_words),
               p.t.symmetric<uint64_t>(1),
               nullptr};
  MUST(hipHostMalloc(&w.bad, sizeof *w.bad, 0));
  *w.bad = 0;
  return w;
}

// Two graphs in two streams, each on a channel of its own. `leave_at`: the last PE ends in the middle.
void replay(place& p, int rounds, int leave_at) {
  place q = p;
  q.team = xio_team_channel(p.team, 1);
  MUST(hipStreamCreateWithFlags(&q.stream, hipStreamNonBlocking));
  q.attr.status = nullptr;
  p.attr.timeout_ms = q.attr.timeout_ms = leave_at >= 0 ? 500 : 0;
  const loop_words mine = words_of(p), other = words_of(q);
  const hipGraphExec_t first = capture_loop(p, mine, true), second = capture_loop(q, other, false);
  p.t.barrier();
  const double took = seconds_of([&] {
    for (int i = 0; i < rounds; ++i) {
      if (i == leave_at && p.t.me == p.t.n - 1) _exit(0);
      MUST(hipGraphLaunch(first, p.stream));
      MUST(hipGraphLaunch(second, q.stream));
    }
    p.sync();
    q.sync();
  });
  if (leave_at >= 0) {
    rig::expect(took < 10, "%d replays with a dead PE took %.2f s", rounds, took);
    xio_status_t found = XIO_OK;
    MUST(xio_ctx_failed(p.t.world(), p.t.ctx, &found));
    rig::expect(found == XIO_ERR_TIMEOUT || found == XIO_ERR_TRANSPORT, "with a dead PE: %s", xio_status_name(found));
    rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), found, "the last call");
    return;
  }
  expect_first(p, XIO_OK, "replays");
  rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), XIO_OK, "the last call");
  for (const loop_words& w : {mine, other}) {
    rig::expect(*w.bad == 0, "%d words of %d replays are wrong", *w.bad, rounds);
    rig::expect(rig::team::read(w.mine, 1)[0] == rounds, "%d replays", rounds);
  }
  p.t.barrier();
  MUST(hipGraphExecDestroy(first));
  MUST(hipGraphExecDestroy(second));
  MUST(hipStreamDestroy(q.stream));
}

// The last PE ends without a word: in front of calls, or in the middle of replays.
int go_on_alone(place& p, bool in_graphs) {
  p.t.barrier();
  if (p.t.me == p.t.n - 1 && !in_graphs) _exit(0);
  if (in_graphs)
    replay(p, 200, 50);
  else
    fail_once(p, "a barrier with a dead PE", true, [&] { GIVE_ALONE(xio_barrier_all_on_stream); });
  std::printf("stream dead: PE %d: %d failed\n", p.t.me, rig::failures);
  std::fflush(nullptr);
  _exit(rig::failures == 0 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  const rig::team t({.heap_bytes = 64 << 20});
  xio_team_t team;
  MUST(xio_team_world(t.world(), &team));
  place p{t, team, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, XIO_STREAM_ATTR_INIT};
  p.dst = t.symmetric<unsigned char>(p.room());
  p.src = t.symmetric<unsigned char>(p.room());
  p.sums = p.dst + (k_most + k_guard + 255) / 256 * 256;
  const rig::device_array<size_t> tables(4 * static_cast<size_t>(t.n));
  p.tables = tables.data();
  p.sig = t.symmetric<uint64_t>(2);
  rig::team::write(p.src, rig::source_of(t.me, p.room()));
  MUST(hipStreamCreateWithFlags(&p.stream, hipStreamNonBlocking));
  MUST(hipHostMalloc(&p.status, sizeof *p.status, 0));
  p.attr.status = p.status;
  MUST(xio_stream_prepare(t.world(), t.ctx));
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "dead" || how == "dies") return go_on_alone(p, how == "dies");
  move_all(p);
  reduce_all(p);
  store_and_read(p);
  give_by_threads(p);
  pass_words(p);
  refuse_all(p);
  fail_all(p);
  call_from_host(p);
  fail_from_host(p);
  replay(p, rig::is_short() ? 20 : t.route == "direct" ? 1000 : 200, -1);
  MUST(xio_team_destroy(t.world(), team));
  MUST(hipStreamDestroy(p.stream));
  return rig::verdict("stream", t);
}
