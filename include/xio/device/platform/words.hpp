// SPDX-License-Identifier: MIT
// Integers, scopes and orders of device code, on every platform the same.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xio::dev {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

enum class scope { workgroup, agent, system };  // agent = this GPU
enum class order { relaxed, acquire, release, acq_rel, seq_cst };

// A ring entry of 64 bytes, built in registers.
struct alignas(16) entry64 {
  u32 dw[16];
};

}  // namespace xio::dev
