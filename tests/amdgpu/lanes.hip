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

// The lanes that are with a lane, as it finds them.
struct company {
  std::uint64_t here;   // all of them
  std::uint64_t group;  // those with the key of the first; 0: the lane is none of these
  std::uint64_t odd;    // those with an odd number
  std::uint32_t leads;  // the lane is the first
  std::uint32_t same;   // its address is the first's
};
__device__ inline __attribute__((always_inline)) company look(std::uint64_t key, unsigned number) {
  company found{};
  const xio::dev::lanes here = xio::dev::converged_lanes();
  found.here = here.mask;
  found.leads = here.leader() ? 1 : 0;
  found.odd = here.ballot((number & 1) != 0);
  xio::dev::lanes group{};
  if (xio::dev::joins_group(key, number >> 8, &group)) found.group = group.mask;
  found.same = xio::dev::is_first_lanes(*reinterpret_cast<const char*>(key)) ? 1 : 0;
  return found;
}
// All lanes look, then those in `inner`, by the same words: a compiler may not take what the first look found for the
// second.
__global__ void inside(const std::uint64_t* keys, const unsigned* numbers, std::uint64_t inner, company* out) {
  const unsigned lane = threadIdx.x, number = numbers[lane];
  const std::uint64_t key = keys[lane];
  const company before = look(key, number);
  company in{};
  if ((inner >> lane & 1) != 0) in = look(key, number);
  out[lane] = before;
  out[blockDim.x + lane] = in;
}

// Odd lanes take one arm of a branch and the others the other. Both begin or end with the same words, which a compiler
// may not do once for all.
constexpr unsigned k_arms = 7;
struct sides {
  std::uint64_t odd;           // the lanes of the first arm
  unsigned of_odd, of_others;  // a lane in each
};
__global__ void arms(const unsigned* numbers, sides s, std::uint64_t* out, std::uint64_t* apart) {
  const unsigned lane = threadIdx.x, n = numbers[lane];
  const bool odd = (s.odd >> lane & 1) != 0;
  std::uint64_t found[k_arms];
  if (odd) {
    found[0] = xio::dev::converged_mask();
    apart[lane] = found[0];
  } else {
    found[0] = xio::dev::converged_mask();
    apart[64 + lane] = found[0] + 1;
  }
  if (odd) {
    apart[lane] = 7;
    found[1] = xio::dev::converged_mask();
  } else {
    apart[64 + lane] = 9;
    found[1] = xio::dev::converged_mask();
  }
  if (odd) {
    found[2] = xio::dev::uniform_value(n);
    apart[lane] = found[2];
  } else {
    found[2] = xio::dev::uniform_value(n);
    apart[64 + lane] = found[2] + 1;
  }
  if (odd) {
    apart[lane] = 11;
    found[3] = xio::dev::uniform_value(n);
  } else {
    apart[64 + lane] = 13;
    found[3] = xio::dev::uniform_value(n * 3);
  }
  std::uint64_t group = 0;
  if (odd) {
    found[4] = xio::dev::group_mask(n & 3, 0, &group) ? group : 0;
    apart[lane] = group;
  } else {
    found[4] = xio::dev::group_mask(n & 3, 0, &group) ? group : 0;
    apart[64 + lane] = group + 1;
  }
  if (odd) {
    apart[lane] = 15;
    found[5] = xio::dev::same_key_mask(n & 3);
  } else {
    apart[64 + lane] = 17;
    found[5] = xio::dev::same_key_mask(n & 7);
  }
  if (odd) {
    apart[lane] = 19;
    found[6] = xio::dev::value_of_lane(n, s.of_odd);
  } else {
    apart[64 + lane] = 21;
    found[6] = xio::dev::value_of_lane(n * 3, s.of_others);
  }
  for (unsigned i = 0; i < k_arms; ++i) out[lane * k_arms + i] = found[i];
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

company company_of(const std::vector<std::uint64_t>& keys, const std::vector<unsigned>& numbers, std::uint64_t here,
                   unsigned lane) {
  company wanted{};
  if ((here >> lane & 1) == 0) return wanted;
  const unsigned first = lowest(here);
  const auto in_group = [&](unsigned i) { return keys[i] == keys[first] && numbers[i] >> 8 == numbers[first] >> 8; };
  for (unsigned i = 0; i < wave; ++i) {
    if ((here >> i & 1) == 0) continue;
    if ((numbers[i] & 1) != 0) wanted.odd |= std::uint64_t{1} << i;
    if (in_group(i)) wanted.group |= std::uint64_t{1} << i;
  }
  if (!in_group(lane)) wanted.group = 0;
  wanted.here = here;
  wanted.leads = lane == first ? 1 : 0;
  wanted.same = keys[lane] == keys[first] ? 1 : 0;
  return wanted;
}

void expect(const char* name, unsigned lane, const company& got, const company& wanted) {
  if (got.here == wanted.here && got.group == wanted.group && got.odd == wanted.odd && got.leads == wanted.leads &&
      got.same == wanted.same)
    return;
  if (++failures > 20) return;
  const auto say = [](const char* what, const company& c) {
    std::printf("  %s here %016llx, group %016llx, odd %016llx, leads %u, same address %u\n", what,
                static_cast<unsigned long long>(c.here), static_cast<unsigned long long>(c.group),
                static_cast<unsigned long long>(c.odd), c.leads, c.same);
  };
  std::printf("%s, lane %u:\n", name, lane);
  say("found", got);
  say("must be", wanted);
}

void check_inside(const char* name, const std::vector<std::uint64_t>& keys, std::uint64_t inner) {
  std::vector<unsigned> numbers(wave);
  for (unsigned i = 0; i < wave; ++i) numbers[i] = i * 37 % 64 + (i % 5 == 0 ? 256 : 0);
  std::vector<company> got(2 * wave);
  std::uint64_t* given = nullptr;
  unsigned* given_numbers = nullptr;
  company* out = nullptr;
  MUST(hipMalloc(&given, wave * sizeof keys[0]));
  MUST(hipMalloc(&given_numbers, wave * sizeof numbers[0]));
  MUST(hipMalloc(&out, got.size() * sizeof got[0]));
  MUST(hipMemcpy(given, keys.data(), wave * sizeof keys[0], hipMemcpyHostToDevice));
  MUST(hipMemcpy(given_numbers, numbers.data(), wave * sizeof numbers[0], hipMemcpyHostToDevice));
  MUST(hipMemset(out, 0xff, got.size() * sizeof got[0]));
  hipLaunchKernelGGL(inside, dim3(1), dim3(wave), 0, nullptr, given, given_numbers, inner, out);
  MUST(hipMemcpy(got.data(), out, got.size() * sizeof got[0], hipMemcpyDeviceToHost));
  MUST(hipFree(given));
  MUST(hipFree(given_numbers));
  MUST(hipFree(out));
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - wave);
  for (unsigned i = 0; i < wave; ++i) {
    expect(name, i, got[i], company_of(keys, numbers, all, i));
    expect(name, i, got[wave + i], company_of(keys, numbers, inner, i));
  }
}

