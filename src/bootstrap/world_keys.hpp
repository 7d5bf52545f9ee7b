// SPDX-License-Identifier: MIT
// Keys that two ranks share and nobody else knows, for what leaves the bootstrap: the software NIC's links over TCP and
// the messages of the UCX channel. No secret crosses the network: every rank shows the open half of an X25519 key pair
// to all, and any two of them then come to the same key.
//
//   key of ranks a < b   MAC(configured key, purpose | n | a | b | open half of a | of b | what the two agree on)
//
// The owner of each open half is proven by the channel where it is sealed (tcp), else by XIO_TCP_KEY if every rank has
// it; without either, listeners still learn nothing, but an attacker that can alter the ranks' messages can read and
// change all that the keys protect.
#pragma once
#include "base/ephemeral_key.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/key.hpp"

namespace xio::bootstrap {

// XIO_TCP_KEY or XIO_TCP_KEY_FILE as a channel keeps it that is not sealed itself. A shell may have a key for all its
// programs, so one that is wrong is an error when it is needed, and not before.
struct configured_key {
  std::optional<secret> key;
  std::optional<error> wrong;
  // Null if none is set.
  static std::shared_ptr<const configured_key> from(const bootstrap_options& o);
};

class world_keys {
 public:
  // Collective over c. Throws on every rank where one has no key and another has one, where they differ, or where one
  // cannot be read.
  static std::shared_ptr<const world_keys> agree(channel& c, const configured_key* key, bool sealed);

  // Of this rank and another, for one purpose; the same on both. Local.
  secret with(int rank, std::string_view purpose) const;
  // Whether the channel or a key has proven whose the open halves are.
  bool proven() const { return proven_; }

 private:
  world_keys(int rank, bool proven, const configured_key* key);
  const int rank_;
  const bool proven_;
  secret key_;  // zeros without one
  const ephemeral_key mine_;
  std::vector<ephemeral_key::half> public_halves_;  // by rank
};

}  // namespace xio::bootstrap
