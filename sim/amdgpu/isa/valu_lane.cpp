// SPDX-License-Identifier: MIT
// Instructions that move values between lanes and the scalar side, and between VGPRs and AGPRs.
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

void readfirstlane(wave& w, const operation& o) {
  const u64 exec = w.exec();
  if (o.src[0].where != place::vgpr) {
    w.s[o.dst.index] = scalar32(w, o.src[0]);
    return;
  }
  w.s[o.dst.index] = w.rows(o.src[0].index)[exec ? std::countr_zero(exec) : 0];
}

void readlane(wave& w, const operation& o) {
  w.s[o.dst.index] = w.rows(o.src[0].index)[scalar32(w, o.src[1]) & (w.width() - 1)];
}

void writelane(wave& w, const operation& o) {
  w.rows(o.dst.index)[scalar32(w, o.src[1]) & (w.width() - 1)] = scalar32(w, o.src[0]);
}

void swap(wave& w, const operation& o) {
  const u64 exec = w.exec();
  u32* const a = w.rows(o.dst.index);
  u32* const b = w.rows(o.src[0].index);
  for (unsigned l = 0; l < lanes; ++l)
    if (exec >> l & 1) std::swap(a[l], b[l]);
}

void nothing(wave&, const operation&) {}

constexpr row rows[] = {
    {"v_readfirstlane_b32", "s=i", readfirstlane},
    {"v_readlane_b32", "s=is", readlane},
    {"v_writelane_b32", "i=ss", writelane},
    {"v_swap_b32", "i=i", swap},
    {"v_accvgpr_read_b32", "i=i", vop, each<u32, [](u32 a) { return a; }>},
    {"v_accvgpr_write_b32", "i=i", vop, each<u32, [](u32 a) { return a; }>},
    {"v_accvgpr_mov_b32", "i=i", vop, each<u32, [](u32 a) { return a; }>},
    {"v_nop", "*", nothing},
    {"v_clrexcp", "*", nothing},
};

}  // namespace

table valu_lane_rows() { return rows; }

}  // namespace amdgpu
