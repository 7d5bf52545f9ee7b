// SPDX-License-Identifier: MIT
// From text to operations, and the cache of decoded code.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "amdgpu/isa/operation.hpp"

namespace amdgpu {

// Decoded instructions of 4 KiB of code, one slot per dword. Slots fill as instructions are first reached.
struct code_page {
  static constexpr std::uint64_t bytes = 4096;
  std::array<std::atomic<const operation*>, bytes / 4> slot{};
};

// The page of an address; made if it is new. It lives as long as the process.
const code_page* page_of(std::uint64_t address);

// The operation at the wave's pc, whose bytes are CODE; decoded anew if what the slot holds was decoded of other bytes.
const operation* decoded(const code_page* page, const wave& w, const std::uint32_t* code, std::uint64_t left);

// One instruction, for tests: what `text` and its raw words mean.
operation make_operation(const std::string& text, const std::uint32_t* raw, unsigned bytes);

}  // namespace amdgpu
