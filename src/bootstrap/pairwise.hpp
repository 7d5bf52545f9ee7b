// SPDX-License-Identifier: MIT
// A channel in which each rank sends straight to each other one: the part that MPI and UCX have in common.
#pragma once
#include "bootstrap/bootstrap.hpp"

namespace xio::bootstrap {

class pairwise_channel : public channel {
 public:
  std::vector<std::byte> allgather(std::span<const std::byte> mine) final;
  // Two rounds: sizes, then cells.
  cells all_to_all(const cells& mine) final;

 protected:
  // word: "MPI", for sentences.
  pairwise_channel(const char* word, std::uint64_t timeout_ms) : word_(word), timeout_ms_(timeout_ms) {}

  // Throws where this rank cannot exchange anything now.
  virtual void check_usable() const {}
  // One round: each other rank gets its cell of `mine`, and gives one of in_sizes[rank] bytes. Throws, and is never
  // called again then.
  virtual cells swap(cells mine, std::span<const std::size_t> in_sizes) = 0;

  deadline end_of_round() const { return end_of_exchange(timeout_ms_); }
  std::uint64_t number() const { return number_; }  // of the round
  bool is_broken() const { return broken_.has_value(); }
  void set_broken(const error& e) { broken_ = e; }
  std::string text_of_silent(const std::string& who) const;
  // The sentence of a rank that is at another call.
  std::string text_of_other_size(std::size_t rank, std::size_t wanted) const;

 private:
  std::vector<std::size_t> swap_sizes(const cells& mine);
  template <class Exchange>
  auto guarded(Exchange&& exchange);

  const char* const word_;
  const std::uint64_t timeout_ms_;
  std::uint64_t number_ = 0;
  std::optional<error> broken_;
};

}  // namespace xio::bootstrap
