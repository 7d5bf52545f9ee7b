// SPDX-License-Identifier: MIT
// The arithmetic of moe_alltoall.hip without its communication: tokens, their experts, and what must come out.
#pragma once
#include <cstdint>
#include <vector>

#include "xio/hip.h"

constexpr int k_experts_per_token = 2;

// Small whole numbers, so that every platform computes the same floats.
__host__ __device__ inline float apply_expert(int expert, float value) {
  return value * static_cast<float>(expert + 2) + static_cast<float>(expert);
}

inline uint64_t mixed(uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15u;
  return (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u >> 17;
}

inline float value_of(int pe, uint64_t token, uint64_t column) {
  return static_cast<float>(mixed(static_cast<uint64_t>(pe) << 40 | token << 20 | column) % 1024);
}

// Crowded experts and empty ones: the lower half of the dice all show expert 0.
inline int expert_of(int pe, uint64_t token, int k, int n) {
  const uint64_t dice = mixed(static_cast<uint64_t>(pe) << 32 | token);
  const uint64_t first = dice % 2 == 0 ? 0 : dice / 2 % static_cast<uint64_t>(n);
  return static_cast<int>((first + static_cast<uint64_t>(k)) % static_cast<uint64_t>(n));
}

inline std::vector<float> tokens_of(int pe, uint64_t tokens, uint64_t hidden) {
  std::vector<float> out(tokens * hidden);
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = value_of(pe, i / hidden, i % hidden);
  return out;
}

struct routing {
  std::vector<uint64_t> first;  // tokens of expert e are token[first[e] .. first[e + 1])
  std::vector<uint64_t> token;
  std::vector<uint64_t> row;  // where the reply for choice k of token t lies: row[t * k_experts_per_token + k]
};

inline routing route_tokens(int me, int n, uint64_t tokens, uint64_t room) {
  routing r;
  r.row.resize(tokens * k_experts_per_token);
  for (int e = 0; e < n; ++e) {
    r.first.push_back(r.token.size());
    for (uint64_t choice = 0; choice < r.row.size(); ++choice) {
      const uint64_t t = choice / k_experts_per_token;
      if (expert_of(me, t, static_cast<int>(choice % k_experts_per_token), n) != e) continue;
      r.row[choice] = static_cast<uint64_t>(e) * room + r.token.size() - r.first.back();
      r.token.push_back(t);
    }
  }
  r.first.push_back(r.token.size());
  return r;
}

inline uint64_t count_wrong(const std::vector<float>& y, int me, int n, uint64_t hidden) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < y.size(); ++i) {
    float sum = 0;
    for (int k = 0; k < k_experts_per_token; ++k)
      sum += apply_expert(expert_of(me, i / hidden, k, n), value_of(me, i / hidden, i % hidden));
    wrong += y[i] != sum ? 1 : 0;
  }
  return wrong;
}
