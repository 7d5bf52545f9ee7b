// SPDX-License-Identifier: MIT
// A set of ranks, by one bit each.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xio::bootstrap {

class pe_set {
 public:
  pe_set() = default;
  explicit pe_set(int size) : size_(size), words_((static_cast<std::size_t>(size) + 63) / 64) {}
  static pe_set all(int size) {
    pe_set s(size);
    for (int pe = 0; pe < size; ++pe) s.add(pe);
    return s;
  }

  int size() const { return size_; }  // of the world, not of the set
  bool has(int pe) const { return pe >= 0 && pe < size_ && (words_[word(pe)] >> bit(pe) & 1) != 0; }
  void add(int pe) { words_[word(pe)] |= std::uint64_t{1} << bit(pe); }
  void remove(int pe) { words_[word(pe)] &= ~(std::uint64_t{1} << bit(pe)); }
  int count() const {
    int n = 0;
    for (const std::uint64_t w : words_) n += std::popcount(w);
    return n;
  }
  bool empty() const { return count() == 0; }
  // -1: there is none.
  int lowest() const { return next(-1); }
  int next(int after) const {
    for (int pe = after + 1; pe < size_; ++pe)
      if (has(pe)) return pe;
    return -1;
  }
  bool holds_all_of(const pe_set& other) const { return (other - *this).empty(); }

  friend pe_set operator|(pe_set a, const pe_set& b) {
    return combine(a, b, [](auto x, auto y) { return x | y; });
  }
  friend pe_set operator&(pe_set a, const pe_set& b) {
    return combine(a, b, [](auto x, auto y) { return x & y; });
  }
  friend pe_set operator-(pe_set a, const pe_set& b) {
    return combine(a, b, [](auto x, auto y) { return x & ~y; });
  }
  bool operator==(const pe_set&) const = default;

  const std::vector<std::uint64_t>& words() const { return words_; }
  std::vector<std::uint64_t>& words() { return words_; }

  std::vector<int> list() const {
    std::vector<int> out;
    for (int pe = lowest(); pe >= 0; pe = next(pe)) out.push_back(pe);
    return out;
  }

 private:
  static std::size_t word(int pe) { return static_cast<std::size_t>(pe) / 64; }
  static unsigned bit(int pe) { return static_cast<unsigned>(pe) % 64; }
  template <class Op>
  static pe_set combine(pe_set& a, const pe_set& b, Op&& op) {
    for (std::size_t i = 0; i < a.words_.size() && i < b.words_.size(); ++i) a.words_[i] = op(a.words_[i], b.words_[i]);
    return std::move(a);
  }
  int size_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace xio::bootstrap
