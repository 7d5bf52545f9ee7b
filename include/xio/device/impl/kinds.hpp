// SPDX-License-Identifier: MIT
// Reduces whose operation and type are a number that a kernel gets: code for all of them, where a template would be 60
// kernels. Of libxio's own kernels (src/stream); programs do not include it.
#pragma once
#include "xio/device/impl/team_reduce.hpp"

namespace xio::dev::teams {

// Numbered as xio_type_t and xio_reduction_t of xio/stream.h.
enum class element : u32 { int8, uint8, int16, uint16, int32, uint32, int64, uint64, half, bfloat16, float32, float64 };
constexpr u32 k_element_bits = 4;
XIO_DEVICE element element_of_kind(u32 kind) { return static_cast<element>(kind & ((1u << k_element_bits) - 1)); }

template <xio_reduction Op, class Word>
XIO_DEVICE Word reduced_by(const Word& a, const Word& b, element e) {
  if constexpr (Op >= xio_reduction::bit_and) {
    return reduced_words<Op, u32>(a, b, 0);
  } else {
    // Sums and products wrap, so that they have the same bits with a sign and without.
    if constexpr (Op == xio_reduction::min || Op == xio_reduction::max) {
      if (e == element::int8) return reduced_words<Op, std::int8_t>(a, b, 0);
      if (e == element::int16) return reduced_words<Op, std::int16_t>(a, b, 0);
      if (e == element::int32) return reduced_words<Op, std::int32_t>(a, b, 0);
      if (e == element::int64) return reduced_words<Op, i64>(a, b, 0);
    }
    switch (e) {
      case element::int8:
      case element::uint8: return reduced_words<Op, u8>(a, b, 0);
      case element::int16:
      case element::uint16: return reduced_words<Op, u16>(a, b, 0);
      case element::int32:
      case element::uint32: return reduced_words<Op, u32>(a, b, 0);
      case element::int64:
      case element::uint64: return reduced_words<Op, u64>(a, b, 0);
      case element::half: return reduced_words<Op, xio_half_t>(a, b, 0);
      case element::bfloat16: return reduced_words<Op, xio_bfloat16_t>(a, b, 0);
      case element::float32: return reduced_words<Op, float>(a, b, 0);
      default: return reduced_words<Op, double>(a, b, 0);
    }
  }
}

// The elements of 16 bytes. Bytes behind elements are combined, too, and mean nothing.
XIO_OUT_OF_LINE vec16 reduced_by_kind(vec16 a, vec16 b, u32 kind) {
  const element e = element_of_kind(kind);
  switch (static_cast<xio_reduction>(kind >> k_element_bits)) {
    case xio_reduction::sum: return reduced_by<xio_reduction::sum>(a, b, e);
    case xio_reduction::prod: return reduced_by<xio_reduction::prod>(a, b, e);
    case xio_reduction::min: return reduced_by<xio_reduction::min>(a, b, e);
    case xio_reduction::max: return reduced_by<xio_reduction::max>(a, b, e);
    case xio_reduction::bit_and: return reduced_by<xio_reduction::bit_and>(a, b, e);
    case xio_reduction::bit_or: return reduced_by<xio_reduction::bit_or>(a, b, e);
    default: return reduced_by<xio_reduction::bit_xor>(a, b, e);
  }
}

template <class T>
struct kinds {
  XIO_DEVICE static vec16 reduced(vec16 a, vec16 b, u32 kind) { return reduced_by_kind(a, b, kind); }
  XIO_DEVICE static u32 log2_size(u32 kind) {
    const u32 e = static_cast<u32>(element_of_kind(kind));
    return e < 8 ? e / 2 : e < 10 ? 1 : e - 8;
  }
  // As a tag has it.
  XIO_DEVICE static u32 detail(u32 kind) {
    const element e = element_of_kind(kind);
    return kind >> k_element_bits << k_reduction_shift | (e >= element::half ? k_floats : 0u) |
           (e == element::bfloat16 ? k_brain_floats : 0u) | log2_size(kind);
  }
};

template <class Group>
XIO_DEVICE xio_status_t reduce_by_kind(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t,
                                       const reduce_job& job) {
  if (const xio_status_t wrong = check_team(ctx, t, job.scatter ? op::reduce_scatter : op::reduce); wrong != XIO_OK)
    return wrong;
  return complete_call(g, ctx, t, exchange_reduce<k_by_kind, vec16>(g, ctx, t, job));
}

}  // namespace xio::dev::teams
