// SPDX-License-Identifier: MIT
// The direct lane: a peer's heap is mapped here, so an op is loads and stores.
#pragma once
#include <type_traits>

#include "xio/device/impl/amo.hpp"
#include "xio/device/impl/scope.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::direct {

// Order of a store or load that somebody may use as a flag. On GPUs it is relaxed and xio_fence or the waiting loop
// orders; a CPU gives release and acquire for nothing, and ThreadSanitizer understands these and not fences.
constexpr order k_flag_store = k_release_by_fence;
constexpr order k_flag_load = k_acquire_by_fence;
constexpr order k_flag_change = k_release_by_fence == order::relaxed ? order::relaxed : order::acq_rel;
// Order of the loads of a waiting loop. An acquire load empties caches each time, so one fence follows the loop; but a
// fence that waits for the thread's own stores too costs NVIDIA GPUs more than those loads (docs/performance.md).
constexpr order k_watch_load = k_watches_by_fence ? order::relaxed : order::acquire;

// --- Copies ------------------------------------------------------------------------------------------

// Where a copy's source lies. A peer's memory may have changed since a cache line of it was loaded, and no acquire of
// the caller's need have come between: so a get reads past the caches that do not see the peer's writes.
enum class source : u32 { own, peer };

// Loads that are under way before the first store needs its value.
template <source From, class Word>
constexpr u32 k_batch = k_in_flight;
template <>
inline constexpr u32 k_batch<source::peer, vec16> = k_past_caches_together;
template <source From, class Word>
constexpr u32 k_odd_batch = k_batch<From, Word> < k_odd_in_flight ? k_batch<From, Word> : k_odd_in_flight;

template <source From, class Word>
XIO_DEVICE Word load_word(const unsigned char* p) {
  if constexpr (From == source::peer) {
    return load_past_caches<Word>(p);
  } else {
    return load_as<Word>(p);
  }
}

template <class Word>
XIO_DEVICE void store_word(unsigned char* p, Word v) {
  store_as<Word>(p, v);
}

// A span of words that `count` threads copy, every count-th by each, from word i on.
struct strip {
  unsigned char* to;
  const unsigned char* from;
  u64 words, i, count;
};

// N words, `stride` bytes apart.
template <source From, u32 N, class Word>
XIO_DEVICE void load_words(Word (&v)[N], const unsigned char* p, u64 stride) {
  if constexpr (From == source::peer) {
    load_words_past_caches<N>(v, p, stride);
  } else {
    XIO_UNROLL for (u32 k = 0; k < N; ++k) v[k] = load_as<Word>(p + k * stride);
  }
}

template <u32 N, source From, class Word>
XIO_DEVICE void copy_batch(strip& s) {
  Word v[N];
  load_words<From>(v, s.from + s.i * sizeof(Word), s.count * sizeof(Word));
  XIO_UNROLL for (u32 k = 0; k < N; ++k) store_word<Word>(s.to + (s.i + k * s.count) * sizeof(Word), v[k]);
  s.i += N * s.count;
}

// Copies the rest when fewer than 2 N words a thread are left.
template <u32 N, source From, class Word>
XIO_DEVICE void copy_rest(strip& s) {
  if (s.i + (N - 1) * s.count < s.words) copy_batch<N, From, Word>(s);
  if constexpr (N > 1) copy_rest<N / 2, From, Word>(s);
}

// Batches of N words a thread while they last, then at most one of each half as many.
template <u32 N, source From, class Word>
XIO_DEVICE void copy_batches(strip& s) {
  while (s.i + (N - 1) * s.count < s.words) copy_batch<N, From, Word>(s);
  if (s.i < s.words) copy_rest<N / 2, From, Word>(s);
}

