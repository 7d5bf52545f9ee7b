// SPDX-License-Identifier: MIT
// How many wave instructions the interpreter runs in a second, with all 64 lanes active, on one core.
#include <time.h>

#include <cstdio>

#include "amdgpu/machine.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

struct kernel {
  const char* name;
  const char* body;  // repeated by a scalar loop
};

const kernel kernels[] = {
    {"integer: add, shift, and, xor, mul, compare, select, addc",
     "v_add_u32 v2, v2, v3\n v_lshlrev_b32 v4, 3, v2\n v_and_b32 v5, v4, v3\n v_xor_b32 v2, v5, v2\n"
     "v_mul_lo_u32 v6, v2, v3\n v_cmp_gt_u32 vcc, v6, v4\n v_cndmask_b32 v2, v6, v2, vcc\n"
     "v_add_co_u32 v7, vcc, v2, v6\n v_addc_co_u32 v8, vcc, v8, v5, vcc\n v_add3_u32 v3, v3, v7, 1\n"},
    {"float: fma, mul, add, max, conversions, double fma",
     "v_fma_f32 v2, v3, v4, v2\n v_mul_f32 v5, v2, v3\n v_add_f32 v4, v5, v4\n v_max_f32 v6, v5, v4\n"
     "v_cvt_f64_f32 v[8:9], v6\n v_fma_f64 v[10:11], v[8:9], v[8:9], v[10:11]\n v_add_f64 v[8:9], v[8:9], v[10:11]\n"
     "v_cvt_f32_f64 v7, v[8:9]\n v_sub_f32 v2, v7, v2\n v_mul_f32 v3, 0.5, v3\n"},
    {"memory: load, add, store, advance",
     "global_load_dword v2, v[0:1], off\n global_load_dwordx2 v[4:5], v[0:1], off\n s_waitcnt vmcnt(0)\n"
     "v_add_u32 v2, v2, v4\n global_store_dword v[0:1], v2, off\n v_add_u32 v6, v6, v5\n"
     "s_add_u32 s6, s6, 4\n s_and_b32 s6, s6, 0xff\n"},
    {"private: spills by buffer_store and buffer_load",
     "buffer_store_dword v2, off, s[0:3], s5 offset:4\n buffer_store_dword v3, off, s[0:3], s5 offset:8\n"
     "s_waitcnt vmcnt(0)\n buffer_load_dword v4, off, s[0:3], s5 offset:4\n"
     "buffer_load_dword v5, off, s[0:3], s5 offset:8\n s_waitcnt vmcnt(0)\n v_add_u32 v2, v4, v5\n"},
    {"scalar: add, compare, shift, branch not taken",
     "s_add_u32 s6, s6, s7\n s_addc_u32 s7, s7, 0\n s_lshl_b32 s8, s6, 2\n s_and_b64 s[10:11], s[6:7], s[8:9]\n"
     "s_cmp_eq_u32 s6, 0x7fffffff\n s_cbranch_scc1 0\n s_xor_b32 s9, s8, s6\n"},
};

// Of this process: other processes of the machine do not count.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void measure(const kernel& k) {
  machine m;
  std::vector<std::uint32_t> data(64 * 4), scratch(64 * 64);
  m.visible.list(data.data(), data.size() * 4);
  for (unsigned l = 0; l < lanes; ++l) m.set_v64(0, l, reinterpret_cast<std::uint64_t>(data.data()) + 8 * l);
  for (unsigned n = 2; n < 12; ++n)
    for (unsigned l = 0; l < lanes; ++l) m.v(n, l) = 0x3f800000 + n * 977 + l;
  m.w.scratch = reinterpret_cast<std::uint64_t>(scratch.data());
  m.w.scratch_bytes = scratch.size() * 4;
  m.s(0) = static_cast<std::uint32_t>(m.w.scratch);
  m.s(1) = static_cast<std::uint32_t>(m.w.scratch >> 32) | 1u << 31;
  m.s(2) = ~0u;
  m.s(3) = 1u << 23 | 3u << 21;
  m.s(5) = 0;
  constexpr unsigned rounds = 300'000;
  m.load("s_mov_b32 s20, " + std::to_string(rounds) + "\nloop:\n" + k.body +
         "\ns_sub_u32 s20, s20, 1\n s_cmp_lg_u32 s20, 0\n s_cbranch_scc1 loop");
  const double start = cpu_seconds();
  const fault& f = m.go();
  const double took = cpu_seconds() - start;
  if (f) std::printf("%s\n", f.sentence().c_str());
  std::printf("%7.1f million wave instructions a second  %s\n",
              static_cast<double>(m.shared.counted.instructions) / took / 1e6, k.name);
}

}  // namespace

int main() {
  for (const kernel& k : kernels) measure(k);
  return 0;
}
