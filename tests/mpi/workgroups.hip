// SPDX-License-Identifier: MIT
// Several workgroups of one kernel share a ctx. They run on different compute units, so each has an L1 cache of its own
// on an AMD GPU: what one of them has read stays as it was there until an op of XIO acquires. All post at the same
// time, more than the rings have room for. The last one that is done waits for what the others have posted, reads what
// their gets brought, and passes all of it on to the neighbour by one signal.
// And each polls words of the neighbour by an op of its own.
#include "rig.hpp"

namespace {

namespace dev = xio::dev;

constexpr unsigned k_groups = 4, k_ops = 10, k_words = 3;
constexpr unsigned k_put = k_groups * k_ops * k_words, k_got = k_groups * k_words;

struct areas {
  uint64_t *out, *in, *source, *got, *flag;  // symmetric
  xio_req_t* requests;                       // one of each workgroup, zero before
  uint32_t* done;
  uint64_t* sums;  // keeps loads alive whose values nobody needs
};

struct players {
  int me, left, right;
  uint64_t turn;
};

XIO_HOST_DEVICE uint64_t put_word(int pe, uint64_t turn, unsigned i) { return turn * 100000 + pe * 1000u + i; }
XIO_HOST_DEVICE uint64_t got_word(int pe, uint64_t turn, unsigned i) { return turn * 700000 + pe * 1000u + i; }

// An ordinary load, for which an op before has to acquire.
__device__ inline uint64_t load_word(const uint64_t* p) { return *p; }

// The L1 of the caller has all of these words then, as they are now.
__device__ uint64_t fill_cache(const areas& a) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < k_put; ++i) sum += load_word(&a.in[i]);
  for (unsigned i = 0; i < k_got; ++i) sum += load_word(&a.got[i]);
  for (unsigned i = 0; i < k_groups; ++i) sum += load_word(&a.requests[i]);
  return sum;
}

__device__ int post(const xio_ctx_t& ctx, const areas& a, const players& p, unsigned group) {
  constexpr size_t bytes = k_words * sizeof(uint64_t);
  int bad = 0;
  for (unsigned op = 0; op < k_ops; ++op) {
    const unsigned at = (group * k_ops + op) * k_words;
    for (unsigned i = 0; i < k_words; ++i) a.out[at + i] = put_word(p.me, p.turn, at + i);
    const xio_req_t sent = xio_put_nbi(ctx, a.in + at, a.out + at, bytes, p.right);
    // Some wait for their own at once, behind what others have posted.
    if (op % 4 == 3 && xio_wait(ctx, sent) != XIO_OK) bad = 1;
  }
  const unsigned at = group * k_words;
  a.requests[group] = xio_get_nbi(ctx, a.got + at, a.source + at, bytes, p.right);
  return bad;
}

__global__ void share_a_ring(xio_ctx_t ctx, areas a, players p, uint32_t* wrong, int* bad) {
  const unsigned group = blockIdx.x;
  a.sums[group] = fill_cache(a);
  if (const int step = post(ctx, a, p, group); step != 0) *bad = step;
  if (dev::fetch_add<dev::scope::agent, dev::order::acq_rel>(a.done, 1u) != k_groups - 1) return;

  for (unsigned i = 0; i < k_groups; ++i) {
    if (xio_wait(ctx, a.requests[i]) != XIO_OK) *bad = 2;
    for (unsigned word = i * k_words; word < (i + 1) * k_words; ++word)
      if (load_word(&a.got[word]) != got_word(p.right, p.turn, word)) *wrong += 1;
  }
  if (xio_quiet(ctx) != XIO_OK) *bad = 3;
  if (xio_signal_op(ctx, a.flag, p.turn, XIO_SIGNAL_SET, p.right) != XIO_OK) *bad = 4;
  if (xio_signal_wait_until(ctx, a.flag, XIO_CMP_EQ, p.turn) != XIO_OK) *bad = 5;
  for (unsigned i = k_put; i-- > 0;)
    if (load_word(&a.in[i]) != put_word(p.left, p.turn, i)) *wrong += 1;
}

