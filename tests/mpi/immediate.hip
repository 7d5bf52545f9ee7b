// SPDX-License-Identifier: MIT
// Put with immediate. The receiver is a running kernel that looks at the data the moment it has the immediate.
#include "rig.hpp"

using rig::scope;

namespace {

using rig::k_relayed;
using rig::sent;

// A ctx of its own kind beside the team's.
class inboxes {
 public:
  inboxes(const rig::team& t, uint32_t entries, uint32_t pool = 0) : team_(t) {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.immediates = entries;
    attr.pool = pool;
    MUST(xio_ctx_create(t.world(), &attr, &ctx));
  }
  ~inboxes() { MUST(xio_ctx_destroy(team_.world(), ctx)); }
  inboxes& operator=(inboxes&&) = delete;
  xio_ctx_t ctx{};

 private:
  const rig::team& team_;
};

template <scope S>
__device__ xio_status_t put_imm(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint32_t value, int pe,
                                bool nbi) {
  return nbi ? xio_wait(ctx, RIG_BY_SCOPE(S, xio_put_imm_nbi, ctx, dst, src, bytes, value, pe))
             : RIG_BY_SCOPE(S, xio_put_imm, ctx, dst, src, bytes, value, pe);
}

// --- Data, then immediate ----------------------------------------------------------------------------

// All 32 bits are the sender's.
__device__ uint32_t value_of(int pe, uint32_t round) { return (round * 2654435761u) ^ static_cast<uint32_t>(pe) << 31; }

struct ring_of_pes {
  unsigned char *in, *out;  // symmetric
  int me, left, right;
};

// Every PE sends `rounds` messages to its right and reads those of its left; an immediate without data says that they
// were read.
template <scope S>
__global__ void relay(xio_ctx_t ctx, ring_of_pes p, uint32_t bytes, uint32_t rounds, bool nbi, uint32_t* wrong,
                      uint32_t* got, int* bad) {
  for (uint32_t round = 1; round <= rounds; ++round) {
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) p.out[i] = sent(p.me, round, i);
    __syncthreads();
    if (put_imm<S>(ctx, p.in, p.out, bytes, value_of(p.me, round), p.right, nbi) != XIO_OK) *bad = 1;
    if (threadIdx.x == 0) {
      if (xio_imm_wait(ctx, got, p.left) != XIO_OK) *bad = 2;
      if (*got != value_of(p.left, round)) *bad = 3;
    }
    __syncthreads();
    rig::count_wrong(p.in, bytes, p.left, round, wrong);
    __syncthreads();
    if (threadIdx.x == 0) {
      if (xio_put_imm(ctx, nullptr, nullptr, 0, round, p.left) != XIO_OK) *bad = 4;
      // With two PEs both neighbours are one, which sends its message first.
      if (xio_imm_wait(ctx, got, p.right) != XIO_OK || *got != round) *bad = 5;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0 && xio_imm_test(ctx, got, p.left) != XIO_PENDING) *bad = 6;
  if (xio_quiet(ctx) != XIO_OK) *bad = 7;
}

template <scope S>
void relays(const rig::team& t, const inboxes& c, const ring_of_pes& p) {
  for (const uint32_t bytes : {0u, 1u, 8u, 27u, 28u, 29u, 64u, 1000u, 4097u, 300001u}) {
    for (const bool nbi : {false, true}) {
      rig::team::write(p.in, std::vector<unsigned char>(k_relayed, rig::k_poison));
      const rig::device_array<uint32_t> wrong(1), got(1);
      const std::string what = rig::text("relay by a %s, %u bytes, nbi %d", rig::k_scope_names[S], bytes, nbi);
      rig::expect_steps(t, what, relay<S>, 1, rig::k_threads_of[S], c.ctx, p, bytes, bytes > 4097 ? 4u : 20u, nbi,
                        wrong.data(), got.data());
      rig::expect_relayed(what, p.in, bytes, wrong.get()[0]);
    }
  }
}

// --- Order, and room ---------------------------------------------------------------------------------

// One block sends, the other takes, slowly at first: the inbox is full most of the time.
__global__ void flood(xio_ctx_t ctx, uint64_t* in, uint64_t* out, uint32_t count, int right, int left, uint32_t* got,
                      int* bad) {
  if (blockIdx.x == 0) {
    for (uint32_t i = 0; i < count; ++i) {
      out[i] = i + 1;
      if (xio_put_imm(ctx, in + i, out + i, sizeof *in, i, right) != XIO_OK) *bad = 1;
    }
    if (xio_quiet(ctx) != XIO_OK) *bad = 2;
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      for (int k = 0; i < 20 && k < 2000; ++k) xio_pause();
      if (xio_imm_wait(ctx, got, left) != XIO_OK) *bad = 3;
      if (*got != i) *bad = 4;
      if (*static_cast<volatile uint64_t*>(in + i) != i + 1) *bad = 5;
    }
  }
}

