// SPDX-License-Identifier: MIT
// ping_pong: two kernels throw a message to and fro.
//
//   mpirun -np 2 examples/ping_pong [BYTES [ROUNDS]]   (or: xiorun -n 2 examples/ping_pong)
//
// The lesson: xio_put_signal is a message. A kernel that has seen the signal sees the data, on every route, and needs
// neither fence nor flag; and the message that comes back means that the buffer of the first may be written again, so
// no credits are needed.
#include <chrono>

#include "arguments.hpp"
#include "session.hpp"

namespace {

struct game {
  xio_ctx_t ctx;
  uint64_t* in;    // symmetric: the other's message
  uint64_t* out;   // symmetric, so that every engine reaches it: ours
  uint64_t* hits;  // symmetric: how many throws there have been, ours included
  uint64_t words, rounds;
  uint64_t* wrong;  // host memory
  int* status;
};

__host__ __device__ uint64_t word(uint64_t hit, uint64_t i) { return hit * 0x9e3779b97f4a7c15u + i; }

__global__ void play(game g) {
  const int me = xio_my_pe(g.ctx), other = 1 - me;
  uint64_t wrong = 0;
  // PE 0 throws the odd hits, PE 1 the even ones.
  for (uint64_t hit = 1; hit <= 2 * g.rounds; ++hit) {
    xio_status_t s;
    if ((hit & 1) == (me == 0 ? 1u : 0u)) {
      for (uint64_t i = 0; i < g.words; ++i) g.out[i] = word(hit, i);
      s = xio_put_signal(g.ctx, g.in, g.out, g.words * sizeof(uint64_t), g.hits, hit, XIO_SIGNAL_SET, other);
    } else {
      s = xio_signal_wait_until(g.ctx, g.hits, XIO_CMP_EQ, hit);
      for (uint64_t i = 0; i < g.words; ++i) wrong += g.in[i] != word(hit, i) ? 1 : 0;
    }
    if (s != XIO_OK) return keep(g.status, s);
  }
  *g.wrong = wrong;
  keep(g.status, xio_quiet(g.ctx));
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "ping_pong [BYTES [ROUNDS]]");
  game g{};
  const uint64_t bytes = given.number("BYTES", 64, 8, 1 << 20);
  g.rounds = given.number("ROUNDS", 1000, 1, 10000000);
  given.end();
  if (bytes % sizeof(uint64_t) != 0) leave(2, "BYTES is %llu, but wants a multiple of 8", (unsigned long long)bytes);

  session s(2, 2);
  g.ctx = s.ctx;
  g.words = bytes / sizeof(uint64_t);
  g.in = s.symmetric<uint64_t>(g.words);
  g.out = s.symmetric<uint64_t>(g.words);
  g.hits = s.symmetric<uint64_t>(1);
  g.wrong = session::on_host<uint64_t>(1);
  g.status = s.status;
  s.barrier();

  const auto start = std::chrono::steady_clock::now();
  hipLaunchKernelGGL(play, dim3(1), dim3(1), 0, nullptr, g);
  s.wait("play");
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;

  const uint64_t wrong = *g.wrong;
  std::printf("PE %d: %llu rounds of %llu bytes by way of %s, %.2f us one way, %llu words wrong\n", s.me,
              static_cast<unsigned long long>(g.rounds), static_cast<unsigned long long>(bytes),
              xio_route_name(s.world, s.ctx, bytes, 1 - s.me), took.count() / 2 / static_cast<double>(g.rounds),
              static_cast<unsigned long long>(wrong));
  (void)hipHostFree(g.wrong);
  return s.end(wrong);
}
