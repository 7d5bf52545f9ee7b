// SPDX-License-Identifier: MIT
// The network interfaces of this machine: which of them XIO_TCP_INTERFACE chooses, and in which order their addresses
// are given to others and those of others are tried.
#pragma once
#include <vector>

#include "base/socket_address.hpp"

namespace xio {

struct interface_address {
  std::string name;  // of the interface
  socket_address address, mask;
  bool running = true;  // a cable or another interface is at its other end
};

// A list with commas of names or their beginnings and of networks; a leading ^ stands for all others. A name that an
// interface has as a whole is no beginning: eth1 is not eth10 where there is an eth1.
class interface_choice {
 public:
  interface_choice() = default;
  // Throws XIO_ERR_CONFIG with the variable.
  explicit interface_choice(const std::string& text);

  // Those of `all` that are chosen. Throws XIO_ERR_CONFIG if there are none of them, with the names that there are.
  std::vector<interface_address> of(const std::vector<interface_address>& all) const;

 private:
  struct network {
    socket_address address;
    int bits;
  };
  bool names(const interface_address& one, const std::vector<interface_address>& all) const;
  std::string text_;
  bool leaves_out_ = false;
  std::vector<std::string> names_;
  std::vector<network> networks_;
};

// Of interfaces that are up, without link-local ones, which mean nothing without the interface: the likeliest way from
// another machine first.
std::vector<interface_address> own_addresses();

// The order of own_addresses(): that of the default route, one of each interface, further ones, those of interfaces
// without a carrier, loopback; IPv4 before IPv6. `from` are the addresses from which packets go by the default routes.
void sort_by_likelihood(std::vector<interface_address>& all, std::span<const socket_address> from);

// Of another machine's: those that share a network with one of `own` come first, loopback last.
void sort_by_nearness(std::vector<socket_address>& theirs, const std::vector<interface_address>& own);

}  // namespace xio
