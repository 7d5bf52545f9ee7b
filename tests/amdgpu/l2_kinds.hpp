// SPDX-License-Identifier: MIT
// The beginning of all tests of the L2s: kinds of memory, by where it lies and how caches may keep it, and a workgroup
// before an L2.
#pragma once
#include "amdgpu/memory/l2_cache.hpp"
#include "amdgpu/opcodes.hpp"

namespace amdgpu::test {

using place_kind = mapping::place;
using caching = mapping::caching;

// A run that ignores an order may go well by luck; one of so many seeds shows it.
constexpr unsigned seeds = 24;

struct kind {
  place_kind where;
  caching how;
};
inline constexpr kind k_local{place_kind::local, caching::coarse}, k_peer{place_kind::peer, caching::coarse},
    k_host{place_kind::host, caching::coarse};
inline constexpr kind k_coarse[] = {k_local, k_peer, k_host};
inline constexpr kind k_fine[] = {{place_kind::local, caching::fine},    {place_kind::peer, caching::fine},
                                  {place_kind::host, caching::fine},     {place_kind::local, caching::uncached},
                                  {place_kind::peer, caching::uncached}, {place_kind::host, caching::uncached}};

// A workgroup of one wave. v[0:1] holds the address of `data`, memory of one kind; v4 is 41, v5 is 1.
struct l2_user {
  l2_user(target of, u64 seed, l2_cache& l2, u32 (&data)[64], kind k) : m(seed), late(m.visible, seed, &l2) {
    m.shared.how.target = of;
    m.shared.memory = &late;
    m.wave32(of == target::gfx1100);
    m.visible.list(data, sizeof(data), true, k.where, k.how);
    m.exec(1);
    m.set_v64(0, 0, reinterpret_cast<u64>(data));
    m.v(4, 0) = 41;
    m.v(5, 0) = 1;
  }
  // To the first s_sleep, or to the end.
  void begin(const std::string& text) {
    m.load(text);
    m.start();
    turn();
  }
  // To the next one.
  void turn() {
    late.pass_turn();
    run_wave(m.w, 100);
    ASSERT_TRUE(is_well(m));
  }
  void run(const std::string& text) {
    begin(text);
    ASSERT_EQ(m.w.now, wave::state::ended);
  }
  machine m;
  adversary late;
};

}  // namespace amdgpu::test
