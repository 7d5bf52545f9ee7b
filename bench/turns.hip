// SPDX-License-Identifier: MIT
// What ops that go by loads and stores cost in instructions: one PE, one GPU, no link. Two workgroups call each other
// in turn through memory of their own GPU, and a single thread puts to it; beside each op a loop that does no more than
// it must, with the same accesses.
//
//   bench/turns [LAUNCHES [TURNS]]
//
// Prints nanoseconds of a round trip, or of an op, medians of the launches. xio-perf measures the link.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

using namespace xio::dev;

constexpr u64 k_places = 64;  // another one each turn: how long a flag takes depends on where it lies
constexpr unsigned k_threads = 256;
constexpr u32 k_warm_up = 100;
constexpr std::size_t k_block_bytes = 64 << 10;

struct place {
  alignas(128) u64 flag;
  alignas(128) u64 packet[2 * k_packet_words];
  unsigned char apart[4096 - 256];
};
struct words {
  place places[k_places];
  __device__ place& of(u64 turn) { return places[turn % k_places]; }
};

struct work {
  xio_ctx_t ctx;
  words* shared;  // symmetric: one for each workgroup
  char* data;     // symmetric: for each workgroup a source and a destination
  u64 base;       // what flags have been counted up to
  u32 turns;
  // Results, in host memory.
  u64* ticks;   // how many, and how many are a millisecond
  int* status;  // what failed
};

__device__ char* source(const work& w) { return w.data + 2 * blockIdx.x * k_block_bytes; }
__device__ char* target(const work& w) { return source(w) + k_block_bytes; }

__device__ bool keep(const work& w, xio_status_t status) {
  if (status == XIO_OK) return true;
  store<scope::system, order::relaxed>(w.status, static_cast<int>(status));
  return false;
}

template <class Body>
__device__ void timed(const work& w, Body&& body) {
  u64 start = 0;
  for (u32 i = 0; i < k_warm_up + w.turns; ++i) {
    if (i == k_warm_up) start = wall_clock();
    if (!body(w.base + i + 1)) return;
  }
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  w.ticks[0] = wall_clock() - start;
  w.ticks[1] = world_of(w.ctx).ticks_per_ms;
}

// Workgroup 0 calls, workgroup 1 replies.
template <class Turn>
__global__ void in_turn(work w) {
  words *mine = w.shared + blockIdx.x, *theirs = w.shared + (1 - blockIdx.x);
  timed(w, [&](u64 v) {
    if (blockIdx.x == 0) Turn::call(w, theirs->of(v), v);
    if (!Turn::wait(w, mine->of(v), v)) return false;
    if (blockIdx.x != 0) Turn::call(w, theirs->of(v), v);
    return true;
  });
}

template <class Op>
__global__ void alone(work w) {
  timed(w, [&](u64 v) { return Op::run(w, v); });
}

// Until look() holds, as plainly as can be; bounded, for the other workgroup may have failed.
template <class Look>
__device__ bool plainly(const work& w, Look&& look) {
  for (u32 i = 0; i < 100000000; ++i) {
    if (look()) return true;
    if constexpr (k_pauses_at_once) pause();
  }
  return keep(w, XIO_ERR_TIMEOUT);
}

// --- Signals -----------------------------------------------------------------------------------------

struct xio_flag {
  __device__ static void call(const work& w, place& p, u64 v) {
    keep(w, xio_signal_op(w.ctx, &p.flag, v, XIO_SIGNAL_SET, 0));
  }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    return keep(w, xio_signal_wait_until(w.ctx, &p.flag, XIO_CMP_EQ, v));
  }
};
struct plain_flag {
  __device__ static void call(const work&, place& p, u64 v) { store<scope::system, order::relaxed>(&p.flag, v); }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    return plainly(w, [&] { return load<scope::system, order::relaxed>(&p.flag) == v; });
  }
};

// --- Packets -----------------------------------------------------------------------------------------

