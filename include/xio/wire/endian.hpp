// SPDX-License-Identifier: MIT
// Byte order of the wire formats. constexpr, for host and device alike.
#pragma once
#include <cstdint>

#if defined(__HIPCC__) || defined(__CUDACC__)
#define XIO_WIRE __host__ __device__ constexpr
#else
#define XIO_WIRE constexpr
#endif

namespace xio::wire {

// Every platform of XIO is little endian; a big endian one fails here and not in the data.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

XIO_WIRE std::uint16_t swap16(std::uint16_t v) { return static_cast<std::uint16_t>((v << 8) | (v >> 8)); }
XIO_WIRE std::uint32_t swap32(std::uint32_t v) {
  return (v << 24) | ((v & 0xff00u) << 8) | ((v >> 8) & 0xff00u) | (v >> 24);
}
XIO_WIRE std::uint64_t swap64(std::uint64_t v) {
  return (static_cast<std::uint64_t>(swap32(static_cast<std::uint32_t>(v))) << 32) |
         swap32(static_cast<std::uint32_t>(v >> 32));
}

// Host value to big endian and back.
XIO_WIRE std::uint16_t be16(std::uint16_t v) { return swap16(v); }
XIO_WIRE std::uint32_t be32(std::uint32_t v) { return swap32(v); }
XIO_WIRE std::uint64_t be64(std::uint64_t v) { return swap64(v); }

}  // namespace xio::wire
