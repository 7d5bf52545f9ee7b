// SPDX-License-Identifier: MIT
// One RDMA op before it has the bytes of any NIC family. The lane (rdma.hpp) makes these, a family's codec writes them
// into its ring.
//
// Beside what ring.hpp asks of a codec that is held in registers a family's codec has (nic_family_codec in
// families.hpp):
//   static constexpr u32 k_slot_bytes
//   static u32 slots(const work&)                      ring slots that the op takes
//   static u32 packets(const ring_view&, const work&)  what ring_state::serial counts; 0 but for bnxt
//   static void encode(const ring_view&, u64 ticket, u64 serial, bool ask, const work&)
//       writes the whole entry into the slots from `ticket` on, and leaves nothing of an earlier lap. ask: it must
//       complete with a CQE. serial: see ring_post.
//   static unsigned char* inline_at(const ring_view&, u64 ticket, u32 i)
//       optional, for families that gather (k_gathers in rdma.hpp): where byte i (a multiple of 4) of the inline
//       payload of the entry at `ticket` lies; 4 bytes from there on do not leave the slot.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev::rdma {

enum class verb : u32 {
  write,
  write_imm,
  read,
  fetch_add,     // first: what to add
  compare_swap,  // first: swap, second: compare
  masked_add,    // first: what to add, second: boundary bits; see wire/mlx5.hpp
  masked_swap    // first: swap, second: compare, and their masks
};

enum class payload : u32 {
  memory,   // at `local`, under `lkey`
  inlined,  // in the entry, from memory at `local`: no key, and free for reuse on return
  value,    // in the entry, `first`, which is zero above its `bytes`
  gathered  // in the entry, by other hands: encode leaves the payload alone
};

struct work {
  verb what;
  payload from;
  u32 bytes;   // of payload, or of the word that an atomic changes: 4 or 8
  u64 remote;  // address at the peer
  u32 rkey;
  u32 lkey;
  u64 local;  // source; destination of a read; where an atomic puts the old value
  u64 first, second, swap_mask, compare_mask;
  u32 immediate;
};

XIO_DEVICE bool is_atomic(verb v) { return v >= verb::fetch_add; }

// Bytes i .. i+3 of a source of n bytes, zeroes beyond its end. No alignment is asked of the source.
XIO_DEVICE u32 source_word(const unsigned char* from, u32 i, u32 n) {
  if constexpr (k_reads_bytes_by_words) {
    // By the aligned words in which these bytes lie, each of which has one at least: no branches, and no bytes one by
    // one.
    typedef u32 any __attribute__((may_alias));
    const u32 left = i >= n ? 0 : n - i < 4 ? n - i : 4;
    const u64 at = reinterpret_cast<u64>(from) + (left != 0 ? i : 0);
    const u64 last = at + (left != 0 ? left - 1 : 0);
    // No shift of 64 bits: that wants registers side by side. Where the shift is 0 both are the same word.
    const u32 low = *reinterpret_cast<const any*>(at & ~u64{3}), high = *reinterpret_cast<const any*>(last & ~u64{3});
    const u32 shift = 8 * static_cast<u32>(at & 3);
    const u32 found = low >> shift | high << (-shift & 31);
    return left == 4 ? found : found & ((1u << (8 * left)) - 1);
  }
  u32 word = 0;
  if (i + 4 <= n) {
    __builtin_memcpy(&word, from + i, 4);
  } else {
    for (u32 k = 0; k < 3; ++k)
      if (i + k < n) word |= static_cast<u32>(from[i + k]) << (8 * k);
  }
  return word;
}

// Bytes i .. i+3 of a payload that is a value, in memory order, zeroes beyond its end; i is a multiple of 4.
XIO_DEVICE u32 value_word(const work& w, u32 i) {
  return i == 0 ? static_cast<u32>(w.first) : i == 4 ? static_cast<u32>(w.first >> 32) : 0;
}

// The same of one that lies in memory.
XIO_DEVICE u32 source_word(const work& w, u32 i) {
  return source_word(reinterpret_cast<const unsigned char*>(w.local), i, w.bytes);
}

// Writes the bytes up to `end` (a multiple of 4, zeroes beyond the payload) of a payload of any length and place, word
// by word: at(i) is where byte i goes. For leaves, in which words come as values: unrolled this would be most of a
// leaf.
template <class At>
XIO_DEVICE void put_inline_words(const work& w, u32 end, At&& at) {
  XIO_ROLLED for (u32 i = 0; i < end; i += 4) * reinterpret_cast<u32*>(at(i)) = source_word(w, i);
}

// Writes an inline payload that lies in one piece in its entry. The rest of the last 16 bytes becomes zero.
XIO_DEVICE void put_inline(unsigned char* to, const work& w) {
  const u32 end = (w.bytes + 15) & ~15u;
  if (w.from == payload::inlined) return put_inline_words(w, end, [&](u32 i) { return to + i; });
  if (end != 0) *reinterpret_cast<vec16*>(to) = vec16{value_word(w, 0), value_word(w, 4), 0, 0};
}

}  // namespace xio::dev::rdma