void floods(const rig::team& t, const ring_of_pes& p) {
  constexpr uint32_t count = 300;
  auto* in = t.symmetric<uint64_t>(count);
  auto* out = t.symmetric<uint64_t>(count);
  for (const uint32_t entries : {2u, 16u}) {
    const inboxes c(t, entries);
    const rig::device_array<uint32_t> got(1);
    rig::expect_steps(t, rig::text("flood, %u entries", entries), flood, 2, 1, c.ctx, in, out, count, p.right, p.left,
                      got.data());
  }
}

// --- Many senders, many takers -----------------------------------------------------------------------

// Every thread of every sending block sends to every PE; every thread of the others takes its share. The blocks choose
// different queue pairs, and some of them own a ctx of the pool.
__global__ void crowd(xio_ctx_t ctx, uint32_t* marks, uint32_t senders, int n, bool pool, int* bad) {
  const uint32_t per_block = static_cast<uint32_t>(blockDim.x);
  const uint32_t me = blockIdx.x % senders * per_block + threadIdx.x;
  if (blockIdx.x < senders) {
    xio_ctx_t own = ctx;
    if (pool && xio_ctx_create_wg(ctx, &own) != XIO_OK) *bad = 1;
    for (int pe = 0; pe < n; ++pe)
      if (xio_put_imm(own, nullptr, nullptr, 0, me, pe) != XIO_OK) *bad = 2;
    if (pool && xio_ctx_destroy_wg(ctx, &own) != XIO_OK) *bad = 3;
  } else {
    for (int pe = 0; pe < n; ++pe) {
      uint32_t got = ~0u;
      if (xio_imm_wait(ctx, &got, pe) != XIO_OK || got >= senders * per_block)
        *bad = 4;
      else
        atomicAdd(marks + static_cast<uint32_t>(pe) * senders * per_block + got, 1u);
    }
  }
}

void crowds(const rig::team& t) {
  constexpr uint32_t senders = 4, threads = 70;
  for (const bool pool : {false, true}) {
    for (const uint32_t entries : {8u, 512u}) {
      const inboxes c(t, entries, pool ? senders : 0);
      const rig::device_array<uint32_t> marks(senders * threads * static_cast<size_t>(t.n));
      const std::string what = rig::text("crowd, %u entries, pool %d", entries, pool);
      rig::expect_steps(t, what, crowd, 2 * senders, threads, c.ctx, marks.data(), senders, t.n, pool);
      uint32_t wrong = 0;
      for (const uint32_t mark : marks.get()) wrong += mark != 1;
      rig::expect(wrong == 0, "%s: %u immediates were not taken once", what.c_str(), wrong);
    }
  }
}

// --- Mistakes ----------------------------------------------------------------------------------------

