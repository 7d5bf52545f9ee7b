// SPDX-License-Identifier: MIT
// Integers of the TCP bootstrap's messages: little-endian on every host.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xio::bootstrap {

template <class T>
inline void store_le(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}
template <class T>
inline T load_le(const std::byte* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(std::to_integer<T>(at[i]) << (8 * i));
  return value;
}

inline void store_le32(std::byte* at, std::uint32_t value) { store_le(at, value); }
inline void store_le64(std::byte* at, std::uint64_t value) { store_le(at, value); }
inline std::uint32_t load_le32(const std::byte* at) { return load_le<std::uint32_t>(at); }
inline std::uint64_t load_le64(const std::byte* at) { return load_le<std::uint64_t>(at); }

}  // namespace xio::bootstrap