// The same by a body, which is called with a batch and the first of its words. All that a thread has left is under way
// after one or two batches: word by word each would take a load's whole time.
template <u32 N>
struct batch {
  static constexpr u32 k_words = N;
};
template <u32 N, class Body>
XIO_DEVICE void rest_in_batches(u64 words, u64 i, u64 count, Body& body) {
  if (i + (N - 1) * count < words) {
    body(batch<N>{}, i);
    i += N * count;
  }
  if constexpr (N > 1) rest_in_batches<N / 2>(words, i, count, body);
}
template <u32 N, class Body>
XIO_DEVICE void in_batches(u64 words, u64 rank, u64 count, Body&& body) {
  u64 i = rank;
  for (; i + (N - 1) * count < words; i += N * count) body(batch<N>{}, i);
  if constexpr (N > 1) rest_in_batches<N / 2>(words, i, count, body);
}

template <source From>
XIO_DEVICE void copy_bytes(unsigned char* to, const unsigned char* from, u64 bytes, u64 rank, u64 count) {
  for (u64 i = rank; i < bytes; i += count) store_word<u8>(to + i, load_word<From, u8>(from + i));
}

// Less than 16 bytes, by one thread, as at most one piece of each size: rising sizes up to a boundary, or falling sizes
// from one on, so that every piece is aligned. All loads are under way before the first store.
template <source From, bool Rising>
XIO_DEVICE void copy_pieces(unsigned char* to, const unsigned char* from, u32 bytes) {
  const u32 at8 = Rising ? bytes & 7 : 0, at4 = Rising ? bytes & 3 : bytes & 8;
  const u32 at2 = Rising ? bytes & 1 : bytes & 12, at1 = Rising ? 0 : bytes & 14;
  u64 v8 = 0;
  u32 v4 = 0;
  u16 v2 = 0;
  u8 v1 = 0;
  if ((bytes & 8) != 0) v8 = load_word<From, u64>(from + at8);
  if ((bytes & 4) != 0) v4 = load_word<From, u32>(from + at4);
  if ((bytes & 2) != 0) v2 = load_word<From, u16>(from + at2);
  if ((bytes & 1) != 0) v1 = load_word<From, u8>(from + at1);
  if ((bytes & 8) != 0) store_word<u64>(to + at8, v8);
  if ((bytes & 4) != 0) store_word<u32>(to + at4, v4);
  if ((bytes & 2) != 0) store_word<u16>(to + at2, v2);
  if ((bytes & 1) != 0) store_word<u8>(to + at1, v1);
}

// `to` and `from` are equal modulo the word: pieces up to the first whole word, and after the last.
template <source From, class Word>
XIO_DEVICE void copy_by(unsigned char* to, const unsigned char* from, u64 bytes, u64 rank, u64 count) {
  const u32 head =
      static_cast<u32>((sizeof(Word) - (reinterpret_cast<u64>(to) & (sizeof(Word) - 1))) & (sizeof(Word) - 1));
  if (bytes < head) return copy_bytes<From>(to, from, bytes, rank, count);
  const u64 words = (bytes - head) / sizeof(Word);
  const u64 tail = head + words * sizeof(Word);
  if (head != 0 && rank == 0) copy_pieces<From, true>(to, from, head);
  strip s{to + head, from + head, words, rank, count};
  if (rank < words) copy_batches<k_odd_batch<From, Word>, From, Word>(s);
  if (tail != bytes && rank == count - 1)
    copy_pieces<From, false>(to + tail, from + tail, static_cast<u32>(bytes - tail));
}

// The 4 bytes from byte `shift / 8` of two words on.
XIO_DEVICE u32 funnel(u32 low, u32 high, u32 shift) { return static_cast<u32>(((u64{high} << 32) | low) >> shift); }