template <u32 Bytes>
struct xio_message {
  static constexpr u32 words = Bytes / 4;
  __device__ static void call(const work& w, place& p, u64 v) {
    u32 out[words];
    XIO_UNROLL for (u32 i = 0; i < words; ++i) out[i] = static_cast<u32>(v) * 17 + i;
    keep(w, xio_put_packet(w.ctx, p.packet, out, Bytes, static_cast<u32>(v), 0));
  }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    u32 in[words] = {};
    if (!keep(w, xio_wait_packet(w.ctx, in, p.packet, Bytes, static_cast<u32>(v)))) return false;
    u32 wrong = 0;
    XIO_UNROLL for (u32 i = 0; i < words; ++i) wrong |= in[i] ^ (static_cast<u32>(v) * 17 + i);
    return wrong == 0 || keep(w, XIO_ERR_INTERNAL);
  }
};
template <u32 Bytes>
struct plain_message {
  static constexpr u32 words = Bytes / 4;
  __device__ static void call(const work&, place& p, u64 v) {
    u64 out[words];
    XIO_UNROLL for (u32 i = 0; i < words; ++i) out[i] = (v << 32) | (static_cast<u32>(v) * 17 + i);
#if defined(XIO_ON_CUDA)
    XIO_UNROLL for (u32 i = 0; i + 1 < words; i += 2) ptx::store_pair(p.packet + i, out[i], out[i + 1]);
    if (words == 1) store<scope::system, order::relaxed>(p.packet, out[0]);
#else
    XIO_UNROLL for (u32 i = 0; i < words; ++i) store<scope::system, order::relaxed>(p.packet + i, out[i]);
#endif
  }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    u64 in[words];
    const bool came = plainly(w, [&] {
#if defined(XIO_ON_CUDA)
      XIO_UNROLL for (u32 i = 0; i + 1 < words; i += 2) ptx::load_pair(p.packet + i, in[i], in[i + 1]);
      if (words == 1) in[0] = load<scope::system, order::relaxed>(p.packet);
#else
      XIO_UNROLL for (u32 i = 0; i < words; ++i) in[i] = load<scope::system, order::relaxed>(p.packet + i);
#endif
      u32 other = 0;
      XIO_UNROLL for (u32 i = 0; i < words; ++i) other |= static_cast<u32>(in[i] >> 32) ^ static_cast<u32>(v);
      return other == 0;
    });
    u32 wrong = 0;
    XIO_UNROLL for (u32 i = 0; i < words; ++i) wrong |= static_cast<u32>(in[i]) ^ (static_cast<u32>(v) * 17 + i);
    return came && (wrong == 0 || keep(w, XIO_ERR_INTERNAL));
  }
};

// --- Data and a signal -------------------------------------------------------------------------------

template <std::size_t Bytes>
struct xio_put_signalled {
  __device__ static void call(const work& w, place& p, u64 v) {
    xio_put_signal_nbi(w.ctx, target(w), source(w), Bytes, &p.flag, v, XIO_SIGNAL_SET, 0);
  }
  __device__ static bool wait(const work& w, place& p, u64 v) { return xio_flag::wait(w, p, v); }
};
template <std::size_t Bytes>
struct plain_put_signalled {
  __device__ static void call(const work& w, place& p, u64 v) {
    const u64* from = reinterpret_cast<const u64*>(source(w));
    u64* to = reinterpret_cast<u64*>(target(w));
    u64 data[Bytes / 8];
    XIO_UNROLL for (std::size_t i = 0; i < Bytes / 8; ++i) data[i] = from[i];
    XIO_UNROLL for (std::size_t i = 0; i < Bytes / 8; ++i) to[i] = data[i];
    store<scope::system, order::release>(&p.flag, v);
  }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    return plainly(w, [&] { return load<scope::system, order::acquire>(&p.flag) == v; });
  }
};

struct xio_put_signalled_wg {
  __device__ static void call(const work& w, place& p, u64 v) {
    xio_put_signal_nbi_wg(w.ctx, target(w), source(w), k_block_bytes, &p.flag, v, XIO_SIGNAL_SET, 0);
  }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    const auto g = workgroup_group::here();
    return by_leader(g, [&] { return posted{0, xio_flag::wait(w, p, v) ? XIO_OK : XIO_ERR_TIMEOUT}; }).status == XIO_OK;
  }
};
struct alignas(16) four {
  u32 words[4];
};
struct plain_put_signalled_wg {
  __device__ static void call(const work& w, place& p, u64 v) {
    constexpr std::size_t each = k_block_bytes / sizeof(four) / k_threads;
    const auto* from = reinterpret_cast<const four*>(source(w));
    auto* to = reinterpret_cast<four*>(target(w));
    four data[each];
    XIO_UNROLL for (std::size_t i = 0; i < each; ++i) data[i] = from[threadIdx.x + i * k_threads];
    XIO_UNROLL for (std::size_t i = 0; i < each; ++i) to[threadIdx.x + i * k_threads] = data[i];
    __syncthreads();
    if (threadIdx.x == 0) store<scope::system, order::release>(&p.flag, v);
  }
  __device__ static bool wait(const work& w, place& p, u64 v) {
    if (threadIdx.x == 0) plainly(w, [&] { return load<scope::system, order::acquire>(&p.flag) == v; });
    __syncthreads();
    return true;
  }
};

// --- A single thread ---------------------------------------------------------------------------------

