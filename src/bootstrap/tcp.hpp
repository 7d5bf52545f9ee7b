// SPDX-License-Identifier: MIT
// The two ways into a TCP world: rank 0 assembles it, every other rank joins it. The world is a star: each rank has one
// connection, to rank 0.
#pragma once
#include <cstdint>
#include <vector>

#include "base/options.hpp"
#include "bootstrap/key.hpp"
#include "bootstrap/link.hpp"
#include "bootstrap/socket.hpp"

namespace xio::bootstrap {

inline constexpr int k_tcp_ranks_max = 4096;

struct tcp_settings {
  endpoint root;
  int rank = 0;
  int size = 0;
  std::uint64_t timeout_ms = 0;
  secret key;

  // Throws XIO_ERR_CONFIG naming the variable that is missing or wrong.
  static tcp_settings from(const options& o);
};

// A rank that waits for rank 0 waits a little longer than rank 0 does, so that rank 0's reply, which names the rank
// that is missing, comes before the waiting rank's own time is over.
inline deadline after_root(std::uint64_t timeout_ms) {
  const std::uint64_t grace = std::min<std::uint64_t>(timeout_ms / 4, 1000);
  return deadline::in(timeout_ms == 0 ? 0 : timeout_ms + grace);
}

// Rank 0: listens until every other rank has proven the key; links by rank, [0] unused.
std::vector<sealed_link> assemble_world(const tcp_settings& s);

// Other ranks: the link to rank 0, once it says that the world is complete.
sealed_link join_world(const tcp_settings& s);

}  // namespace xio::bootstrap
