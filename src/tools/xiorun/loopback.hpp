// SPDX-License-Identifier: MIT
// The place where the PEs of a run connect: a port of the loopback interface.
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

}  // namespace xio::run