// `to` and `from` differ modulo 4: whole words are stored, each made of two that are loaded. Both lie inside the
// source.
template <source From>
XIO_DEVICE void copy_askew(unsigned char* to, const unsigned char* from, u64 bytes, u64 rank, u64 count) {
  constexpr u32 batch = k_odd_in_flight < 4 ? k_odd_in_flight : k_odd_in_flight / 2;  // each word takes two loads
  u64 head = (4 - (reinterpret_cast<u64>(to) & 3)) & 3;
  if ((reinterpret_cast<u64>(from + head) & 3) > head) head += 4;  // the first word starts at or after the source
  const u64 words = bytes < head + 8 ? 0 : (bytes - head - 4) / 4;
  const u64 tail = words == 0 ? 0 : head + words * 4;
  if (words == 0) head = 0;
  copy_bytes<From>(to, from, head, rank, count);
  const u32 skew = static_cast<u32>(reinterpret_cast<u64>(from + head) & 3);
  const unsigned char* in = from + head - skew;
  for (u64 i = rank; i < words; i += batch * count) {
    u32 low[batch], high[batch];
    XIO_UNROLL for (u32 k = 0; k < batch; ++k) {
      const u64 at = i + k * count < words ? i + k * count : i;
      low[k] = load_word<From, u32>(in + at * 4);
      high[k] = load_word<From, u32>(in + at * 4 + 4);
    }
    XIO_UNROLL for (u32 k = 0; k < batch; ++k) if (i + k * count < words)
        store_word<u32>(to + head + (i + k * count) * 4, funnel(low[k], high[k], 8 * skew));
  }
  copy_bytes<From>(to + tail, from + tail, bytes - tail, rank, count);
}

// Copies areas that are not both aligned to 16 bytes, by the largest word that fits the offset of both.
template <source From>
XIO_LEAF void copy_unaligned(unsigned char* out, const unsigned char* in, u64 bytes, u64 rank, u64 count) {
  const return_kept<> back;
  const u64 off = reinterpret_cast<u64>(out) ^ reinterpret_cast<u64>(in);
  if ((off & 15) == 0) {
    copy_by<From, vec16>(out, in, bytes, rank, count);
  } else if ((off & 7) == 0) {
    copy_by<From, u64>(out, in, bytes, rank, count);
  } else if ((off & 3) == 0) {
    copy_by<From, u32>(out, in, bytes, rank, count);
  } else {
    copy_askew<From>(out, in, bytes, rank, count);
  }
}

// Copies the bytes that are not aligned 16-byte words: all of an area that is not aligned, else those behind its last
// word. Returns false if nothing is left to copy.
template <source From, class Group>
XIO_DEVICE bool copy_odd(const Group& g, unsigned char* out, const unsigned char* in, u64 bytes) {
  const u64 rank = g.rank(), count = g.count();
  const u64 both = reinterpret_cast<u64>(out) | reinterpret_cast<u64>(in);
  // Most small messages are one aligned word of 8 bytes.
  if (bytes == 8 && (both & 7) == 0) {
    if (rank == 0) store_word<u64>(out, load_word<From, u64>(in));
    return false;
  }
  // Less than a word needs no more than what its pieces are aligned to.
  const u64 grain = bytes < 16 ? 7 : 15;
  if ((both & grain) != 0) {
    copy_unaligned<From>(out, in, bytes, rank, count);
    return false;
  }
  // The end first: a small copy is nothing else.
  const u64 whole = bytes & ~u64{15};
  if (rank == count - 1) copy_pieces<From, false>(out + whole, in + whole, static_cast<u32>(bytes - whole));
  return true;
}

template <source From, class Group>
XIO_DEVICE void copy_from(const Group& g, unsigned char* out, const unsigned char* in, u64 bytes) {
  // One test for all that is large and made to be fast: each branch that is taken costs a lone wave as much as ten
  // other instructions.
  if (((reinterpret_cast<u64>(out) | reinterpret_cast<u64>(in) | bytes) & 15) != 0) [[unlikely]] {
    if (!copy_odd<From>(g, out, in, bytes)) return;
  }
  const u64 rank = g.rank(), count = g.count(), words = bytes / 16;
  if (rank >= words) return;
  strip s{out, in, words, rank, count};
  if (words > count) {
    copy_batches<k_batch<From, vec16>, From, vec16>(s);
  } else {
    copy_batch<1, From, vec16>(s);
  }
}

