// SPDX-License-Identifier: MIT
// The place where the PEs of a run connect: a port of the loopback interface, or of a host for PEs of other hosts, too.
#pragma once
#include <string>

#include "base/unique_fd.hpp"

namespace xio::run {

struct rendezvous {
  unique_fd reservation;  // bound, so that nobody else takes the port; it never listens, PE 0 does
  std::string root;       // "127.0.0.1:4711" or "[::1]:4711"; empty: there is none
  std::string why;        // then a sentence
};
rendezvous find_rendezvous();

// A port of every interface of this host, for PE 0 and PEs of other hosts.
struct kept_port {
  unique_fd reservation;
  int port = 0;
  std::string why;  // there is none
};
kept_port reserve_anywhere();

}  // namespace xio::run
