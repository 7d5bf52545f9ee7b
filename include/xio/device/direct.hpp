// SPDX-License-Identifier: MIT
// The direct lane: a peer's heap is mapped here, so an op is loads and stores.
#pragma once
#include "xio/device/amo.hpp"
#include "xio/device/platform.hpp"
#include "xio/device/scope.hpp"
#include "xio/xio.h"

namespace xio::dev::direct {

// Order of a store or load that somebody may use as a flag. On GPUs it is relaxed and xio_fence or the waiting loop
// orders; a CPU gives release and acquire for nothing, and ThreadSanitizer understands these and not fences.
#if defined(XIO_ON_HOST)
constexpr order k_flag_store = order::release;
constexpr order k_flag_load = order::acquire;
constexpr order k_flag_change = order::acq_rel;
#else
constexpr order k_flag_store = order::relaxed;
constexpr order k_flag_load = order::relaxed;
constexpr order k_flag_change = order::relaxed;
#endif

// --- Copies ------------------------------------------------------------------------------------------

#if !defined(XIO_ON_HOST)
// Loads that are under way before the first store needs its value.
constexpr u32 k_in_flight = 8;

// Accesses memory of any type as a Word: the compiler must not think that a Word and a float never meet.
template <class Word>
XIO_DEVICE Word load_word(const unsigned char* p) {
#if defined(XIO_ON_HIP)
  Word v;
  __builtin_memcpy(&v, __builtin_assume_aligned(p, sizeof(Word)), sizeof(Word));
  return v;
#else
  return *reinterpret_cast<const Word*>(p);
#endif
}

template <class Word>
XIO_DEVICE void store_word(unsigned char* p, Word v) {
#if defined(XIO_ON_HIP)
  __builtin_memcpy(__builtin_assume_aligned(p, sizeof(Word)), &v, sizeof(Word));
#else
  *reinterpret_cast<Word*>(p) = v;
#endif
}

template <class Word>
XIO_DEVICE void copy_words(unsigned char* to, const unsigned char* from, u64 words, u64 rank, u64 count) {
  u64 i = rank;
  for (; i + (k_in_flight - 1) * count < words; i += k_in_flight * count) {
    Word v[k_in_flight];
#pragma unroll
    for (u32 k = 0; k < k_in_flight; ++k) v[k] = load_word<Word>(from + (i + k * count) * sizeof(Word));
#pragma unroll
    for (u32 k = 0; k < k_in_flight; ++k) store_word<Word>(to + (i + k * count) * sizeof(Word), v[k]);
  }
  for (; i < words; i += count) store_word<Word>(to + i * sizeof(Word), load_word<Word>(from + i * sizeof(Word)));
}

// `to` and `from` are equal modulo the word: single bytes up to the first whole word, and after the last.
template <class Word>
XIO_DEVICE void copy_by(unsigned char* to, const unsigned char* from, u64 bytes, u64 rank, u64 count) {
  u64 head = (sizeof(Word) - (reinterpret_cast<u64>(to) & (sizeof(Word) - 1))) & (sizeof(Word) - 1);
  if (head > bytes) head = bytes;
  const u64 words = (bytes - head) / sizeof(Word);
  const u64 tail = head + words * sizeof(Word);
  for (u64 i = rank; i < head; i += count) to[i] = from[i];
  copy_words<Word>(to + head, from + head, words, rank, count);
  for (u64 i = tail + rank; i < bytes; i += count) to[i] = from[i];
}
#endif

// Collective over g, without the syncs before and after. The areas do not overlap.
template <class Group>
XIO_DEVICE void copy(const Group& g, void* to, const void* from, u64 bytes) {
#if defined(XIO_ON_HOST)
  // A workgroup shares one CPU: splitting the work would only cost switches.
  if (g.leader()) std::memcpy(to, from, bytes);
#else
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  const u64 off = reinterpret_cast<u64>(out) ^ reinterpret_cast<u64>(in);
  const u64 rank = g.rank(), count = g.count();
  if ((off & 15) == 0) {
    copy_by<vec16>(out, in, bytes, rank, count);
  } else if ((off & 7) == 0) {
    copy_by<u64>(out, in, bytes, rank, count);
  } else if ((off & 3) == 0) {
    copy_by<u32>(out, in, bytes, rank, count);
  } else if ((off & 1) == 0) {
    copy_by<u16>(out, in, bytes, rank, count);
  } else {
    copy_by<u8>(out, in, bytes, rank, count);
  }
#endif
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

// Changes a signal word after everything that the caller has stored.
XIO_DEVICE void signal(u64* at, u64 value, int op) {
  if (op == XIO_SIGNAL_SET) {
    store<scope::system, order::release>(at, value);
  } else {
    fetch_add<scope::system, order::release>(at, value);
  }
}

}  // namespace xio::dev::direct
