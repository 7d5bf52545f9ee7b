// SPDX-License-Identifier: MIT
// The two ways into a TCP world: the root assembles it, every other rank joins it. The world is a star: each rank has
// one connection, to the root. The root is rank 0, or in a world by unique id the rank that made the id.
#pragma once
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/key.hpp"
#include "bootstrap/link.hpp"
#include "bootstrap/pe_set.hpp"

namespace xio::bootstrap {

// Ranks have 32 bits in every message; xio-info --job looks at as many processes. The root has a descriptor for each.
inline constexpr int k_tcp_ranks_max = 65536;

// Names in sentences: of the rank that the others connect to, and of the values that a rank was given.
struct tcp_names {
  std::string root = "rank 0";
  std::string place = "XIO_TCP_ROOT";
  std::string rank = "XIO_TCP_RANK";
  std::string size = "XIO_TCP_SIZE";
  std::string key = "XIO_TCP_KEY or XIO_TCP_KEY_FILE";
};

struct tcp_settings {
  endpoint root;
  int rank = 0;
  int size = 0;
  std::uint64_t timeout_ms = 0;
  secret key;
  bool is_root = false;
  bool trust_network = false;  // XIO_TCP_TRUST_NETWORK
  tcp_names names;
  // Of a world by unique id (unique_id.hpp): the root's sockets, which listen already, and to the others its addresses.
  std::vector<unique_fd> listeners;
  std::vector<socket_address> addresses;

  std::string place() const;  // "127.0.0.1:4711", for sentences

  // Throws XIO_ERR_CONFIG naming the variable that is missing or wrong.
  static tcp_settings from(const bootstrap_options& o);
};

// A rank that waits for rank 0 waits a little longer than rank 0 does, so that rank 0's reply, which names the rank
// that is missing, comes before the waiting rank's own time is over.
// All in all that is less than 1.2 times what the user allows.
inline deadline after_root(const deadline& root, std::uint64_t timeout_ms) {
  return root.and_then(std::chrono::milliseconds(std::min<std::uint64_t>(timeout_ms / 10, 1000)));
}

// The root: listens until every other rank has proven the key; links by rank, its own unused. Closes s.listeners.
std::vector<sealed_link> assemble_world(tcp_settings& s);

// Other ranks: the link to the root, once it says that the world is complete.
sealed_link join_world(const tcp_settings& s);

// The channel of a world of which these are the settings.
std::unique_ptr<channel> connect_star(tcp_settings s);

// One of these members over links that are there: of the root by rank, its own unused and those of others, too; else
// [0] to the root.
class star_channel : public channel {
 public:
  virtual std::vector<sealed_link> release() = 0;  // the links; it is of no use afterwards
};
std::unique_ptr<star_channel> make_star(const tcp_settings& s, const pe_set& members, std::vector<sealed_link> links);

}  // namespace xio::bootstrap
