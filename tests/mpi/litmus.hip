// SPDX-License-Identifier: MIT
// The litmus tests of docs/ordering.md, by the names they have there. Each runs many times inside one kernel, so that
// a missing order has chances to show; readers are running kernels, never the host afterwards.
#include "rig.hpp"

namespace {

constexpr uint32_t k_words = 2048;  // 16 KiB: above the copy engine's threshold below

struct board {
  uint64_t data[k_words], flag, flag2, go, x, y, seen;
};

struct players {
  int me, left, right, n;
  uint64_t turns;
};

// An ordinary load, for which the call before has to acquire: a volatile one would read past the L1 of an AMD GPU.
__device__ inline uint64_t look(const uint64_t* p) { return *p; }

// Waits for the neighbour's word, tells it that the turn is over, and waits for the same from the other side.
__device__ inline bool turn_over(const xio_ctx_t& ctx, board* b, const players& p, uint64_t turn) {
  return xio_quiet(ctx) == XIO_OK && xio_signal_op(ctx, &b->go, turn, XIO_SIGNAL_SET, p.left) == XIO_OK &&
         xio_signal_wait_until(ctx, &b->go, XIO_CMP_GE, turn) == XIO_OK;
}

enum flag_kind { by_p, by_put, by_atomic, by_signal };
constexpr const char* k_flag_names[] = {"xio_p", "put", "atomic", "signal"};

// message passing: put data; fence, or wait for the put; flag. A PE that sees the flag sees the data.
__global__ void message_passing(xio_ctx_t ctx, board* b, uint64_t* out, uint32_t words, int kind, players p,
                                uint32_t* wrong, int* bad) {
  for (uint64_t turn = 1; turn <= p.turns; ++turn) {
    for (uint32_t i = 0; i < words; ++i) out[i] = turn * 1000 + i;
    out[k_words] = turn;
    const xio_req_t sent = xio_put_nbi(ctx, b->data, out, words * sizeof *out, p.right);
    xio_status_t status = XIO_OK;
    if (turn % 2 == 0 && kind != by_put) {
      status = xio_wait(ctx, sent);
    } else {
      status = kind == by_put ? xio_fence_pe(ctx, p.right) : xio_fence(ctx);
    }
    if (status != XIO_OK) *bad = 1;
    if (kind == by_p) status = xio_p(ctx, &b->flag, turn, p.right);
    if (kind == by_put) status = xio_put(ctx, &b->flag, out + k_words, sizeof *out, p.right);
    if (kind == by_atomic) status = xio_atomic_add(ctx, &b->flag, 1, p.right);
    if (kind == by_signal) status = xio_signal_op(ctx, &b->flag, 1, XIO_SIGNAL_ADD, p.right);
    if (status != XIO_OK) *bad = 2;
    rig::stare(&b->flag, turn);
    if (xio_wait_until(ctx, &b->flag, XIO_CMP_EQ, turn) != XIO_OK) *bad = 3;
    // The word sent last is checked first.
    for (uint32_t i = words; i-- > 0;)
      if (look(&b->data[i]) != turn * 1000 + i) *wrong += 1;
    if (!turn_over(ctx, b, p, turn)) *bad = 4;
  }
}

// store buffering: put x to the other; quiet; get y from the other. They cannot both miss.
__global__ void store_buffering(xio_ctx_t ctx, board* b, players p, uint64_t* results, int* bad) {
  // Pairs: an even PE with the one after it.
  const int other = p.me ^ 1;
  if (other >= p.n) return;
  for (uint64_t turn = 1; turn <= p.turns; ++turn) {
    // x is what the even PE writes, y what the odd one writes; each word lies with the other.
    uint64_t* mine = p.me % 2 == 0 ? &b->x : &b->y;
    uint64_t* theirs = p.me % 2 == 0 ? &b->y : &b->x;
    if (xio_p(ctx, mine, turn, other) != XIO_OK || xio_quiet(ctx) != XIO_OK) *bad = 1;
    // Their write lies here.
    results[turn - 1] = xio_atomic_fetch(ctx, theirs, p.me) == turn;
    if (xio_quiet(ctx) != XIO_OK) *bad = 2;
    // Synchronise before the next turn.
    if (xio_signal_op(ctx, &b->go, turn, XIO_SIGNAL_SET, other) != XIO_OK) *bad = 3;
    rig::stare(&b->go, turn);
    if (xio_signal_wait_until(ctx, &b->go, XIO_CMP_GE, turn) != XIO_OK) *bad = 3;
  }
}

// passing on: A puts to C, quiet, tells B; B tells C; C sees A's data. A = me, B = right, C = right of right.
__global__ void passing_on(xio_ctx_t ctx, board* b, uint64_t* out, players p, uint32_t* wrong, int* bad) {
  const int after = (p.right + 1) % p.n;
  for (uint64_t turn = 1; turn <= p.turns; ++turn) {
    for (uint32_t i = 0; i < 64; ++i) out[i] = turn * 77 + i;
    xio_put_nbi(ctx, b->data, out, 64 * sizeof *out, after);
    if (xio_quiet(ctx) != XIO_OK) *bad = 1;
    if (xio_signal_op(ctx, &b->flag, turn, XIO_SIGNAL_SET, p.right) != XIO_OK) *bad = 2;
    if (xio_signal_wait_until(ctx, &b->flag, XIO_CMP_GE, turn) != XIO_OK) *bad = 3;
    if (xio_fence(ctx) != XIO_OK || xio_signal_op(ctx, &b->flag2, turn, XIO_SIGNAL_SET, p.right) != XIO_OK) *bad = 4;
    rig::stare(&b->flag2, turn);
    if (xio_signal_wait_until(ctx, &b->flag2, XIO_CMP_GE, turn) != XIO_OK) *bad = 5;
    for (uint32_t i = 0; i < 64; ++i)
      if (look(&b->data[i]) != turn * 77 + i) *wrong += 1;
    // The reader of this PE's data is not its neighbour.
    if (xio_barrier_all(ctx) != XIO_OK) *bad = 6;
  }
}

// source reuse: a source may change after a blocking put, and after wait or flush of a request.
__global__ void source_reuse(xio_ctx_t ctx, board* b, uint64_t* out, players p, int* bad) {
  constexpr uint32_t words = 256;
  for (uint32_t part = 0; part < 6; ++part) {
    for (uint32_t i = 0; i < words; ++i) out[i] = part * 5000 + i;
    uint64_t* to = b->data + part * words;
    if (part % 3 == 0) {
      if (xio_put(ctx, to, out, words * sizeof *out, p.right) != XIO_OK) *bad = 1;
    } else {
      const xio_req_t request = xio_put_nbi(ctx, to, out, words * sizeof *out, p.right);
      if ((part % 3 == 1 ? xio_wait(ctx, request) : xio_wait_source(ctx, request)) != XIO_OK) *bad = 2;
      if (xio_test(ctx, request) != XIO_OK) *bad = 3;
    }
    for (uint32_t i = 0; i < words; ++i) out[i] = ~uint64_t{0};
  }
  if (xio_barrier_all(ctx) != XIO_OK) *bad = 4;
  for (uint32_t part = 0; part < 6; ++part)
    for (uint32_t i = 0; i < words; ++i)
      if (look(&b->data[part * words + i]) != part * 5000 + i) *bad = 5;
}

// ordinary memory: the source of a put and the target of a get may be registered memory that the GPU keeps in its
// caches, and that the kernel has written just before. Where no instruction writes the L2 back, an earlier kernel has
// written the source, and a later one reads the target: each step of a turn is then a kernel of its own.
enum ordinary_step : uint32_t { step_fill, step_put, step_clear, step_get, step_check, steps };
struct ordinary_run {
  uint64_t first_turn, last_turn;
  uint32_t first_step, last_step;
};

// Returns how many words are not as they were put or got.
__device__ inline uint32_t old_words(const uint64_t* words, uint32_t n, uint64_t turn) {
  uint32_t old = 0;
  for (uint32_t i = n; i-- > 0;) old += look(&words[i]) != turn * 3000 + i;
  return old;
}

__device__ inline void ordinary_one(const xio_ctx_t& ctx, board* b, uint64_t* plain, uint32_t words, const players& p,
                                    uint64_t turn, uint32_t step, uint32_t* wrong, int* bad) {
  if (step == step_fill) {
    for (uint32_t i = 0; i < words; ++i) plain[i] = turn * 3000 + i;
  } else if (step == step_put) {
    const xio_req_t sent =
        xio_put_signal_nbi(ctx, b->data, plain, words * sizeof *plain, &b->flag, turn, XIO_SIGNAL_SET, p.right);
    if (xio_signal_wait_until(ctx, &b->flag, XIO_CMP_EQ, turn) != XIO_OK) *bad = 2;
    *wrong += old_words(b->data, words, turn);
    if (xio_wait(ctx, sent) != XIO_OK) *bad = 1;
  } else if (step == step_clear) {
    // The kernel's caches have it all when the get begins.
    if (old_words(plain, words, turn) != 0) *bad = 2;
    for (uint32_t i = 0; i < words; ++i) plain[i] = 0;
  } else if (step == step_get) {
    if (xio_get(ctx, plain, b->data, words * sizeof *plain, p.right) != XIO_OK) *bad = 3;
  } else {
    *wrong += old_words(plain, words, turn);
    // The neighbour's data stay until they were got.
    if (xio_barrier_all(ctx) != XIO_OK) *bad = 4;
  }
}

__global__ void ordinary_memory(xio_ctx_t ctx, board* b, uint64_t* plain, uint32_t words, players p, ordinary_run run,
                                uint32_t* wrong, int* bad) {
  for (uint64_t turn = run.first_turn; turn <= run.last_turn; ++turn)
    for (uint32_t step = run.first_step; step <= run.last_step; ++step)
      ordinary_one(ctx, b, plain, words, p, turn, step, wrong, bad);
}

// fresh get: a PE that gets a word again and again sees in the end that its owner changed it, without another op
// between.
__global__ void fresh_get(xio_ctx_t ctx, board* b, uint64_t* in, players p, int* bad) {
  for (uint64_t turn = 1; turn <= 20; ++turn) {
    *static_cast<volatile uint64_t*>(&b->x) = turn;
    if (xio_fence(ctx) != XIO_OK) *bad = 1;
    const xio_deadline_t end = xio_deadline(ctx);
    do {
      if (xio_get(ctx, in, &b->x, sizeof *in, p.right) != XIO_OK) *bad = 2;
    } while (look(in) < turn && xio_pause_until(end));
    if (look(in) < turn) *bad = 3;
    if (xio_barrier_all(ctx) != XIO_OK) *bad = 4;
  }
}

// read after get: a blocking get and a fetching atomic are visible to the caller, a non-blocking get after its wait.
__global__ void read_after_get(xio_ctx_t ctx, board* b, uint64_t* in, players p, int* bad) {
  constexpr uint32_t words = 512;
  for (uint32_t i = 0; i < words; ++i) b->data[i] = static_cast<uint64_t>(p.me) * 100000 + i;
  if (xio_barrier_all(ctx) != XIO_OK) *bad = 1;
  for (int blocking = 0; blocking < 2; ++blocking) {
    for (uint32_t i = 0; i < words; ++i) in[i] = 0;
    if (blocking != 0) {
      if (xio_get(ctx, in, b->data, words * sizeof *in, p.right) != XIO_OK) *bad = 2;
    } else {
      const xio_req_t request = xio_get_nbi(ctx, in, b->data, words * sizeof *in, p.right);
      if (xio_wait(ctx, request) != XIO_OK) *bad = 3;
    }
    for (uint32_t i = 0; i < words; ++i)
      if (look(&in[i]) != static_cast<uint64_t>(p.right) * 100000 + i) *bad = 4;
  }
  if (xio_g(ctx, &b->data[7], p.right) != static_cast<uint64_t>(p.right) * 100000 + 7) *bad = 5;
  if (xio_barrier_all(ctx) != XIO_OK) *bad = 6;
}

// By the ctx, since a PE of another machine is not mapped.
__global__ void fetch(xio_ctx_t ctx, uint64_t* to, const uint64_t* from, size_t bytes, int pe, int* bad) {
  if (xio_get(ctx, to, from, bytes, pe) != XIO_OK) *bad = 1;
}

// --- The runs ----------------------------------------------------------------------------------------

void clear(const rig::team& t, board* b) {
  MUST(hipMemset(b, 0, sizeof *b));
  MUST(hipDeviceSynchronize());  // a memset may still be on its way when it returns
  t.barrier();
}

// gfx10 and gfx11 have no instruction that writes the L2 back or invalidates it (LLVM AMDGPUUsage, "Memory Model
// GFX10-GFX11").
bool kernels_write_back() {
#if defined(__HIP_PLATFORM_AMD__)
  int device = 0;
  hipDeviceProp_t p;
  MUST(hipGetDevice(&device));
  MUST(hipGetDeviceProperties(&p, device));
  const std::string name = p.gcnArchName;
  return name.rfind("gfx10", 0) != 0 && name.rfind("gfx11", 0) != 0;
#else
  return true;
#endif
}

void ordinary_turns(const rig::team& t, board* b, uint64_t* plain, uint32_t words, const players& p, uint32_t* old,
                    int* bad) {
  if (kernels_write_back()) {
    RUN(ordinary_memory, 1, 1, t.ctx, b, plain, words, p, (ordinary_run{1, p.turns, 0, steps - 1}), old, bad);
    return;
  }
  for (uint64_t turn = 1; turn <= p.turns; ++turn)
    for (uint32_t step = 0; step < steps; ++step)
      RUN(ordinary_memory, 1, 1, t.ctx, b, plain, words, p, (ordinary_run{turn, turn, step, step}), old, bad);
}

// Memory of the GPU and of the host.
void ordinary(const rig::team& t, board* b, const char* how, players p, int* bad) {
  const rig::device_array<uint64_t> of_gpu(k_words);
  void* of_host = nullptr;
#if defined(__HIP_PLATFORM_AMD__)
  MUST(hipHostMalloc(&of_host, k_words * sizeof(uint64_t), hipHostMallocNonCoherent));
#else
  MUST(hipHostMalloc(&of_host, k_words * sizeof(uint64_t), 0));
#endif
  p.turns = p.turns < 10 ? p.turns : 10;
  for (uint64_t* plain : {of_gpu.data(), static_cast<uint64_t*>(of_host)}) {
    MUST(xio_mem_register(t.world(), plain, k_words * sizeof *plain));
    for (const uint32_t words : {3u, 500u}) {
      clear(t, b);
      const rig::device_array<uint32_t> old(1);
      ordinary_turns(t, b, plain, words, p, old.data(), bad);
      rig::expect(old.get()[0] == 0, "ordinary memory (%s) of the %s: %u of the words too old", how,
                  plain == of_host ? "host" : "GPU", old.get()[0]);
    }
    MUST(xio_mem_unregister(t.world(), plain));
  }
  t.barrier();
  MUST(hipHostFree(of_host));
}

void all(const rig::team& t, const char* how) {
  auto* b = t.symmetric<board>(1);
  auto* out = t.symmetric<uint64_t>(k_words + 1);
  const uint64_t turns = rig::is_short() ? 4 : rig::shared_gpus(t) ? 30 : 200;
  const players p{t.me, t.left, t.right, t.n, turns};
  for (const uint32_t words : {1u, 3u, 500u, k_words}) {
    if (rig::is_short() && words > 3) continue;
    for (const int kind : {by_p, by_put, by_atomic, by_signal}) {
      clear(t, b);
      const rig::device_array<uint32_t> wrong(1);
      const std::string what = rig::text("message passing (%s), %u words, flag by %s", how, words, k_flag_names[kind]);
      rig::expect_steps(t, what, message_passing, 1, 1, t.ctx, b, out, words, kind, p, wrong.data());
      rig::expect(wrong.get()[0] == 0, "%s: %u words too late", what.c_str(), wrong.get()[0]);
    }
  }

  clear(t, b);
  const rig::device_array<int> bad(6);
  const rig::device_array<uint32_t> wrong(1);
  // The window is a store buffer wide: many turns where a turn is cheap.
#if defined(XIO_ON_HOST)
  const uint64_t many = t.route == "direct" ? 100 * turns : turns;
#else
  const uint64_t many = turns;
#endif
  players pairs = p;
  pairs.turns = many;
  const rig::device_array<uint64_t> results(many);
  RUN(store_buffering, 1, 1, t.ctx, b, pairs, results.data(), bad.data());
  auto* all_results = t.symmetric<uint64_t>(many);
  auto* fetched = t.symmetric<uint64_t>(many);
  rig::team::write(all_results, results.get());
  t.barrier();
  if (t.me % 2 == 1) {
    RUN(fetch, 1, 1, t.ctx, fetched, all_results, many * sizeof *fetched, t.me - 1, bad.data() + 3);
    if (rig::expect(bad.get()[3] == 0, "store buffering: the partner's results did not come")) {
      const std::vector<uint64_t> theirs = rig::team::read(fetched, many);
      const std::vector<uint64_t> mine = results.get();
      uint32_t both = 0;
      for (uint64_t i = 0; i < many; ++i) both += mine[i] == 0 && theirs[i] == 0;
      rig::expect(both == 0, "store buffering (%s): both missed %u times", how, both);
    }
  }
  t.barrier();

  clear(t, b);
  RUN(passing_on, 1, 1, t.ctx, b, out, p, wrong.data(), bad.data() + 1);
  rig::expect(wrong.get()[0] == 0, "passing on (%s): %u words too late", how, wrong.get()[0]);
  clear(t, b);
  RUN(source_reuse, 1, 1, t.ctx, b, out, p, bad.data() + 2);
  clear(t, b);
  RUN(read_after_get, 1, 1, t.ctx, b, out, p, bad.data() + 3);
  clear(t, b);
  RUN(fresh_get, 1, 1, t.ctx, b, out, p, bad.data() + 4);
  clear(t, b);
  ordinary(t, b, how, p, bad.data() + 5);
  const char* names[] = {"store buffering", "passing on", "source reuse",
                         "read after get",  "fresh get",  "ordinary memory"};
  const std::vector<int> steps = bad.get();
  for (int i = 0; i < 6; ++i) rig::expect(steps[i] == 0, "%s (%s): step %d failed", names[i], how, steps[i]);
}

}  // namespace

int main() {
  int status = 0;
  {
    const rig::team t;
    rig::limit_waits(t);
    all(t, "one route");
    status |= rig::verdict("litmus", t);
  }
  if (rig::is_short()) return status;
  // Copies from 4 KiB on by the copy engine, everything else by load and store: the fence must wait.
  const rig::team t({.bulk_bytes = 4096});
  const char* asked = std::getenv("XIO_ROUTE");
  const std::string forced = asked == nullptr ? "auto" : asked;
  all(t, "several routes");
  if (t.route == "direct") {
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    MUST(xio_ctx_stats(t.world(), t.ctx, XIO_ROUTE_SDMA, &stats));
    rig::expect(t.route == forced || stats.ops != 0, "no copy engine was used");
  }
  status |= rig::verdict("litmus, several routes", t, false);
  return status;
}
