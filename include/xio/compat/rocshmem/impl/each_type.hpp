// SPDX-License-Identifier: MIT
// The types of rocSHMEM's names, and those of collectives that only move data.
#pragma once
#include "xio/compat/rocshmem/impl/types.hpp"

#define XIO_ROCSHMEM_EACH_TYPE(X)  \
  X(float, float)                  \
  X(double, double)                \
  X(char, char)                    \
  X(schar, signed char)            \
  X(short, short)                  \
  X(int, int)                      \
  X(long, long)                    \
  X(longlong, long long)           \
  X(uchar, unsigned char)          \
  X(ushort, unsigned short)        \
  X(uint, unsigned)                \
  X(ulong, unsigned long)          \
  X(ulonglong, unsigned long long) \
  X(int8, std::int8_t)             \
  X(int16, std::int16_t)           \
  X(int32, std::int32_t)           \
  X(int64, std::int64_t)           \
  X(uint8, std::uint8_t)           \
  X(uint16, std::uint16_t)         \
  X(uint32, std::uint32_t)         \
  X(uint64, std::uint64_t)         \
  X(size, std::size_t)             \
  X(ptrdiff, std::ptrdiff_t)       \
  X(half, rocshmem_half_t)         \
  X(bfloat16, rocshmem_bfloat16_t)
