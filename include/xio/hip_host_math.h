// SPDX-License-Identifier: MIT
// HIP on CPU threads: arithmetic and vector types that HIP programs use without a header of their own. Names of C's
// <math.h> and printf come with it, too.
#pragma once
#include <math.h>
#include <stdio.h>

#include <cstdint>
#include <cstring>

#include "xio/device/platform/host_exec.hpp"

// --- Vectors -----------------------------------------------------------------------------------------

// Of HIP's sizes and alignments: two and four values are as aligned as they are large, up to 16 bytes.
#define XIO_HOST_VECTOR(type, name)                                       \
  struct name##1 {                                                        \
    type x;                                                               \
  };                                                                      \
  struct alignas(sizeof(type) * 2) name##2 {                              \
    type x, y;                                                            \
  };                                                                      \
  struct alignas(sizeof(type) * 4 < 16 ? sizeof(type) * 4 : 16) name##4 { \
    type x, y, z, w;                                                      \
  };                                                                      \
  constexpr name##1 make_##name##1(type x) { return {x}; }                \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }     \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define XIO_HOST_VECTOR3(type, name) \
  struct name##3 {                   \
    type x, y, z;                    \
  };                                 \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }
XIO_HOST_VECTOR(signed char, char)
XIO_HOST_VECTOR(unsigned char, uchar)
XIO_HOST_VECTOR(short, short)
XIO_HOST_VECTOR(unsigned short, ushort)
XIO_HOST_VECTOR(int, int)
XIO_HOST_VECTOR(unsigned, uint)
XIO_HOST_VECTOR(long, long)
XIO_HOST_VECTOR(unsigned long, ulong)
XIO_HOST_VECTOR(long long, longlong)
XIO_HOST_VECTOR(unsigned long long, ulonglong)
XIO_HOST_VECTOR(float, float)
XIO_HOST_VECTOR(double, double)
XIO_HOST_VECTOR3(signed char, char)
XIO_HOST_VECTOR3(unsigned char, uchar)
XIO_HOST_VECTOR3(short, short)
XIO_HOST_VECTOR3(unsigned short, ushort)
XIO_HOST_VECTOR3(int, int)
XIO_HOST_VECTOR3(long, long)
XIO_HOST_VECTOR3(unsigned long, ulong)
XIO_HOST_VECTOR3(long long, longlong)
XIO_HOST_VECTOR3(unsigned long long, ulonglong)
XIO_HOST_VECTOR3(float, float)
XIO_HOST_VECTOR3(double, double)
#undef XIO_HOST_VECTOR
#undef XIO_HOST_VECTOR3
using uint3 = ::xio::host_exec::index3;
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// --- Whole numbers -----------------------------------------------------------------------------------

inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffsll(unsigned long long bits) { return __builtin_ffsll(static_cast<long long>(bits)); }
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits)); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline unsigned __brev(unsigned bits) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (bits >> i & 1u) << (31 - i);
  return out;
}
inline unsigned long long __brevll(unsigned long long bits) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(bits))) << 32 |
         __brev(static_cast<unsigned>(bits >> 32));
}
inline int __mul24(int a, int b) { return a * b; }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}

// One for each type, so that types that differ are converted as in C, and std's templates stay the worse choice.
#define XIO_HOST_CHOICE(type)                                  \
  constexpr type min(type a, type b) { return b < a ? b : a; } \
  constexpr type max(type a, type b) { return a < b ? b : a; }
XIO_HOST_CHOICE(int)
XIO_HOST_CHOICE(unsigned)
XIO_HOST_CHOICE(long)
XIO_HOST_CHOICE(unsigned long)
XIO_HOST_CHOICE(long long)
XIO_HOST_CHOICE(unsigned long long)
#undef XIO_HOST_CHOICE
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// --- Fractions ---------------------------------------------------------------------------------------

inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0), 1); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }

#define XIO_HOST_SAME_BITS(name, to, from)     \
  inline to name(from x) {                     \
    static_assert(sizeof(to) == sizeof(from)); \
    to out;                                    \
    std::memcpy(&out, &x, sizeof out);         \
    return out;                                \
  }
XIO_HOST_SAME_BITS(__float_as_int, int, float)
XIO_HOST_SAME_BITS(__float_as_uint, unsigned, float)
XIO_HOST_SAME_BITS(__int_as_float, float, int)
XIO_HOST_SAME_BITS(__uint_as_float, float, unsigned)
XIO_HOST_SAME_BITS(__double_as_longlong, long long, double)
XIO_HOST_SAME_BITS(__longlong_as_double, double, long long)
#undef XIO_HOST_SAME_BITS

template <class T>
inline T __ldg(const T* at) {
  return *at;
}
