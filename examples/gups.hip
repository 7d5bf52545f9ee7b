// SPDX-License-Identifier: MIT
// gups: every PE changes random words of a table that is spread over all PEs; each word is checked afterwards.
//
//   mpirun -np 4 examples/gups [WORDS [UPDATES]]       (or: xiorun -n 4 examples/gups); both for each PE
//
// The lesson: a thread need not wait for an atomic that fetches nothing. Threads post as many as they like, lanes that
// post together share a doorbell, and one quiet at the end completes them all. No update is lost when many PEs change
// one word, which a get and a put could not promise.
#include <chrono>

#include "arguments.hpp"
#include "session.hpp"

namespace {

struct table {
  xio_ctx_t ctx;
  uint64_t* words;  // symmetric: a PE's part
  uint64_t part;    // words of one PE
  uint64_t updates;
  int* status;
};

// The i-th random number of all PEs together; SplitMix64's mixing (Steele, Lea, Flood, OOPSLA 2014).
__host__ __device__ uint64_t random_at(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

__global__ void update(table t) {
  const uint64_t all = t.part * static_cast<uint64_t>(xio_n_pes(t.ctx));
  const uint64_t first = t.updates * static_cast<uint64_t>(xio_my_pe(t.ctx));
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < t.updates; i += uint64_t{gridDim.x} * blockDim.x) {
    const uint64_t value = random_at(first + i), at = value % all;
    xio_atomic_xor(t.ctx, &t.words[at % t.part], value, static_cast<int>(at / t.part));
  }
  // Says the first failure of all those atomics, too.
  const xio_status_t s = xio_quiet_wg(t.ctx);
  if (threadIdx.x == 0) keep(t.status, s);
}

// Counts the wrong words of this PE's part: it repeats the updates of all PEs on the host.
uint64_t count_wrong(const std::vector<uint64_t>& found, const table& t, int me, int n) {
  std::vector<uint64_t> expected(found.size());
  const uint64_t all = t.part * static_cast<uint64_t>(n), mine = t.part * static_cast<uint64_t>(me);
  for (uint64_t i = 0; i < t.updates * static_cast<uint64_t>(n); ++i) {
    const uint64_t value = random_at(i), at = value % all;
    if (at - mine < t.part) expected[at - mine] ^= value;
  }
  uint64_t wrong = 0;
  for (size_t i = 0; i < found.size(); ++i) wrong += found[i] != expected[i] ? 1 : 0;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "gups [WORDS [UPDATES]]");
  table t{};
  t.part = given.number("WORDS", 4096, 1, 1 << 26);
  t.updates = given.number("UPDATES", 16384, 1, 1 << 28);
  given.end();
  session s;
  t.ctx = s.ctx;
  t.words = s.symmetric<uint64_t>(t.part);
  t.status = s.status;
  s.barrier();

  const auto start = std::chrono::steady_clock::now();
  hipLaunchKernelGGL(update, dim3(4), dim3(128), 0, nullptr, t);
  s.wait("update");
  // Everybody's updates are complete once everybody has come here.
  s.barrier();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;

  const uint64_t wrong = count_wrong(session::read(t.words, t.part), t, s.me, s.n);
  if (s.me == 0)
    std::printf("%d PEs: %.6f giga updates a second\n", s.n, static_cast<double>(t.updates) * s.n / took.count() / 1e9);
  std::printf("PE %d: %llu of %llu words wrong\n", s.me, static_cast<unsigned long long>(wrong),
              static_cast<unsigned long long>(t.part));
  return s.end(wrong);
}