// Each workgroup changes words of its own, and gets those of the same workgroup of the neighbour until they have
// changed, by an op that the others do not use.
constexpr unsigned k_polled = 8, k_turns_polled = 3;

__device__ xio_status_t poll_once(const xio_ctx_t& ctx, unsigned how, const uint64_t* words, uint64_t* in, int pe) {
  switch (how) {
    case 0: return xio_get(ctx, in, words, sizeof *in, pe);
    case 1: return xio_get(ctx, in, words, k_polled * sizeof *in, pe);
    case 2: *in = xio_g(ctx, words, pe); return XIO_OK;
    default: *in = xio_atomic_fetch(ctx, words, pe); return XIO_OK;
  }
}

__global__ void poll_by_gets(xio_ctx_t ctx, uint64_t* words, uint64_t* in, players p, int* bad) {
  const unsigned group = blockIdx.x;
  in += group * k_polled;
  words += group * k_polled;
  for (uint64_t turn = p.turn; turn < p.turn + k_turns_polled; ++turn) {
    for (unsigned i = 0; i < k_polled; ++i) *static_cast<volatile uint64_t*>(words + i) = turn;
    if (xio_fence(ctx) != XIO_OK) *bad = 6;
    const xio_deadline_t end = xio_deadline(ctx);
    do {
      if (poll_once(ctx, group, words, in, p.right) != XIO_OK) *bad = 7;
    } while (load_word(in) < turn && xio_pause_until(end));
    if (load_word(in) < turn) *bad = 10 + static_cast<int>(group);
  }
}

void poll(const rig::team& t, players p) {
  auto* words = t.symmetric<uint64_t>(k_groups * k_polled);
  auto* in = t.symmetric<uint64_t>(k_groups * k_polled);
  const rig::device_array<int> bad(1);
  t.barrier();
  // Often: how long an L1 of the software AMD GPU keeps what it has is chosen once for a workgroup.
  for (p.turn = 1; p.turn < 8 * k_turns_polled; p.turn += k_turns_polled)
    RUN(poll_by_gets, k_groups, 1, t.ctx, words, in, p, bad.data());
  t.barrier();
  rig::expect(bad.get()[0] == 0, "words that change: step %d failed", bad.get()[0]);
}

void run(const rig::team& t, areas a, const players& p) {
  std::vector<uint64_t> source(k_got);
  for (unsigned i = 0; i < k_got; ++i) source[i] = got_word(p.me, p.turn, i);
  rig::team::write(a.source, source);
  const rig::device_array<xio_req_t> requests(k_groups);
  const rig::device_array<uint32_t> done(1), wrong(1);
  const rig::device_array<uint64_t> sums(k_groups);
  a.requests = requests.data();
  a.done = done.data();
  a.sums = sums.data();
  const std::string what = rig::text("turn %d", static_cast<int>(p.turn));
  rig::expect_steps(t, what, share_a_ring, k_groups, 1, t.ctx, a, p, wrong.data());
  rig::expect(wrong.get()[0] == 0, "turn %d: %u words too old", static_cast<int>(p.turn), wrong.get()[0]);
}

}  // namespace

int main() {
  rig::options o;
  // Rings so small are none for a copy engine.
  const char* asked = std::getenv("XIO_ROUTE");
  o.ring_depth = asked != nullptr && std::strcmp(asked, "rdma") == 0 ? 8 : 0;
  const rig::team t(o);
  rig::limit_waits(t);
  areas a{};
  a.out = t.symmetric<uint64_t>(k_put);
  a.in = t.symmetric<uint64_t>(k_put);
  a.source = t.symmetric<uint64_t>(k_got);
  a.got = t.symmetric<uint64_t>(k_got);
  a.flag = t.symmetric<uint64_t>(1);
  const uint64_t turns = rig::is_short() ? 3 : 10;
  for (uint64_t turn = 1; turn <= turns; ++turn) run(t, a, {t.me, t.left, t.right, turn});
  poll(t, {t.me, t.left, t.right, 0});
  return rig::verdict("workgroups", t);
}
