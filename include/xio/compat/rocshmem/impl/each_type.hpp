// SPDX-License-Identifier: MIT
// The types of rocSHMEM's names: X(NAME, T) for each.
#pragma once
#include "xio/compat/rocshmem/impl/types.hpp"

// Of these with bitwise atomics, with all atomics, all integers, all that waits and single values take, and all.
#define XIO_ROCSHMEM_EACH_BITS(X)  \
  X(uint, unsigned)                \
  X(ulong, unsigned long)          \
  X(ulonglong, unsigned long long) \
  X(int32, std::int32_t)           \
  X(int64, std::int64_t)           \
  X(uint32, std::uint32_t)         \
  X(uint64, std::uint64_t)
#define XIO_ROCSHMEM_EACH_ATOMIC(X) \
  XIO_ROCSHMEM_EACH_BITS(X)         \
  X(int, int)                       \
  X(long, long)                     \
  X(longlong, long long)            \
  X(size, std::size_t)              \
  X(ptrdiff, std::ptrdiff_t)
#define XIO_ROCSHMEM_EACH_INTEGER(X) \
  XIO_ROCSHMEM_EACH_ATOMIC(X)        \
  X(char, char)                      \
  X(schar, signed char)              \
  X(short, short)                    \
  X(uchar, unsigned char)            \
  X(ushort, unsigned short)          \
  X(int8, std::int8_t)               \
  X(int16, std::int16_t)             \
  X(uint8, std::uint8_t)             \
  X(uint16, std::uint16_t)
#define XIO_ROCSHMEM_EACH_NUMBER(X) \
  XIO_ROCSHMEM_EACH_INTEGER(X)      \
  X(float, float)                   \
  X(double, double)
#define XIO_ROCSHMEM_EACH_TYPE(X) \
  XIO_ROCSHMEM_EACH_NUMBER(X)     \
  X(half, rocshmem_half_t)        \
  X(bfloat16, rocshmem_bfloat16_t)
