// SPDX-License-Identifier: MIT
// What tests of single instructions share: values at the edges, patterns of EXEC.
#pragma once
#include <cmath>

#include "../gtest.hpp"
#include "amdgpu/machine.hpp"

namespace amdgpu::test {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// A fault is a failure, with its sentence.
inline testing::AssertionResult is_well(const machine& m) {
  return m.shared.failed ? testing::AssertionFailure() << m.shared.failed.sentence() : testing::AssertionSuccess();
}

// In how many runs of memory that is late, one of each seed, wrong(seed) is true.
template <class Run>
unsigned seeds_in_which(unsigned seeds, const Run& wrong) {
  unsigned found = 0;
  for (u64 seed = 1; seed <= seeds; ++seed) found += wrong(seed);
  return found;
}

// None, one lane, every other lane, the upper half, all.
inline const u64 exec_patterns[] = {0, u64{1} << 5, 0x5555555555555555, 0xffffffff00000000, ~u64{0}};

inline u32 edge(unsigned i) {
  static const u32 values[] = {0,          1,          2,          31,         32,         0x7f,
                               0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x10000,
                               0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0x12345678,
                               0xdeadbeef, 0x00ff00ff, 0xaaaaaaaa, 0x55555555, 3,          63};
  return values[i % std::size(values)];
}
inline u64 edge64(unsigned i) { return edge(i) | u64{edge(i * 7 + i / 24)} << 32; }
inline float edge_float(unsigned i) {
  static const float values[] = {0.0f,     -0.0f,         1.0f,          -1.0f,          0.5f,        2.5f,
                                 -3.75f,   1e10f,         -1e10f,        1e-10f,         3.4e38f,     -3.4e38f,
                                 1.2e-38f, 1e-42f,        -1e-45f,       INFINITY,       -INFINITY,   NAN,
                                 65504.0f, 2147483648.0f, 4294967296.0f, -2147483648.0f, 0.49999997f, 8388609.0f};
  return values[i % std::size(values)];
}
inline double edge_double(unsigned i) {
  static const double values[] = {0.0,          -0.0,         1.0,           -1.0,     0.5,       2.5,
                                  -3.75,        1e100,        -1e100,        1e-100,   1.7e308,   -1.7e308,
                                  2.3e-308,     1e-310,       -5e-324,       INFINITY, -INFINITY, NAN,
                                  2147483647.5, 4294967295.5, -2147483649.0, 1e39,     0.1,       4503599627370497.5};
  return values[i % std::size(values)];
}

// The second and third source run through the values at other speeds, so that many pairs are tried.
inline unsigned second(unsigned lane, unsigned round) { return lane * 5 + round * 11 + lane / 24; }
inline unsigned third(unsigned lane, unsigned round) { return lane * 7 + round * 13 + 3; }

// The tables are for gfx1100 too where XIO_AMDGPU_TARGET says so (opcodes_gfx1100.sh), by names of gfx90a that LLVM
// knows there. It has not these, or by other names, under which opcodes_gfx1100.cpp tests them.
inline bool absent(const std::string& text) {
  const char* const target = std::getenv("XIO_AMDGPU_TARGET");
  if (!target || std::string(target) != "gfx1100") return false;
  for (const char* name : {"s_ff0_i32_", "v_add_u16", "v_sub_u16", "v_subrev_u16", "_sdwa", "v_addc_co_", "v_subb_co_",
                           "v_subbrev_co_", "v_pk_mov_b32", "v_mul_lo_u16", "v_lshlrev_b16", "v_lshrrev_b16",
                           "v_ashrrev_i16", "v_max_i16", "v_mad_u16", "v_add_i16"})
    if (text.find(name) != std::string::npos) return true;
  return false;
}

inline std::string hex(u64 x) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(x));
  return text;
}

// The function of a row of a table, by what it makes of a, b and c.
#define GIVES(...) [](u32 a, u32 b, u32 c) { return (void)a, (void)b, (void)c, static_cast<u32>(__VA_ARGS__); }

inline u32 clamped(i64 x) { return static_cast<u32>(std::clamp<i64>(x, INT32_MIN, INT32_MAX)); }

// The register, or two, that hold a T.
template <class T>
using word_of = std::conditional_t<sizeof(T) == 8, u64, u32>;
template <class T>
void put(machine& m, unsigned reg, unsigned lane, T x) {
  const auto word = std::bit_cast<word_of<T>>(x);
  if constexpr (sizeof(T) == 8)
    m.set_v64(reg, lane, word);
  else
    m.v(reg, lane) = word;
}
template <class T>
bool is_nan(word_of<T> x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(std::bit_cast<T>(x));
  return false;
}

