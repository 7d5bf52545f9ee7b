// SPDX-License-Identifier: MIT
// Non-blocking stream sockets, and where a NIC can be called.
#pragma once
#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace xio::proxy::tcp {

// IPv4 or IPv6 by the name of `family`; IPv4 uses the first 4 bytes.
struct place {
  std::uint16_t family = 0;  // 4 or 6
  std::uint16_t port = 0;
  unsigned char bytes[16]{};
  std::string text() const;
};

struct listener {
  unique_fd fd;
  std::vector<place> places;  // how it can be called, the likeliest first
};

// At `address` (numeric, with or without port; empty: every interface). Throws with the reason.
listener listen_at(const std::string& address);

// None at the end of what waits, or with errno in `err`, which no_descriptor() knows if it is for want of one.
unique_fd accept_one(int listener, int& err);
// Begins to connect; none with errno in `err` if that failed at once.
unique_fd call(const place& where, int& err);
// 1: connected, 0: not yet, -1: failed, with errno in `err`.
int call_state(int fd, int& err);
// Two ends of one stream within this process. Throws with the reason.
std::pair<unique_fd, unique_fd> socket_pair();

// Those that share a network with this machine come first, loopback last.
void sort_by_nearness(std::vector<place>& places);

}  // namespace xio::proxy::tcp
