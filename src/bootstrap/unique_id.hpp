// SPDX-License-Identifier: MIT
// Worlds by unique id: the process that makes the id listens from then on, and the id holds its addresses and the key.
//
//   magic (8) | key (32) | place (16) | port (2, little-endian) | families (1) | 0 (1) | addresses (60) | check (8)
//
// `place` says machine and network namespace, so that PEs beside the maker use the loopback interface. An address is
// its family, 4 or 6, and its 4 or 16 bytes; 0 ends the list. `check` is a hash of all before it: it finds an id that
// was cut or damaged on its way.
#pragma once
#include <memory>

#include "bootstrap/bootstrap.hpp"
#include "xio/xio.h"

namespace xio::bootstrap {

// Throws XIO_ERR_IO without a socket to listen at, XIO_ERR_UNSUPPORTED in a build without libsodium.
xio_unique_id_t make_unique_id();

// The place that a program gives this PE, instead of a launcher.
struct place_by_id {
  xio_unique_id_t id;
  int rank = 0, size = 0;
};

// Throws XIO_ERR_CONFIG for an id that is none and for a rank or size that cannot be, XIO_ERR_PEER at once for an id
// for which nobody listens any more, and what connect_tcp throws. The options' TCP values are ignored.
std::unique_ptr<channel> connect_unique_id(const bootstrap_options& o, const place_by_id& mine);

}  // namespace xio::bootstrap
