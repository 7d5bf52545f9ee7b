// SPDX-License-Identifier: MIT
// Signals and counters. The receiver is a running kernel: it looks at the data the moment the signal lets it, so what
// is checked is the order of data and signal and not what a finished kernel leaves behind.
#include "rig.hpp"

using rig::scope;

namespace {

using rig::k_relayed;
using rig::sent;

template <scope S>
__device__ xio_status_t put_signal(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint64_t* sig,
                                   uint64_t value, xio_signal_op_t op, int pe, bool nbi) {
  if (nbi) {
    RIG_BY_SCOPE(S, xio_put_signal_nbi, ctx, dst, src, bytes, sig, value, op, pe);
    return XIO_OK;  // the caller's quiet returns the op's status
  }
  return RIG_BY_SCOPE(S, xio_put_signal, ctx, dst, src, bytes, sig, value, op, pe);
}

struct ring_of_pes {
  unsigned char *in, *out;  // symmetric
  uint64_t *data, *room;    // signals: data has come from the left; the right has read
  int me, left, right;
};

// Every PE sends `rounds` messages to its right and reads those of its left.
template <scope S>
__global__ void relay(xio_ctx_t ctx, ring_of_pes p, uint32_t bytes, uint32_t rounds, xio_signal_op_t op, bool nbi,
                      uint32_t* wrong, int* bad) {
  for (uint32_t round = 1; round <= rounds; ++round) {
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) p.out[i] = sent(p.me, round, i);
    __syncthreads();
    if (xio_signal_wait_until(ctx, p.room, XIO_CMP_GE, round - 1) != XIO_OK) *bad = 1;
    if (put_signal<S>(ctx, p.in, p.out, bytes, p.data, op == XIO_SIGNAL_SET ? round : 1, op, p.right, nbi) != XIO_OK)
      *bad = 2;
    uint64_t seen = 0;
    if (threadIdx.x == 0) rig::stare(p.data, round);
    if (xio_signal_wait_until(ctx, p.data, XIO_CMP_GE, round, &seen) != XIO_OK) *bad = 3;
    if (seen != round || xio_signal_fetch(ctx, p.data) != round) *bad = 4;
    rig::count_wrong(p.in, bytes, p.left, round, wrong);
    __syncthreads();
    if (threadIdx.x == 0 && xio_signal_op(ctx, p.room, 1, XIO_SIGNAL_ADD, p.left) != XIO_OK) *bad = 5;
    // The source must be free before it is written again.
    if (xio_quiet(ctx) != XIO_OK) *bad = 6;
    __syncthreads();
  }
}

template <scope S>
void relays(const rig::team& t, const ring_of_pes& p) {
  for (const uint32_t bytes : {0u, 1u, 8u, 27u, 28u, 29u, 64u, 1000u, 4097u, 65536u + 3u, 300001u}) {
    if (rig::is_short() && bytes != 27 && bytes != 1000) continue;
    for (const xio_signal_op_t op : {XIO_SIGNAL_SET, XIO_SIGNAL_ADD}) {
      const bool nbi = op == XIO_SIGNAL_ADD;
      rig::team::write(p.data, std::vector<uint64_t>{0});
      rig::team::write(p.room, std::vector<uint64_t>{0});
      rig::team::write(p.in, std::vector<unsigned char>(k_relayed, rig::k_poison));
      const rig::device_array<uint32_t> wrong(1);
      const uint32_t rounds = rig::is_short() ? 3 : bytes > 4097 ? 5 : 20;
      const std::string what = rig::text("relay by a %s, %u bytes, op %d", rig::k_scope_names[S], bytes, op);
      rig::expect_steps(t, what, relay<S>, 1, rig::k_threads_of[S], t.ctx, p, bytes, rounds, op, nbi, wrong.data());
      rig::expect_relayed(what, p.in, bytes, wrong.get()[0]);
    }
  }
}

// --- Packets -----------------------------------------------------------------------------------------

constexpr uint32_t k_packet = 64, k_packet_turns = 50;

struct packets {
  uint64_t *slots, *taken;  // symmetric: two packets in turn, and one that says that the right has read
  int left, right, me;
};

