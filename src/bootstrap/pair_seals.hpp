// SPDX-License-Identifier: MIT
// Seals for messages between any two ranks, for a carrier that takes what comes from anybody (UCX matches tags and does
// not say who sent a message): 64 bits to address a message by, which nobody but the two can tell beforehand, and
// ChaCha20-Poly1305 under a key of the pair and direction with the message's number as nonce.
#pragma once
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/key.hpp"

namespace xio::bootstrap {

class pair_seals {
 public:
  static const std::size_t k_bytes;  // that a seal adds
  // With the keys of that channel's ranks. Collective.
  explicit pair_seals(channel& c);

  std::uint64_t tag_to(int rank, std::uint64_t number) const;
  std::uint64_t tag_from(int rank, std::uint64_t number) const;
  std::vector<std::byte> seal(int to, std::uint64_t number, std::span<const std::byte> plain) const;
  // False: `from` never sealed it as message `number` to this rank. `plain` has k_bytes less.
  bool unseal(int from, std::uint64_t number, std::span<const std::byte> sealed, std::byte* plain) const;

 private:
  struct direction {
    secret seal, tag;
  };
  const int rank_;
  std::vector<direction> to_, from_;  // by rank; nothing in this rank's own
};

}  // namespace xio::bootstrap
