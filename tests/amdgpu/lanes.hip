// SPDX-License-Identifier: MIT
// Lanes of a wave that XIO lets act together: which lanes form a group, and in which order the groups come. A wave has
// as many lanes as the GPU's waves have, 64 or 32.
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "xio/device/platform/lanes.hpp"

namespace {

struct seen {
  std::uint64_t mask;   // of the group in which the lane was
  std::uint64_t first;  // what the group's leader told
  std::uint32_t turn;   // how many groups came before, as the leader found it
  std::uint32_t calls;  // how often the lane's body ran
};

// Lanes in `present` call with their keys, `rounds` times; lane i leaves after i % stay + 1 of them.
__global__ void group(const std::uint64_t* keys, std::uint64_t present, unsigned rounds, unsigned stay,
                      std::uint32_t* turns, seen* out) {
  const unsigned lane = threadIdx.x;
  if ((present >> lane & 1) == 0) return;
  for (unsigned round = 0; round < rounds && round <= lane % stay; ++round) {
    seen& mine = out[round * blockDim.x + lane];
    xio::dev::for_each_key(keys[round * blockDim.x + lane], [&](const xio::dev::lanes& g) {
      std::uint32_t turn = 0;
      if (g.leader()) turn = atomicAdd(&turns[round], 1u);
      mine.turn = static_cast<std::uint32_t>(g.first(turn));
      mine.first = g.first((std::uint64_t{lane} << 40) + round);
      mine.mask = g.mask;
      mine.calls += 1;
    });
  }
}

unsigned wave = 0;  // its lanes
int failures = 0;

void must(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  std::printf("%s: %s\n", what, hipGetErrorString(error));
  std::exit(2);
}
#define MUST(call) must((call), #call)

unsigned lowest(std::uint64_t mask) { return static_cast<unsigned>(__builtin_ctzll(mask)); }

struct calls {
  const char* name;
  std::vector<std::uint64_t> keys;
  std::uint64_t present;
  unsigned rounds, stay;

  std::uint64_t key(unsigned round, unsigned lane) const { return keys[round * wave + lane]; }
  // The lanes that call in a round.
  std::uint64_t here(unsigned round) const {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < wave; ++i)
      if ((present >> i & 1) != 0 && round <= i % stay) mask |= std::uint64_t{1} << i;
    return mask;
  }
  // Those of them that have the lane's key.
  std::uint64_t same(unsigned round, unsigned lane) const {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < wave; ++i)
      if ((here(round) >> i & 1) != 0 && key(round, i) == key(round, lane)) mask |= std::uint64_t{1} << i;
    return mask;
  }
};

std::vector<seen> run(const calls& c) {
  std::vector<seen> got(c.rounds * wave);
  std::uint64_t* keys = nullptr;
  std::uint32_t* turns = nullptr;
  seen* out = nullptr;
  MUST(hipMalloc(&keys, c.keys.size() * sizeof c.keys[0]));
  MUST(hipMalloc(&turns, c.rounds * sizeof *turns));
  MUST(hipMalloc(&out, got.size() * sizeof got[0]));
  MUST(hipMemcpy(keys, c.keys.data(), c.keys.size() * sizeof c.keys[0], hipMemcpyHostToDevice));
  MUST(hipMemset(turns, 0, c.rounds * sizeof *turns));
  MUST(hipMemset(out, 0, got.size() * sizeof got[0]));
  hipLaunchKernelGGL(group, dim3(1), dim3(wave), 0, nullptr, keys, c.present, c.rounds, c.stay, turns, out);
  MUST(hipMemcpy(got.data(), out, got.size() * sizeof got[0], hipMemcpyDeviceToHost));
  MUST(hipFree(keys));
  MUST(hipFree(turns));
  MUST(hipFree(out));
  return got;
}

void expect(const calls& c, unsigned round, unsigned lane, const seen& got, const seen& wanted) {
  if (got.mask == wanted.mask && got.first == wanted.first && got.turn == wanted.turn && got.calls == wanted.calls)
    return;
  if (++failures > 20) return;
  const auto say = [](const char* what, const seen& s) {
    std::printf("  %s mask %016llx, leader's word %llx, turn %u, %u calls\n", what,
                static_cast<unsigned long long>(s.mask), static_cast<unsigned long long>(s.first), s.turn, s.calls);
  };
  std::printf("%s, round %u, lane %u:\n", c.name, round, lane);
  say("found", got);
  say("must be", wanted);
}

void check(const char* name, const std::vector<std::uint64_t>& keys, std::uint64_t present, unsigned rounds,
           unsigned stay) {
  const calls c{name, keys, present, rounds, stay};
  const std::vector<seen> got = run(c);
  for (unsigned round = 0; round < rounds; ++round) {
    const std::uint64_t here = c.here(round);
    // Groups come in the order of their lowest lanes.
    std::uint32_t turn = 0;
    for (std::uint64_t left = here; left != 0; ++turn) {
      const std::uint64_t mask = c.same(round, lowest(left));
      const seen wanted{mask, (std::uint64_t{lowest(mask)} << 40) + round, turn, 1};
      for (std::uint64_t m = mask; m != 0; m &= m - 1)
        expect(c, round, lowest(m), got[round * wave + lowest(m)], wanted);
      left &= ~mask;
    }
    for (unsigned i = 0; i < wave; ++i)
      if ((here >> i & 1) == 0) expect(c, round, i, got[round * wave + i], seen{});
  }
}

// Keys of 64 bits, of which sometimes only the upper half differs.
std::vector<std::uint64_t> keys_of(unsigned kinds, unsigned rounds, unsigned shift) {
  std::vector<std::uint64_t> keys(rounds * wave);
  std::uint32_t random = 12345;
  for (std::uint64_t& k : keys) {
    random = random * 1664525u + 1013904223u;
    k = (std::uint64_t{(random >> 16) % kinds} << shift) + 0x700000000000;
  }
  return keys;
}

// Bits of a wave of 64 lanes, of which one of 32 has the upper half.
std::uint64_t lanes_of(std::uint64_t bits) { return bits >> (64 - wave); }

void find_wave() {
  hipDeviceProp_t p;
  MUST(hipGetDeviceProperties(&p, 0));
  wave = static_cast<unsigned>(p.warpSize);
  if (wave == 32 || wave == 64) return;
  std::printf("lanes: a wave of %u lanes is not known\n", wave);
  std::exit(2);
}

}  // namespace

int main() {
  find_wave();
  const std::uint64_t all = lanes_of(~std::uint64_t{0});
  check("one key", keys_of(1, 1, 0), all, 1, 1);
  check("two keys", keys_of(2, 1, 6), all, 1, 1);
  check("three keys that differ above 32 bits", keys_of(3, 1, 33), all, 1, 1);
  check("a key for each lane", keys_of(65536, 1, 3), all, 1, 1);
  check("lanes that are not there", keys_of(3, 1, 6), lanes_of(0x8421f00f0ff0a5a6), 1, 1);
  check("few lanes", keys_of(65536, 1, 6), lanes_of(0x8000001000000010), 1, 1);
  check("one lane", keys_of(2, 1, 6), lanes_of(std::uint64_t{1} << 63), 1, 1);
  check("rounds that lanes leave", keys_of(4, 8, 6), all, 8, 8);
  check("rounds that lanes leave, some not there", keys_of(4, 8, 34), lanes_of(0xfffffff0ffff0fff), 8, 5);
  std::printf("lanes: waves of %u, %d failures\n", wave, failures);
  return failures == 0 ? 0 : 1;
}
