// SPDX-License-Identifier: MIT
// Worlds by unique id: the process that makes the id listens from then on, and the id holds its addresses and the key.
//
//   magic (8) | key (32) | place (8) | port (2, little-endian) | families (1) | counts (1) | addresses (68) | check (8)
//
// `place` says machine and network namespace, so that PEs beside the maker use the loopback interface. `families` are
// those that the maker listens with. `counts` are those of the addresses, of IPv4 in the lower four bits and of IPv6 in
// the upper ones; the addresses of IPv4 come first, and of each family the likeliest way first. `check` is a hash of
// all before it: it finds an id that was cut or damaged on its way.
#pragma once
#include "base/socket_address.hpp"
#include "base/unique_fd.hpp"
#include "bootstrap/bootstrap.hpp"
#include "xio/xio.h"

namespace xio::bootstrap {

// Throws XIO_ERR_IO without a socket to listen at, XIO_ERR_CONFIG for an option that is wrong.
xio_unique_id_t make_unique_id(const network_options& o);

// The place that a program gives this PE, instead of a launcher.
struct place_by_id {
  xio_unique_id_t id;
  int rank = 0, size = 0;
};

// Throws XIO_ERR_CONFIG for an id that is none and for a rank or size that cannot be, XIO_ERR_PEER at once for an id
// for which nobody listens any more, and what connect_tcp throws. The options' TCP values are ignored.
std::unique_ptr<channel> connect_unique_id(const bootstrap_options& o, const place_by_id& mine);

// A member of a world listens as the maker of an id does, and the id says where. The rest of it is zeroes: no key, and
// nothing by which it could be passed for a whole one.
struct listening_member {
  xio_unique_id_t id;
  std::vector<unique_fd> listeners;
};
listening_member listen_for_members(const network_options& o);
// Where the process of that id listens, the likeliest address first.
std::vector<socket_address> addresses_in(const xio_unique_id_t& id, const network_options& o);

}  // namespace xio::bootstrap
