// SPDX-License-Identifier: MIT
// The 64-byte kernel descriptor (LLVM AMDGPUUsage, "Kernel Descriptor", fields of GFX90A and GFX11).
#pragma once
#include <cstdint>

namespace amdgpu {

struct kernel_descriptor {
  std::uint32_t group_bytes, private_bytes, kernarg_bytes;
  std::uint8_t reserved0[4];
  std::int64_t entry_offset;  // from the descriptor's address
  std::uint8_t reserved1[20];
  std::uint32_t rsrc3, rsrc1, rsrc2;
  std::uint16_t properties, preload;
  std::uint8_t reserved2[4];

  unsigned user_sgprs() const { return rsrc2 >> 1 & 31; }
  bool wave_offset() const { return rsrc2 & 1; }
  bool group_id(unsigned axis) const { return rsrc2 >> (7 + axis) & 1; }
  bool group_info() const { return rsrc2 >> 10 & 1; }
  bool wants(unsigned property) const { return properties >> property & 1; }
  // MODE: rounding and denormals, DX10_CLAMP, IEEE.
  std::uint32_t mode() const { return (rsrc1 >> 12 & 0xff) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9; }
  unsigned registers() const { return ((rsrc1 & 63) + 1) * 8; }
  unsigned first_agpr() const { return ((rsrc3 & 63) + 1) * 4; }
  // gfx1100's: waves of 32 lanes take VGPRs by eight, those of 64 by four, and a workgroup's waves may be on both
  // compute units of a pair.
  bool wave32() const { return wants(10); }
  unsigned rdna_registers() const { return ((rsrc1 & 63) + 1) * (wave32() ? 8 : 4); }
  bool on_pair() const { return rsrc1 >> 29 & 1; }
};
static_assert(sizeof(kernel_descriptor) == 64);

// Bits of `properties`, in the order in which their SGPRs come.
enum property : unsigned {
  private_buffer,
  dispatch_packet,
  queue_pointer,
  kernarg_pointer,
  dispatch_number,
  flat_scratch_init,
  private_size
};

}  // namespace amdgpu
