// SPDX-License-Identifier: MIT
// IEEE 754 binary16: a value that converts and rounds as the GPU does. Arithmetic happens in float or double.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace amdgpu {

struct half {
  std::uint16_t bits = 0;

  half() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  half(T x) : bits(rounded(static_cast<double>(x))) {}
  operator float() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 0x3ff;
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31)
      return std::bit_cast<float>((bits >> 15 ? 0xff800000u : 0x7f800000u) | static_cast<unsigned>(fraction) << 13);
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }

 private:
  // To nearest, ties to even, once.
  static std::uint16_t rounded(double x) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
    const double size = std::fabs(x);
    unsigned magnitude = 0;
    if (std::isnan(x)) {
      magnitude = 0x7e00;
    } else if (size >= 65520) {
      magnitude = 0x7c00;
    } else if (size < 6.103515625e-05) {  // below 2^-14: steps of 2^-24
      magnitude = static_cast<unsigned>(std::nearbyint(size * 16777216));
    } else {
      const int exponent = std::ilogb(size);
      // A mantissa that rounds up to 2048 carries into the exponent, as it must.
      magnitude = static_cast<unsigned>((exponent + 15) * 1024 - 1024) +
                  static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    }
    return static_cast<std::uint16_t>(sign | magnitude);
  }
};
static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half>);

}  // namespace amdgpu
