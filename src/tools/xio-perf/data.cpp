// SPDX-License-Identifier: MIT
#include "tools/xio-perf/data.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace xio::perf {
namespace {

constexpr std::size_t k_filled_at_once = std::size_t{4} << 20;

void checked_copy(hipError_t e, const char* what) {
  if (e != hipSuccess) fail(XIO_ERR_TRANSPORT, "{}: {}", what, hipGetErrorString(e));
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
  std::vector<unsigned char> piece(std::min(bytes, k_filled_at_once));
  for (std::size_t from = 0; from < bytes; from += piece.size()) {
    const std::size_t n = std::min(piece.size(), bytes - from);
    for (std::size_t i = 0; i < n; ++i) piece[i] = pattern(owner, from + i);
    checked_copy(hipMemcpy(static_cast<char*>(device) + from, piece.data(), n, hipMemcpyHostToDevice),
                 "filling a source");
  }
}

void fill_poison(void* device, std::size_t bytes) {
  checked_copy(hipMemset(device, k_poison, bytes), "filling a destination");
  checked_copy(hipDeviceSynchronize(), "filling a destination");
}

void fill_words(void* device, std::size_t bytes, std::uint32_t element) {
  std::vector<unsigned char> all(bytes);
  // Little-endian: the low half comes first.
  for (std::size_t at = 0; at + element <= bytes; at += element) std::memcpy(&all[at], &k_word_base, element);
  checked_copy(hipMemcpy(device, all.data(), bytes, hipMemcpyHostToDevice), "filling words");
}

std::vector<unsigned char> copy_of(const void* device, std::size_t bytes) {
  std::vector<unsigned char> all(bytes);
  checked_copy(hipMemcpy(all.data(), device, bytes, hipMemcpyDeviceToHost), "looking at a destination");
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

namespace {

std::uint32_t word_of(int owner, std::uint64_t at) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::uint32_t{pattern(owner, at + static_cast<std::uint64_t>(i))} << (8 * i);
  return word;
}

std::uint32_t combined(xio_reduction op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case xio_reduction::sum: return a + b;
    case xio_reduction::prod: return a * b;
    case xio_reduction::min: return std::min(a, b);
    case xio_reduction::max: return std::max(a, b);
    case xio_reduction::bit_and: return a & b;
    case xio_reduction::bit_or: return a | b;
    case xio_reduction::bit_xor: return a ^ b;
  }
  return 0;
}

}  // namespace

void check_collective(const std::vector<unsigned char>& found, test_id id, xio_reduction op, std::size_t bytes, int me,
                      int members, const char* what) {
  const auto block = [&](int i) {
    const auto at = found.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * bytes);
    return std::vector<unsigned char>(at, at + static_cast<std::ptrdiff_t>(bytes));
  };
  const std::uint64_t mine = static_cast<std::uint64_t>(me) * bytes;
  if (id == test_id::reduce || id == test_id::reduce_scatter) {
    for (std::size_t at = 0; at < bytes; at += 4) {
      const std::uint64_t from = id == test_id::reduce ? at : mine + at;
      std::uint32_t expected = word_of(0, from), word = 0;
      for (int p = 1; p < members; ++p) expected = combined(op, expected, word_of(p, from));
      std::memcpy(&word, &found[at], sizeof word);
      if (word != expected)
        fail(XIO_ERR_TRANSPORT, "{}: the word at byte {} is {:#x} and not {:#x}", what, at, word, expected);
    }
    return check_guard(found, bytes, what);
  }
  // The root's destination stays as it was.
  if (id == test_id::broadcast && me == 0) return check_guard(found, 0, what);
  const int blocks = id == test_id::broadcast ? 1 : members;
  const bool all = id == test_id::alltoall || id == test_id::alltoallv;
  for (int p = 0; p < blocks; ++p) check_pattern(block(p), bytes, p, all ? mine : 0, what);
  check_guard(found, static_cast<std::size_t>(blocks) * bytes, what);
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