// With `exec` the loaded text makes v8 = f(v0, v2, v4), or of pairs, in each lane that is on, and in no other.
template <class T, class F>
void expect_lanes(machine& m, const std::string& text, u64 exec, unsigned round, T (*edge)(unsigned), const F& f) {
  m.exec(exec);
  m.s(4) = 77;
  const unsigned n = m.w.wave32 ? 32 : amdgpu::lanes;
  for (unsigned l = 0; l < n; ++l) {
    put(m, 0, l, edge(l + round)), put(m, 2, l, edge(second(l, round))), put(m, 4, l, edge(third(l, round)));
    put(m, 8, l, word_of<T>{machine::poison});
  }
  ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
  for (unsigned l = 0; l < n; ++l) {
    const T a = edge(l + round), b = edge(second(l, round)), c = edge(third(l, round));
    const bool on = exec >> l & 1;
    const auto wanted = on ? std::bit_cast<word_of<T>>(static_cast<T>(f(a, b, c))) : word_of<T>{machine::poison};
    const auto got = static_cast<word_of<T>>(sizeof(T) == 8 ? m.v64(8, l) : m.v(8, l));
    ASSERT_TRUE(got == wanted || (on && is_nan<T>(got) && is_nan<T>(wanted)))
        << text << " lane " << l << " of " << a << ' ' << b << ' ' << c << ": " << hex(got) << " not " << hex(wanted);
  }
}

// The same for each row of a table of texts and functions.
template <class T, class Rows>
void expect_rows(const Rows& rows, T (*edge)(unsigned), unsigned rounds) {
  for (const auto& row : rows) {
    machine m;
    if (absent(row.text)) continue;
    m.load(row.text);
    for (u64 exec : exec_patterns)
      for (unsigned round = 0; round < rounds; ++round) {
        expect_lanes(m, row.text, exec, round, edge, row.f);
        if (testing::Test::HasFatalFailure()) return;
      }
  }
}

// Each row makes s[10:11] the mask of the lanes that are on and whose v0 and v2 have it.
template <class T, class Rows>
void expect_masks(const Rows& rows, T (*edge)(unsigned), unsigned round) {
  for (const auto& row : rows) {
    machine m;
    if (absent(row.text)) continue;
    m.load(row.text);
    for (u64 exec : exec_patterns) {
      m.exec(exec);
      u64 wanted = 0;
      for (unsigned l = 0; l < amdgpu::lanes; ++l) {
        put(m, 0, l, edge(l)), put(m, 2, l, edge(second(l, round)));
        wanted |= u64{(exec >> l & 1) && row.f(edge(l), edge(second(l, round)))} << l;
      }
      ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
      ASSERT_EQ(m.w.get64(10), wanted) << row.text;
    }
  }
}

// A wave loads a word with `load`, another device changes it, and behind the instructions `between` the wave loads it
// again with scope bits.
struct second_load {
  const char *bits, *between;
  bool fresh;  // with each seed
};
// prepare(machine) says which GPU it is.
inline void expect_fresh(const std::string& load, const std::function<void(machine&)>& prepare, const second_load& c) {
  const unsigned stale = seeds_in_which(39, [&](u64 seed) {
    machine m(seed);
    prepare(m);
    auto word = make_pages(4096);
    word.get()[0] = 1;
    m.visible.list(word.get(), 4096);
    m.exec(1);
    m.load(load + " v2, v[0:1], off\n s_waitcnt vmcnt(0)\n s_sleep 1\n" + c.between + "\n " + load +
           " v3, v[0:1], off " + c.bits + "\n s_waitcnt vmcnt(0)");
    m.set_v64(0, 0, reinterpret_cast<u64>(word.get()));
    m.start();
    run_wave(m.w, 1000);  // as far as s_sleep
    word.get()[0] = 2;
    while (m.w.now == wave::state::ready && !m.w.stopped) run_wave(m.w, 1000);
    EXPECT_FALSE(m.w.stopped) << m.shared.failed.why;
    EXPECT_EQ(m.v(2, 0), 1u);
    return m.v(3, 0) == 1;
  });
  EXPECT_EQ(stale == 0, c.fresh) << "bits '" << c.bits << "', between '" << c.between << "'";
}

}  // namespace amdgpu::test
