// SPDX-License-Identifier: MIT
#include "tools/xio-perf/data.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace xio::perf {

namespace {

constexpr std::size_t k_piece = std::size_t{4} << 20;

void checked(hipError_t e, const char* what) {
  if (e != hipSuccess) fail(XIO_ERR_TRANSPORT, "xio-perf: {}: {}", what, hipGetErrorString(e));
}

template <class T>
void check_words_of(const std::vector<unsigned char>& found, atomic_op op, std::uint64_t k, const char* what) {
  const T expected = value_after<T>(op, static_cast<T>(k_word_base), k);
  for (std::size_t at = 0; at + sizeof(T) <= found.size(); at += sizeof(T)) {
    T word;
    std::memcpy(&word, &found[at], sizeof word);
    if (word != expected)
      fail(XIO_ERR_TRANSPORT, "{}: the word at byte {} is {:#x} after {} ops and not {:#x}", what, at, word, k,
           expected);
  }
}

}  // namespace

unsigned char pattern(int owner, std::uint64_t at) {
  std::uint64_t x = (at >> 3) + (static_cast<std::uint64_t>(owner) + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<unsigned char>(x >> (8 * (at & 7)));
}

void fill_pattern(void* device, int owner, std::size_t bytes) {
  std::vector<unsigned char> piece(std::min(bytes, k_piece));
  for (std::size_t from = 0; from < bytes; from += piece.size()) {
    const std::size_t n = std::min(piece.size(), bytes - from);
    for (std::size_t i = 0; i < n; ++i) piece[i] = pattern(owner, from + i);
    checked(hipMemcpy(static_cast<char*>(device) + from, piece.data(), n, hipMemcpyHostToDevice), "filling a source");
  }
}

void fill_poison(void* device, std::size_t bytes) {
  checked(hipMemset(device, k_poison, bytes), "filling a destination");
  checked(hipDeviceSynchronize(), "filling a destination");
}

void fill_words(void* device, std::size_t bytes, std::uint32_t element) {
  std::vector<unsigned char> all(bytes);
  // Little-endian: the low half comes first.
  for (std::size_t at = 0; at + element <= bytes; at += element) std::memcpy(&all[at], &k_word_base, element);
  checked(hipMemcpy(device, all.data(), bytes, hipMemcpyHostToDevice), "filling words");
}

std::vector<unsigned char> copy_of(const void* device, std::size_t bytes) {
  std::vector<unsigned char> all(bytes);
  checked(hipMemcpy(all.data(), device, bytes, hipMemcpyDeviceToHost), "looking at a destination");
  return all;
}

void check_pattern(const std::vector<unsigned char>& found, std::size_t bytes, int owner, std::uint64_t from,
                   const char* what) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (found[i] != pattern(owner, from + i))
      fail(XIO_ERR_TRANSPORT, "{}: byte {} is {:#04x} and not {:#04x}: wrong data arrived", what, i, found[i],
           pattern(owner, from + i));
}

void check_guard(const std::vector<unsigned char>& found, std::size_t bytes, const char* what) {
  for (std::size_t i = bytes; i < found.size(); ++i)
    if (found[i] != k_poison)
      fail(XIO_ERR_TRANSPORT, "{}: byte {} was written, which is behind the destination's {} bytes", what, i, bytes);
}

void check_words(const void* device, std::size_t bytes, std::uint32_t element, atomic_op op, std::uint64_t k,
                 const char* what) {
  const auto found = copy_of(device, bytes);
  if (element == 4)
    check_words_of<std::uint32_t>(found, op, k, what);
  else
    check_words_of<std::uint64_t>(found, op, k, what);
}

}  // namespace xio::perf
