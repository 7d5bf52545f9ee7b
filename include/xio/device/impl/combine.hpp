// SPDX-License-Identifier: MIT
// The arithmetic of a reduce: elements of several sources combined in one order, many bytes under way per thread.
#pragma once
#include <type_traits>

#include "xio/device/impl/half.hpp"
#include "xio/device/reduction.hpp"

namespace xio::dev::teams {

template <xio_reduction Op, class T>
XIO_DEVICE T reduced_number(T a, T b) {
  if constexpr (Op == xio_reduction::bit_and) return static_cast<T>(a & b);
  if constexpr (Op == xio_reduction::bit_or) return static_cast<T>(a | b);
  if constexpr (Op == xio_reduction::bit_xor) return static_cast<T>(a ^ b);
  if constexpr (std::is_integral_v<T>) {
    // Unsigned and at least 32 bits wide: wraps where signed numbers would overflow.
    using wide = std::conditional_t<sizeof(T) == 8, u64, u32>;
    const wide x = static_cast<wide>(a), y = static_cast<wide>(b);
    if constexpr (Op == xio_reduction::sum) return static_cast<T>(x + y);
    if constexpr (Op == xio_reduction::prod) return static_cast<T>(x * y);
  } else {
    if constexpr (Op == xio_reduction::sum) return a + b;
    if constexpr (Op == xio_reduction::prod) return a * b;
  }
}

// Op of code that does any reduce, by a number (kinds.hpp). Any T: a template is not looked into before it is used.
constexpr auto k_by_kind = static_cast<xio_reduction>(15);
template <class T>
struct kinds;

template <class T>
constexpr bool k_is_half = std::is_same_v<T, xio_half_t> || std::is_same_v<T, xio_bfloat16_t>;
template <class T>
constexpr bool k_is_reducible = (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) ||
                                std::is_same_v<T, float> || std::is_same_v<T, double> || k_is_half<T>;

// The bits of infinity, above which NaNs are.
template <class T>
constexpr bits_of<T> k_infinity = 0;
template <>
inline constexpr u16 k_infinity<xio_half_t> = 0x7c00;
template <>
inline constexpr u16 k_infinity<xio_bfloat16_t> = 0x7f80;
template <>
inline constexpr u32 k_infinity<float> = 0x7f800000;
template <>
inline constexpr u64 k_infinity<double> = 0x7ff0000000000000;

// A rank in the order of IEEE 754-2019 minimum and maximum: -0 is below +0, and every NaN is below all numbers for min
// and above them for max, so that it wins. It is made of bits alone, since a program compiled with -ffast-math promises
// its compiler that no float is a NaN. As signed integers floats are in order once the bits of negative ones are
// inverted; NaNs are then at both ends, and what is added brings those of one end around to the other.
template <xio_reduction Op, class T>
XIO_DEVICE auto rank_of(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    using bits = bits_of<T>;
    using rank = std::make_signed_t<bits>;
    constexpr u32 sign_at = sizeof(T) * 8 - 1;
    constexpr u64 nans = u64{k_infinity<T>} + 1, top = u64{1} << sign_at;
    constexpr auto moved = static_cast<bits>(Op == xio_reduction::min ? top - nans : top + nans);
    const auto x = bit_copy<bits>(value);
    const auto sign = static_cast<bits>(static_cast<rank>(x) >> sign_at);
    return static_cast<rank>(static_cast<bits>((x ^ sign >> 1) + moved));
  }
}

