// SPDX-License-Identifier: MIT
// Address and port of a stream socket, of IPv4 or IPv6.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>

namespace xio {

struct socket_address {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  // Of the 4 or 16 bytes of an address in network order.
  static socket_address of(int family, const void* host, std::uint16_t port);
  // A copy of the kernel's or the C library's; length 0 for another family than the two.
  static socket_address of(const sockaddr* native);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  int family() const { return bytes.ss_family; }
  std::span<const unsigned char> host() const;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  std::string text() const;  // "10.0.0.1:4711", "[::1]:4711"
  std::string host_text() const;
  bool loopback() const;
  bool any() const;         // of every interface
  bool link_local() const;  // of IPv6: it means nothing without an interface

  // Host and port.
  bool operator==(const socket_address& other) const;
};

// Where the socket is bound; length 0 if the kernel does not say.
socket_address bound_address(int fd);

}  // namespace xio