// Every line is one mistake; *bad gets the number of the first that had another result.
__global__ void mistakes(xio_ctx_t ctx, xio_ctx_t without, unsigned char* sym, uint32_t* got, int n, int* bad) {
  int line = 0;
  const auto mistake = [&](xio_ctx_t c, xio_status_t status, xio_status_t wanted) {
    ++line;
    const bool right = status == wanted && xio_quiet(c) == wanted && xio_quiet(c) == XIO_OK;
    if (!right && *bad == 0) *bad = line;
  };
  mistake(ctx, xio_put_imm(ctx, sym, sym + 8, 8, 1, n), XIO_ERR_PE);
  mistake(ctx, xio_put_imm(ctx, nullptr, nullptr, 0, 1, -1), XIO_ERR_PE);
  mistake(ctx, xio_put_imm(ctx, nullptr, sym, 8, 1, 0), XIO_ERR_ARG);
  mistake(ctx, xio_put_imm(ctx, sym, nullptr, 8, 1, 0), XIO_ERR_ARG);
  mistake(ctx, xio_put_imm(ctx, got, sym, 4, 1, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(ctx, xio_wait(ctx, xio_put_imm_nbi(ctx, sym, sym + 8, 8, 1, n)), XIO_ERR_PE);
  // 7
  mistake(ctx, xio_imm_test(ctx, got, n), XIO_ERR_PE);
  mistake(ctx, xio_imm_wait(ctx, got, -1), XIO_ERR_PE);
  mistake(ctx, xio_imm_test(ctx, nullptr, 0), XIO_ERR_ARG);
  mistake(without, xio_put_imm(without, sym, sym + 8, 8, 1, 0), XIO_ERR_UNSUPPORTED);
  mistake(without, xio_imm_test(without, got, 0), XIO_ERR_UNSUPPORTED);
  mistake(without, xio_imm_wait(without, got, 0), XIO_ERR_UNSUPPORTED);
  // 13
  xio_ctx_t none{};
  if (xio_put_imm(none, sym, sym, 8, 1, 0) != XIO_ERR_STATE || xio_imm_wait(none, got, 0) != XIO_ERR_STATE) *bad = 13;
  for (int pe = 0; pe < n; ++pe)
    if (xio_imm_test(ctx, got, pe) != XIO_PENDING) *bad = 14;
}

void misuse(const rig::team& t, const inboxes& c) {
  auto* sym = t.symmetric<unsigned char>(16);
  const rig::device_array<uint32_t> got(1);
  t.barrier();
  const int bad = rig::result_of(mistakes, 1, 1, c.ctx, t.ctx, sym, got.data(), t.n);
  rig::expect(bad == 0, "mistake %d had another result", bad);
  for (const uint32_t entries : {1u, 3u, 100u, 131072u}) {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.immediates = entries;
    xio_ctx_t ctx{};
    rig::expect_status(xio_ctx_create(t.world(), &attr, &ctx), XIO_ERR_CONFIG, "a wrong number of immediates");
  }
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.immediates = t.me == 0 ? 4 : 8;
  xio_ctx_t ctx{};
  if (t.n > 1) rig::expect_status(xio_ctx_create(t.world(), &attr, &ctx), XIO_ERR_ARG, "inboxes of two sizes");
  t.barrier();
}

// --- Nobody takes ------------------------------------------------------------------------------------

__global__ void overfill(xio_ctx_t ctx, int right, xio_status_t wanted, int* bad) {
  for (uint32_t i = 0; i < 2; ++i)
    if (xio_put_imm(ctx, nullptr, nullptr, 0, i, right) != XIO_OK) *bad = 1;
  if (xio_put_imm(ctx, nullptr, nullptr, 0, 2, right) != wanted) *bad = 2;
  if (xio_quiet(ctx) != wanted) *bad = 3;
}

// Immediates that came before are still returned. Then nothing more comes, and the way to the right is known to be
// broken (RDMA).
__global__ void take_rest(xio_ctx_t ctx, int left, int right, xio_status_t wanted, uint32_t* got, int* bad) {
  constexpr int k_tries = 100000;  // a host thread of this PE may still be about to put them into the inbox
  for (uint32_t i = 0; i < 2; ++i) {
    xio_status_t status = wanted;
    for (int n = 0; n < k_tries && status == wanted; ++n) status = xio_imm_wait(ctx, got, left);
    if (status != XIO_OK || *got != i) *bad = 4;
  }
  if (xio_imm_wait(ctx, got, right) != wanted) *bad = 5;
}

void nobody_takes() {
  const rig::team t({.timeout_ms = 3000});
  const inboxes c(t, 2);
  const xio_status_t wanted = t.route == "rdma" ? XIO_ERR_TRANSPORT : XIO_ERR_TIMEOUT;
  const rig::device_array<uint32_t> got(1);
  const rig::device_array<int> bad(1);
  t.barrier();
  RUN(overfill, 1, 1, c.ctx, t.right, wanted, bad.data());
  t.barrier();
  RUN(take_rest, 1, 1, c.ctx, t.left, t.right, wanted, got.data(), bad.data());
  t.barrier();
  rig::expect(bad.get()[0] == 0, "nobody takes: step %d failed", bad.get()[0]);
}

}  // namespace

int main() {
  setenv("XIO_RDMA_RNR_RETRY", "3", 1);
  nobody_takes();
  unsetenv("XIO_RDMA_RNR_RETRY");
  const rig::team t;
  ring_of_pes p{};
  p.in = t.symmetric<unsigned char>(k_relayed);
  p.out = t.symmetric<unsigned char>(k_relayed);
  p.me = t.me, p.left = t.left, p.right = t.right;
  {
    const inboxes c(t, 8);
    relays<rig::thread>(t, c, p);
    relays<rig::wave>(t, c, p);
    relays<rig::workgroup>(t, c, p);
    misuse(t, c);
  }
  floods(t, p);
  crowds(t);
  return rig::verdict("immediate", t, false);
}