// *a becomes the two together. Floats are passed by address and min and max choose bits: under -ffast-math a float that
// is passed by value, or chosen by ?:, is taken for a number. Two-byte numbers are added and multiplied as floats, and
// rounded after each step.
template <xio_reduction Op, class T>
XIO_DEVICE void reduce_into(T* a, const T& b) {
  if constexpr (Op == xio_reduction::min || Op == xio_reduction::max) {
    const auto i = rank_of<Op>(*a), j = rank_of<Op>(b);
    const bool other = Op == xio_reduction::min ? j < i : i < j;
    const auto wins = other ? bit_copy<bits_of<T>>(b) : bit_copy<bits_of<T>>(*a);
    __builtin_memcpy(a, &wins, sizeof *a);
  } else if constexpr (k_is_half<T>) {
    set_value(a, reduced_number<Op, float>(value_of(*a), value_of(b)));
  } else {
    *a = reduced_number<Op, T>(*a, b);
  }
}
// reduce_into for code that is made for one operation and type, and for code that finds them in `kind` (kinds.hpp).
template <xio_reduction Op, class T>
XIO_DEVICE void reduce_elements(T* a, const T& b, u32 kind) {
  if constexpr (Op == k_by_kind) {
    vec16 x{}, y{};
    __builtin_memcpy(&x, a, sizeof *a);
    __builtin_memcpy(&y, &b, sizeof b);
    const vec16 both = kinds<T>::reduced(x, y, kind);
    __builtin_memcpy(a, &both, sizeof *a);
  } else {
    reduce_into<Op, T>(a, b);
  }
}

// The areas that a PE combines, and where the result goes. `member` is this PE's number among `members`; source(m) is
// where the contribution of member m lies, result(k) is the k-th of `results` places.
template <class Source, class Result>
struct combination {
  u32 member, members, results;
  u32 kind;  // see reduce_elements
  Source source;
  Result result;
};
// A function, since hipcc takes deduction guides for the host's.
template <class Source, class Result>
XIO_DEVICE combination<Source, Result> combination_of(u32 member, u32 members, u32 results, u32 kind,
                                                      const Source& source, const Result& result) {
  return combination<Source, Result>{member, members, results, kind, source, result};
}

// Where threads do not share a copy: by one of them, in blocks that stay in the first cache; loops of a known length
// become vector instructions.
template <xio_reduction Op, class T, class Job>
XIO_DEVICE void combine_blocks(const Job& job, u64 bytes) {
  constexpr u64 block = 4096 / sizeof(T);
  alignas(64) T sum[block];
  alignas(64) T next[block];
  for (u64 at = 0; at < bytes; at += sizeof sum) {
    const u64 here = bytes - at < sizeof sum ? bytes - at : sizeof sum;
    __builtin_memcpy(sum, job.source(0) + at, here);
    if (here != sizeof sum) __builtin_memset(reinterpret_cast<unsigned char*>(sum) + here, 0, sizeof sum - here);
    for (u32 m = 1; m < job.members; ++m) {
      __builtin_memcpy(next, job.source(m) + at, here);
      // By kind an element may be a part of T.
      if (here % sizeof(T) != 0)
        __builtin_memset(reinterpret_cast<unsigned char*>(next) + here, 0, sizeof(T) - here % sizeof(T));
      const u64 count = (here + sizeof(T) - 1) / sizeof(T);
      if (count == block) {
        for (u64 i = 0; i < block; ++i) reduce_elements<Op, T>(&sum[i], next[i], job.kind);
      } else {
        for (u64 i = 0; i < count; ++i) reduce_elements<Op, T>(&sum[i], next[i], job.kind);
      }
    }
    for (u32 k = 0; k < job.results; ++k) __builtin_memcpy(job.result(k) + at, sum, here);
  }
}

// The elements of one word.
template <class T, class Word>
struct elements {
  T of[sizeof(Word) / sizeof(T)];
};

template <xio_reduction Op, class T, class Word>
XIO_DEVICE Word reduced_words(const Word& a, const Word& b, u32 kind) {
  if constexpr (Op == k_by_kind) {
    Word both = a;
    reduce_elements<Op, Word>(&both, b, kind);
    return both;
  } else {
    auto x = bit_copy<elements<T, Word>>(a);
    const auto y = bit_copy<elements<T, Word>>(b);
    XIO_UNROLL for (u32 e = 0; e < sizeof(Word) / sizeof(T); ++e) reduce_into<Op, T>(&x.of[e], y.of[e]);
    return bit_copy<Word>(x);
  }
}

