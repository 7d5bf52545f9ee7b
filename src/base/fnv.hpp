// SPDX-License-Identifier: MIT
// FNV-1a of 64 bits (RFC 9923): to see whether two texts or values are the same, where nobody has a reason to forge
// one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace xio {

inline std::uint64_t fnv_1a(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

}  // namespace xio