// Every PE sends to its right; a slot is used again once its packet was read. Every third turn looks instead of
// waiting.
__global__ void pass_packets(xio_ctx_t ctx, packets p, uint32_t bytes, int* bad) {
  unsigned char out[k_packet + 4], in[k_packet + 4];
  auto* mine = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(out) + 3) & ~uintptr_t{3});
  auto* theirs = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(in) + 3) & ~uintptr_t{3});
  for (uint32_t turn = 1; turn <= k_packet_turns; ++turn) {
    uint64_t* slot = p.slots + turn % 2 * (k_packet / 4);
    for (uint32_t i = 0; i < bytes; ++i) mine[i] = sent(p.me, turn, i);
    for (uint32_t i = 0; i < k_packet; ++i) theirs[i] = rig::k_poison;
    if (xio_put_packet(ctx, slot, mine, bytes, turn, p.right) != XIO_OK) *bad = 1;
    const xio_deadline_t end = xio_deadline(ctx);
    xio_status_t status = XIO_PENDING;
    if (turn % 3 != 0) status = xio_wait_packet(ctx, theirs, slot, bytes, turn);
    while (status == XIO_PENDING && xio_pause_until(end)) {
      status = xio_test_packet(ctx, theirs, slot, bytes, turn);
      if (status == XIO_PENDING && theirs[0] != rig::k_poison) *bad = 2;
    }
    if (status != XIO_OK) *bad = 3;
    for (uint32_t i = 0; i < k_packet; ++i)
      if (theirs[i] != (i < bytes ? sent(p.left, turn, i) : rig::k_poison)) *bad = 4;
    const uint32_t word = turn;
    uint32_t value = 0;
    if (xio_put_packet(ctx, p.taken, &word, sizeof word, turn, p.left) != XIO_OK) *bad = 5;
    if (xio_wait_packet(ctx, &value, p.taken, sizeof value, turn) != XIO_OK || value != turn) *bad = 6;
    if (xio_quiet(ctx) != XIO_OK) *bad = 7;
  }
}

__global__ void refuse_packets(xio_ctx_t ctx, packets p, int n, int* bad) {
  uint32_t words[k_packet / 4 + 2] = {};
  auto* odd = reinterpret_cast<unsigned char*>(words) + 1;
  const auto wrong = [&](xio_status_t status, xio_status_t wanted, int step) {
    if (status != wanted || xio_quiet(ctx) != wanted) *bad = step;
  };
  wrong(xio_put_packet(ctx, p.slots, words, 0, 1, p.right), XIO_ERR_ARG, 1);
  wrong(xio_put_packet(ctx, p.slots, words, 3, 1, p.right), XIO_ERR_ARG, 2);
  wrong(xio_put_packet(ctx, p.slots, words, k_packet + 4, 1, p.right), XIO_ERR_ARG, 3);
  wrong(xio_put_packet(ctx, p.slots, odd, 4, 1, p.right), XIO_ERR_ARG, 4);
  wrong(xio_put_packet(ctx, p.slots, nullptr, 4, 1, p.right), XIO_ERR_ARG, 5);
  wrong(xio_put_packet(ctx, reinterpret_cast<uint32_t*>(p.slots) + 1, words, 4, 1, p.right), XIO_ERR_ARG, 6);
  wrong(xio_put_packet(ctx, words, words, 4, 1, p.right), XIO_ERR_NOT_SYMMETRIC, 7);
  wrong(xio_put_packet(ctx, p.slots, words, 4, 1, n), XIO_ERR_PE, 8);
  wrong(xio_wait_packet(ctx, nullptr, p.slots, 4, 1), XIO_ERR_ARG, 9);
  wrong(xio_wait_packet(ctx, words, nullptr, 4, 1), XIO_ERR_ARG, 10);
  wrong(xio_test_packet(ctx, words, p.slots, 6, 1), XIO_ERR_ARG, 11);
  // No packet has that flag: nothing is there, and nothing is taken.
  if (xio_test_packet(ctx, words, p.slots, 4, 0x7fffffff) != XIO_PENDING) *bad = 12;
}