// N words of every source, `stride` bytes apart, all under way before the first is used where there are two sources.
template <xio_reduction Op, class T, direct::source From, u32 N, class Word, class Job>
XIO_DEVICE void combine_batch(const Job& job, u64 at, u64 stride) {
  const auto load = [&](u32 m, Word(&to)[N]) {
    const unsigned char* from = job.source(m) + at;
    if (From == direct::source::own || m == job.member) {
      direct::load_words<direct::source::own>(to, from, stride);
    } else {
      direct::load_words<From>(to, from, stride);
    }
  };
  Word sum[N];
  load(0, sum);
  XIO_ROLLED for (u32 m = 1; m < job.members; ++m) {
    Word next[N];
    load(m, next);
    XIO_UNROLL for (u32 k = 0; k < N; ++k) sum[k] = reduced_words<Op, T>(sum[k], next[k], job.kind);
  }
  XIO_ROLLED for (u32 r = 0; r < job.results; ++r) {
    unsigned char* to = job.result(r) + at;
    XIO_UNROLL for (u32 k = 0; k < N; ++k) direct::store_word<Word>(to + k * stride, sum[k]);
  }
}

template <xio_reduction Op, class T, direct::source From, class Word, class Job>
XIO_DEVICE void combine_words(const Job& job, u64 begin, u64 words, u64 rank, u64 count) {
  const u64 stride = count * sizeof(Word);
  direct::in_batches<k_in_flight / 2>(words, rank, count, [&](auto b, u64 i) {
    combine_batch<Op, T, From, decltype(b)::k_words, Word>(job, begin + i * sizeof(Word), stride);
  });
}

// Elements from byte `begin` on, one by one.
template <direct::source From, class Word, class Group, class Job>
XIO_DEVICE void combine_singly(const Group& g, const Job& job, u64 begin, u64 bytes) {
  XIO_ROLLED for (u64 at = begin + g.rank() * sizeof(Word); at < bytes; at += g.count() * sizeof(Word))
      combine_batch<k_by_kind, Word, From, 1, Word>(job, at, 0);
}
template <direct::source From, class Group, class Job>
XIO_DEVICE void combine_rest_by_kind(const Group& g, const Job& job, u64 begin, u64 bytes) {
  switch (kinds<Job>::log2_size(job.kind)) {
    case 0: return combine_singly<From, u8>(g, job, begin, bytes);
    case 1: return combine_singly<From, u16>(g, job, begin, bytes);
    case 2: return combine_singly<From, u32>(g, job, begin, bytes);
    default: return combine_singly<From, u64>(g, job, begin, bytes);
  }
}

// Collective over g, without the syncs before and after. Each thread reads all sources of what it writes before it
// writes it, so a result may lie where a source of the same thread does. From: where the others' contributions lie.
template <xio_reduction Op, class T, direct::source From, class Group, class Job>
XIO_DEVICE void combine_split(const Group& g, const Job& job, u64 bytes) {
  u64 all = 0;
  for (u32 m = 0; m < job.members; ++m) all |= reinterpret_cast<u64>(job.source(m));
  for (u32 r = 0; r < job.results; ++r) all |= reinterpret_cast<u64>(job.result(r));
  const u64 words = (all & 15) == 0 ? bytes / 16 : 0;
  combine_words<Op, T, From, vec16>(job, 0, words, g.rank(), g.count());
  if constexpr (Op == k_by_kind) {
    combine_rest_by_kind<From>(g, job, words * 16, bytes);
  } else {
    combine_words<Op, T, From, bits_of<T>>(job, words * 16, (bytes - words * 16) / sizeof(T), g.rank(), g.count());
  }
}

template <xio_reduction Op, class T, direct::source From, class Group, class Job>
XIO_DEVICE void combine(const Group& g, const Job& job, u64 bytes) {
  if constexpr (k_splits_copies) {
    combine_split<Op, T, From>(g, job, bytes);
  } else {
    if (g.leader()) combine_blocks<Op, T>(job, bytes);
  }
}

}  // namespace xio::dev::teams