void check_arms(const char* name, std::uint64_t odd) {
  std::vector<unsigned> numbers(wave);
  for (unsigned i = 0; i < wave; ++i) numbers[i] = i * 37 % 64 + 5;
  std::vector<std::uint64_t> got(wave * k_arms);
  unsigned* given = nullptr;
  std::uint64_t *out = nullptr, *apart = nullptr;
  MUST(hipMalloc(&given, wave * sizeof numbers[0]));
  MUST(hipMalloc(&out, got.size() * sizeof got[0]));
  MUST(hipMalloc(&apart, 128 * sizeof got[0]));
  MUST(hipMemcpy(given, numbers.data(), wave * sizeof numbers[0], hipMemcpyHostToDevice));
  const std::uint64_t others = ~odd & ~std::uint64_t{0} >> (64 - wave);
  const sides s{odd, lowest(odd), lowest(others)};
  hipLaunchKernelGGL(arms, dim3(1), dim3(wave), 0, nullptr, given, s, out, apart);
  MUST(hipMemcpy(got.data(), out, got.size() * sizeof got[0], hipMemcpyDeviceToHost));
  MUST(hipFree(given));
  MUST(hipFree(out));
  MUST(hipFree(apart));
  for (unsigned i = 0; i < wave; ++i) {
    const bool is_odd = (odd >> i & 1) != 0;
    const std::uint64_t here = is_odd ? odd : others;
    const unsigned first = numbers[lowest(here)], of_arm = is_odd ? first : first * 3;
    const auto alike = [&](unsigned bits) {
      std::uint64_t mask = 0;
      for (unsigned k = 0; k < wave; ++k)
        if ((here >> k & 1) != 0 && ((numbers[k] ^ first) & bits) == 0) mask |= std::uint64_t{1} << k;
      return mask;
    };
    const bool in_group = ((numbers[i] ^ first) & 3) == 0;
    const std::uint64_t wanted[k_arms] = {here,  here, first, of_arm, in_group ? alike(3) : 0, alike(is_odd ? 3 : 7),
                                          of_arm};
    for (unsigned k = 0; k < k_arms; ++k)
      if (got[i * k_arms + k] != wanted[k] && ++failures <= 20)
        std::printf("%s, lane %u, branch %u: found %llx, must be %llx\n", name, i, k,
                    static_cast<unsigned long long>(got[i * k_arms + k]), static_cast<unsigned long long>(wanted[k]));
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
  check_inside("one key, then odd lanes", keys_of(1, 1, 0), lanes_of(0xaaaaaaaaaaaaaaaa));
  check_inside("three keys, then few lanes", keys_of(3, 1, 6), lanes_of(0x8421f00f0ff0a5a0));
  check_inside("keys that differ above 32 bits, then the last lanes", keys_of(3, 1, 33), lanes_of(0xfff0000000000000));
  check_arms("arms of odd and even lanes", lanes_of(0xaaaaaaaaaaaaaaaa));
  check_arms("arms of few lanes and many", lanes_of(0x8421f00f0ff0a5a0));
  std::printf("lanes: waves of %u, %d failures\n", wave, failures);
  return failures == 0 ? 0 : 1;
}
