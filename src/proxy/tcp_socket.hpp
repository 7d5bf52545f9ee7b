// SPDX-License-Identifier: MIT
// Non-blocking stream sockets, and where a NIC can be called.
#pragma once
#include "base/options.hpp"
#include "base/socket_address.hpp"
#include "base/unique_fd.hpp"

namespace xio::proxy::tcp {

struct listener {
  unique_fd fd;
  std::vector<socket_address> places;  // how it can be called, the likeliest first
};

// At `address` (numeric, with or without port; empty: every interface) and a port of `o` if it has none. Throws with
// the reason.
listener listen_at(const std::string& address, const network_options& o = {});

// None at the end of what waits, or with errno in `err`, which no_descriptor() knows if it is for want of one.
unique_fd accept_one(int listener, int& err);
// Of every connection of a NIC.
void tune(int fd);
// Two ends of one stream within this process. Throws with the reason.
std::pair<unique_fd, unique_fd> socket_pair();

}  // namespace xio::proxy::tcp