// N words of 16 bytes, and on to what is behind them.
template <source From, u32 N>
XIO_DEVICE void copy_on(unsigned char*& out, const unsigned char*& in, u64& left) {
  vec16 v[N];
  load_words<From>(v, in, sizeof(vec16));
  XIO_UNROLL for (u32 k = 0; k < N; ++k) store_word<vec16>(out + k * sizeof(vec16), v[k]);
  out += N * sizeof(vec16);
  in += N * sizeof(vec16);
  left -= N * sizeof(vec16);
}
template <source From, u32 N>
XIO_DEVICE void copy_rest_alone(unsigned char*& out, const unsigned char*& in, u64& left) {
  if (left >= N * sizeof(vec16)) copy_on<From, N>(out, in, left);
  if constexpr (N > 1) copy_rest_alone<From, N / 2>(out, in, left);
}
// By one thread, of areas that are aligned to 16 bytes, or as far as pieces of less than that need it. A loop in each
// op is worth its room for wide copies alone. OwnKnown: this PE's area is known to lie in memory of a device, too.
template <source From, bool OwnKnown>
XIO_LEAF void copy_alone_leaf(unsigned char* out, const unsigned char* in, u64 bytes) {
  const return_kept<> back;
  if constexpr (OwnKnown || From == source::own) out = in_device_memory(out);
  if constexpr (OwnKnown || From == source::peer) in = in_device_memory(in);
  constexpr u32 batch = k_alone_in_flight < k_batch<From, vec16> ? k_alone_in_flight : k_batch<From, vec16>;
  constexpr u32 rest = batch > 8 ? 8 : batch > 4 ? 4 : batch > 2 ? 2 : 1;  // the largest power of two below
  static_assert(batch <= 16);
  XIO_ROLLED while (bytes >= batch * sizeof(vec16)) copy_on<From, batch>(out, in, bytes);
  copy_rest_alone<From, rest>(out, in, bytes);
  if (bytes != 0) copy_pieces<From, false>(out, in, static_cast<u32>(bytes));
}
template <source From>
XIO_DEVICE void copy_alone(unsigned char* out, const unsigned char* in, u64 bytes) {
  const u64 both = reinterpret_cast<u64>(out) | reinterpret_cast<u64>(in);
  const u64 grain = bytes == 4 ? 3 : bytes < 16 ? 7 : 15;
  // Most small messages are one aligned word.
  if ((both & grain) != 0) [[unlikely]] {
    copy_unaligned<From>(out, in, bytes, 0, 1);
  } else if (bytes == 8) [[likely]] {
    store_word<u64>(out, load_word<From, u64>(in));
  } else if (bytes == 4) {
    store_word<u32>(out, load_word<From, u32>(in));
  } else if (bytes == 16) {
    copy_on<From, 1>(out, in, bytes);
  } else if (lies_in_device_memory(From == source::own ? in : out)) {
    copy_alone_leaf<From, true>(out, in, bytes);
  } else {
    copy_alone_leaf<From, false>(out, in, bytes);
  }
}

