// SPDX-License-Identifier: MIT
#include "base/socket_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace xio {
namespace {
const sockaddr_in& four(const socket_address& a) { return reinterpret_cast<const sockaddr_in&>(a.bytes); }
const sockaddr_in6& six(const socket_address& a) { return reinterpret_cast<const sockaddr_in6&>(a.bytes); }
}  // namespace

socket_address socket_address::of(int family, const void* host, std::uint16_t port) {
  socket_address a;
  if (family == AF_INET) {
    auto& to = reinterpret_cast<sockaddr_in&>(a.bytes);
    to.sin_family = AF_INET;
    std::memcpy(&to.sin_addr, host, sizeof to.sin_addr);
    a.length = sizeof to;
  } else if (family == AF_INET6) {
    auto& to = reinterpret_cast<sockaddr_in6&>(a.bytes);
    to.sin6_family = AF_INET6;
    std::memcpy(&to.sin6_addr, host, sizeof to.sin6_addr);
    a.length = sizeof to;
  }
  a.set_port(port);
  return a;
}

socket_address socket_address::of(const sockaddr* native) {
  socket_address a;
  if (native == nullptr || (native->sa_family != AF_INET && native->sa_family != AF_INET6)) return a;
  a.length = native->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&a.bytes, native, a.length);
  return a;
}

std::span<const unsigned char> socket_address::host() const {
  if (family() == AF_INET) return {reinterpret_cast<const unsigned char*>(&four(*this).sin_addr), 4};
  if (family() == AF_INET6) return {reinterpret_cast<const unsigned char*>(&six(*this).sin6_addr), 16};
  return {};
}

// sin_port and sin6_port lie at the same offset (RFC 3493 section 3.3 and POSIX sockaddr_in).
std::uint16_t socket_address::port() const { return ntohs(four(*this).sin_port); }
void socket_address::set_port(std::uint16_t port) { reinterpret_cast<sockaddr_in&>(bytes).sin_port = htons(port); }

std::string socket_address::host_text() const {
  char host[INET6_ADDRSTRLEN] = "?";
  if (!this->host().empty()) inet_ntop(family(), this->host().data(), host, sizeof host);
  return host;
}

std::string socket_address::text() const {
  if (host().empty()) return "an unnamed address";
  return family() == AF_INET ? fmt::format("{}:{}", host_text(), port()) : fmt::format("[{}]:{}", host_text(), port());
}

bool socket_address::loopback() const {
  if (family() == AF_INET) return host()[0] == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six(*this).sin6_addr);
}

bool socket_address::any() const {
  return std::ranges::all_of(host(), [](unsigned char b) { return b == 0; });
}

bool socket_address::link_local() const { return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six(*this).sin6_addr); }

bool socket_address::operator==(const socket_address& other) const {
  return family() == other.family() && port() == other.port() && std::ranges::equal(host(), other.host());
}

socket_address bound_address(int fd) {
  sockaddr_storage native{};
  socklen_t length = sizeof native;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&native), &length) != 0) return {};
  return socket_address::of(reinterpret_cast<const sockaddr*>(&native));
}

}  // namespace xio