struct xio_put_word {
  __device__ static bool run(const work& w, u64) {
    xio_put_nbi(w.ctx, target(w), source(w), 8, 0);
    return keep(w, xio_quiet(w.ctx));
  }
};
struct plain_put_word {
  __device__ static bool run(const work& w, u64) {
    *reinterpret_cast<volatile u64*>(target(w)) = *reinterpret_cast<const volatile u64*>(source(w));
    fence<scope::system, order::seq_cst>();
    return true;
  }
};
struct xio_add {
  __device__ static bool run(const work& w, u64 v) {
    return xio_atomic_fetch_add<u64>(w.ctx, reinterpret_cast<u64*>(target(w)), v & 1, 0) != ~u64{0};
  }
};
struct plain_add {
  __device__ static bool run(const work& w, u64 v) {
    return fetch_add<scope::system, order::relaxed>(reinterpret_cast<u64*>(target(w)), v & 1) != ~u64{0};
  }
};

// --- The host ----------------------------------------------------------------------------------------

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "bench/turns: %s: %s\n", what, why);
  std::exit(1);
}
void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) give_up(what, xio_last_error());
}
void check(hipError_t e, const char* what) {
  if (e != hipSuccess) give_up(what, hipGetErrorString(e));
}
#define CHECK(call) check((call), #call)

unsigned long number(const char* text, unsigned long most) {
  char* end = nullptr;
  const unsigned long n = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || n == 0 || n > most)
    give_up(text, "is no number from 1 on, or too large; bench/turns [LAUNCHES [TURNS]]");
  return n;
}

struct session {
  xio_world_t* world = nullptr;
  work w{};
  unsigned long launches = 21;

  double median(const char* what, void (*kernel)(work), unsigned groups, unsigned threads) {
    std::vector<double> each;
    for (unsigned long i = 0; i < launches; ++i) {
      hipLaunchKernelGGL(kernel, dim3(groups), dim3(threads), 0, nullptr, w);
      CHECK(hipDeviceSynchronize());
      if (*w.status != XIO_OK) give_up(what, xio_status_name(static_cast<xio_status_t>(*w.status)));
      w.base += k_warm_up + w.turns;
      each.push_back(static_cast<double>(w.ticks[0]) * 1e6 / static_cast<double>(w.ticks[1]) / w.turns);
    }
    std::sort(each.begin(), each.end());
    return each[each.size() / 2];
  }
  void row(const char* what, void (*xio)(work), void (*plain)(work), unsigned groups, unsigned threads) {
    const double x = median(what, xio, groups, threads), p = median(what, plain, groups, threads);
    std::printf("| %s | %.0f | %.0f | %.2f |\n", what, x, p, x / p);
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  session s;
  s.w.turns = 1000;
  if (argc > 1) s.launches = number(argv[1], 1000000);
  if (argc > 2) s.w.turns = static_cast<u32>(number(argv[2], 100000000));
  CHECK(xio_init(nullptr, &s.world));
  if (xio_n_pes(s.world) != 1) give_up("the world", "has several PEs; bench/turns is for one, without a launcher");
  CHECK(xio_ctx_create(s.world, nullptr, &s.w.ctx));
  CHECK(xio_calloc(s.world, 2, sizeof(words), reinterpret_cast<void**>(&s.w.shared)));
  CHECK(xio_calloc(s.world, 4, k_block_bytes, reinterpret_cast<void**>(&s.w.data)));
  CHECK(hipHostMalloc(reinterpret_cast<void**>(&s.w.ticks), 2 * sizeof(u64), 0));
  CHECK(hipHostMalloc(reinterpret_cast<void**>(&s.w.status), sizeof(int), 0));
  *s.w.status = XIO_OK;
  std::printf("| ns | XIO | plain | XIO / plain |\n|---|---|---|---|\n");
  s.row("signal, round trip", in_turn<xio_flag>, in_turn<plain_flag>, 2, 1);
  s.row("packet of 4 B, round trip", in_turn<xio_message<4>>, in_turn<plain_message<4>>, 2, 1);
  s.row("packet of 64 B, round trip", in_turn<xio_message<64>>, in_turn<plain_message<64>>, 2, 1);
  s.row("put_signal of 16 B, round trip", in_turn<xio_put_signalled<16>>, in_turn<plain_put_signalled<16>>, 2, 1);
  s.row("put_signal of 64 KiB by a block, round trip", in_turn<xio_put_signalled_wg>, in_turn<plain_put_signalled_wg>,
        2, k_threads);
  s.row("put of 8 B and quiet", alone<xio_put_word>, alone<plain_put_word>, 1, 1);
  s.row("fetch_add", alone<xio_add>, alone<plain_add>, 1, 1);
  CHECK(xio_ctx_destroy(s.world, s.w.ctx));
  CHECK(xio_finalize(s.world));
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