void pass_all_packets(const rig::team& t, const ring_of_pes& ring) {
  packets p{};
  p.slots = t.symmetric<uint64_t>(2 * k_packet / 4);
  p.taken = t.symmetric<uint64_t>(1);
  p.left = ring.left;
  p.right = ring.right;
  p.me = ring.me;
  for (const uint32_t bytes : {4u, 8u, 28u, 64u}) {
    rig::team::write(p.slots, std::vector<uint64_t>(2 * k_packet / 4));
    rig::team::write(p.taken, std::vector<uint64_t>(1));
    rig::expect_steps(t, rig::text("packets of %u bytes", bytes), pass_packets, 1, 1, t.ctx, p, bytes);
    const std::vector<uint64_t> slots = rig::team::read(p.slots, 2 * k_packet / 4);
    for (uint32_t i = bytes / 4; i < k_packet / 4; ++i)
      rig::expect(slots[i] == 0 && slots[i + k_packet / 4] == 0, "packets of %u bytes: word %u changed", bytes, i);
  }
  rig::expect_steps(t, "wrong packets", refuse_packets, 1, 1, t.ctx, p, t.n);
}

// --- Many adders -------------------------------------------------------------------------------------

__global__ void add_everywhere(xio_ctx_t ctx, uint64_t* sig, int n, int* bad) {
  for (int pe = 0; pe < n; ++pe)
    if (xio_signal_op(ctx, sig, threadIdx.x + 1, XIO_SIGNAL_ADD, pe) != XIO_OK) *bad = 1;
  const uint64_t wanted = static_cast<uint64_t>(n) * blockDim.x * (blockDim.x + 1) / 2;
  if (xio_signal_wait_until(ctx, sig, XIO_CMP_EQ, wanted) != XIO_OK) *bad = 2;
  if (xio_quiet(ctx) != XIO_OK) *bad = 3;
}

// --- Counters ----------------------------------------------------------------------------------------

// Reuses one source for every message as soon as the counter says that it is free.
__global__ void count(xio_ctx_t ctx, uint64_t* dst, uint64_t* src, uint64_t* counter, uint64_t* sig, uint32_t messages,
                      uint32_t words, int pe, int* bad) {
  for (uint32_t i = 0; i < messages; ++i) {
    for (uint32_t k = 0; k < words; ++k) src[k] = i * 1000 + k;
    const xio_status_t status =
        i % 2 == 0 ? xio_put_counter(ctx, dst + i * words, src, words * 8, counter, pe)
                   : xio_put_signal_counter(ctx, dst + i * words, src, words * 8, sig, 1, XIO_SIGNAL_ADD, counter, pe);
    if (status != XIO_OK) *bad = 1;
    if (xio_wait_counter(ctx, counter, i + 1) != XIO_OK) *bad = 2;
  }
  if (xio_put_counter(ctx, dst, src, 8, nullptr, pe) != XIO_ERR_ARG) *bad = 3;
  if (xio_quiet(ctx) != XIO_ERR_ARG || xio_quiet(ctx) != XIO_OK) *bad = 4;
}

void counters(const rig::team& t) {
  constexpr uint32_t messages = 20, words = 40;
  auto* dst = t.symmetric<uint64_t>(messages * words);
  auto* src = t.symmetric<uint64_t>(words);
  auto* words_of_two = t.symmetric<uint64_t>(2);
  rig::expect_steps(t, "counters", count, 1, 1, t.ctx, dst, src, words_of_two, words_of_two + 1, messages, words,
                    t.right);
  const std::vector<uint64_t> got = rig::team::read(dst, messages * words);
  uint64_t wrong = 0;
  for (uint32_t i = 0; i < messages; ++i)
    for (uint32_t k = 0; k < words; ++k) wrong += got[i * words + k] != i * 1000 + k;
  rig::expect(wrong == 0, "counters: %llu words wrong", rig::ull(wrong));
  const std::vector<uint64_t> both = rig::team::read(words_of_two, 2);
  rig::expect(both[0] == messages && both[1] == messages / 2, "counter %llu, signal %llu", rig::ull(both[0]),
              rig::ull(both[1]));
  t.barrier();
}

}  // namespace

int main() {
  const rig::team t;
  ring_of_pes p{};
  p.in = t.symmetric<unsigned char>(k_relayed);
  p.out = t.symmetric<unsigned char>(k_relayed);
  p.data = t.symmetric<uint64_t>(1);
  p.room = t.symmetric<uint64_t>(1);
  p.me = t.me, p.left = t.left, p.right = t.right;
  relays<rig::thread>(t, p);
  relays<rig::wave>(t, p);
  relays<rig::workgroup>(t, p);
  auto* sig = t.symmetric<uint64_t>(1);
  rig::expect_steps(t, "adding everywhere", add_everywhere, 1, 70, t.ctx, sig, t.n);
  counters(t);
  pass_all_packets(t, p);
  return rig::verdict("signals", t);
}