// Collective over g, without the syncs before and after. The areas do not overlap.
template <source From, class Group>
XIO_DEVICE void move(const Group& g, void* to, const void* from, u64 bytes) {
  if constexpr (k_splits_copies && std::is_same_v<Group, thread_group>) {
    copy_alone<From>(static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), bytes);
  } else if constexpr (k_splits_copies) {
    copy_from<From>(g, static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), bytes);
  } else {
    if (g.leader()) __builtin_memcpy(to, from, bytes);
  }
}
// By one lane, beside an engine's copy: seldom, so where there is a function for it, by that.
template <source From>
XIO_DEVICE void move_beside(void* to, const void* from, u64 bytes) {
  if constexpr (k_splits_copies) {
    copy_unaligned<From>(static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), bytes, 0, 1);
  } else {
    move<From>(thread_group::here(), to, from, bytes);
  }
}
// To memory of a device (a heap, or a registered buffer), from memory of this PE that the caller has the right to read.
template <class Group>
XIO_DEVICE void copy(const Group& g, void* to, const void* from, u64 bytes) {
  move<source::own>(g, in_device_memory(to), from, bytes);
}
// From a heap.
template <class Group>
XIO_DEVICE void fetch(const Group& g, void* to, const void* from, u64 bytes) {
  move<source::peer>(g, to, in_device_memory(from), bytes);
}

// --- One value ---------------------------------------------------------------------------------------

// Stores a flag if `good`, and returns whether it did. On NVIDIA GPUs the store comes before the caller's branch on the
// result, and is under way while the branch executes: a branch takes as long as ten other instructions.
XIO_DEVICE bool store_if(bool good, u64* at, u64 value) {
  store_word_if(good, at, value);
  return good;
}

// Likewise a load, whose branch then passes while it is on its way; T{} where not good.
template <class T>
XIO_DEVICE T load_if(bool good, const T* at) {
  return load_word_if(good, at);
}

// Of 1, 2, 4 or 8 bytes, naturally aligned, in one piece.
XIO_DEVICE void store_bits(unsigned char* at, u64 bits, u32 bytes) {
  switch (bytes) {
    case 1: return store<scope::system, k_flag_store>(reinterpret_cast<u8*>(at), static_cast<u8>(bits));
    case 2: return store<scope::system, k_flag_store>(reinterpret_cast<u16*>(at), static_cast<u16>(bits));
    case 4: return store<scope::system, k_flag_store>(reinterpret_cast<u32*>(at), static_cast<u32>(bits));
    default: return store<scope::system, k_flag_store>(reinterpret_cast<u64*>(at), bits);
  }
}
XIO_DEVICE u64 load_bits(const unsigned char* at, u32 bytes) {
  switch (bytes) {
    case 1: return load<scope::system, k_flag_load>(reinterpret_cast<const u8*>(at));
    case 2: return load<scope::system, k_flag_load>(reinterpret_cast<const u16*>(at));
    case 4: return load<scope::system, k_flag_load>(reinterpret_cast<const u32*>(at));
    default: return load<scope::system, k_flag_load>(reinterpret_cast<const u64*>(at));
  }
}

// --- Atomics -----------------------------------------------------------------------------------------

// Returns what was there. Visible to every PE and device at once: system scope.
template <amo Op, class T>
XIO_DEVICE T atomic(T* at, T operand, T compare) {
  if constexpr (Op == amo::fetch) {
    return load<scope::system, k_flag_load>(at);
  } else if constexpr (Op == amo::set) {
    return exchange<scope::system, k_flag_change>(at, operand);
  } else if constexpr (Op == amo::compare_swap) {
    compare_exchange<scope::system, k_flag_change>(at, compare, operand);
    return compare;
  } else if constexpr (Op == amo::add) {
    return fetch_add<scope::system, k_flag_change>(at, operand);
  } else if constexpr (Op == amo::bit_and) {
    return fetch_and<scope::system, k_flag_change>(at, operand);
  } else if constexpr (Op == amo::bit_or) {
    return fetch_or<scope::system, k_flag_change>(at, operand);
  } else {
    return fetch_xor<scope::system, k_flag_change>(at, operand);
  }
}

// Changes a signal word. order::release: after everything that the caller has stored.
template <order Order>
XIO_DEVICE void signal(u64* at, u64 value, int op) {
  if (op == XIO_SIGNAL_SET) {
    store<scope::system, Order == order::acq_rel ? order::release : Order>(at, value);
  } else {
    fetch_add<scope::system, Order>(at, value);
  }
}

}  // namespace xio::dev::direct
