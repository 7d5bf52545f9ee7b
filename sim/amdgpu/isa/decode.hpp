// SPDX-License-Identifier: MIT
// From text to operations, and the cache of decoded code.
#pragma once
#include <atomic>

#include "amdgpu/isa/launch.hpp"
#include "amdgpu/isa/operation.hpp"

namespace amdgpu {

// Decoded instructions of 4 KiB of code, one slot per dword. Slots fill as instructions are first reached.
struct code_page {
  static constexpr std::uint64_t bytes = 4096;
  std::array<std::atomic<const operation*>, bytes / 4> slot{};
};

// The page of an address; made if it is new. It lives as long as the process. Waves of 32 lanes have pages of their
// own, as the same bytes name other masks there.
const code_page* page_of(std::uint64_t address, bool wave32);

// The operation at the wave's pc, whose bytes are CODE; decoded anew if what the slot holds was decoded of other bytes.
const operation* decoded(const code_page* page, const wave& w, const std::uint32_t* code, std::uint64_t left);

// One instruction, for tests: what `text` and its raw words mean.
operation make_operation(const std::string& text, const std::uint32_t* raw, unsigned bytes,
                         target gpu = target::gfx90a);

// Whether memory holds the bytes that the operation was decoded of.
inline bool same_bytes(const operation& o, const std::uint32_t* code, std::uint64_t left) {
  return o.raw[0] == code[0] &&
         (o.bytes == 4 || (left >= o.bytes && o.raw[1] == code[1] && (o.bytes == 8 || o.raw[2] == code[2])));
}

}  // namespace amdgpu
