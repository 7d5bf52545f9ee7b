// SPDX-License-Identifier: MIT
#include "tools/xiorun/loopback.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

#include "base/port_range.hpp"

namespace xio::run {
namespace {

constexpr const char* k_no_port_left =
    "no port of XIO_TCP_PORTS is left for PE 0, and one that a run has used rests for a minute; give more ports, or "
    "end what has them";
constexpr int k_connect_ms = 1000;  // to oneself; where packets are dropped it takes for ever

union address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t loopback(int family, address& at) {
  at = {};
  at.any.sa_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    at.v6.sin6_addr = in6addr_loopback;
    return sizeof at.v6;
  }
  at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return sizeof at.v4;
}

// PE 0 listens beside the reservation, even if a wrapper has closed its descriptors. This option, unlike
// SO_REUSEADDR, keeps the port from other users.
unique_fd bound(int family, const address& at, socklen_t length) {
  const int on = 1;
  unique_fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd &&
      (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 || bind(fd.get(), &at.any, length) != 0))
    fd.reset();
  return fd;
}

// At the first port of XIO_TCP_PORTS that is free, or at any; `at` gets it.
unique_fd bound_within(const port_range& ports, int family, address& at, socklen_t& length) {
  const auto bind_at = [&](std::uint16_t port) {
    (family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port) = htons(port);
    if (port == 0) return bound(family, at, length);
    // Another run of this user's, which shares its port by the option too, shall not share this one.
    const int on = 1;
    unique_fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd &&
        (bind(fd.get(), &at.any, length) != 0 || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0))
      fd.reset();
    return fd;
  };
  unique_fd fd = ports.first_free(bind_at);
  if (fd && getsockname(fd.get(), &at.any, &length) != 0) fd.reset();
  return fd;
}

// Empty: it is right.
std::string read_ports(port_range& out) {
  const char* text = std::getenv("XIO_TCP_PORTS");
  const auto ports = port_range::read(text != nullptr ? text : "");
  if (!ports)
    return std::string("XIO_TCP_PORTS='") + text + "' is no range of ports; give first-last such as 7000-7099";
  out = *ports;
  return "";
}

// An interface that is down lets a socket be bound, and drops what is sent.
bool reachable(int family, const address& at, socklen_t length) {
  const unique_fd listener = bound(family, at, length);
  if (!listener || listen(listener.get(), 1) != 0) return false;
  const unique_fd caller(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!caller) return false;
  if (connect(caller.get(), &at.any, length) == 0) return true;
  pollfd p{caller.get(), POLLOUT, 0};
  if (errno != EINPROGRESS) return false;
  if (poll(&p, 1, k_connect_ms) <= 0) return errno = ETIMEDOUT, false;
  int err = 0;
  socklen_t err_length = sizeof err;
  getsockopt(caller.get(), SOL_SOCKET, SO_ERROR, &err, &err_length);
  errno = err;
  return err == 0;
}

// "lo is down", or empty.
std::string interface_that_is_down() {
  ifaddrs* list = nullptr;
  std::string down;
  if (getifaddrs(&list) != 0) return down;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next)
    if ((i->ifa_flags & IFF_LOOPBACK) != 0 && (i->ifa_flags & IFF_UP) == 0) down = i->ifa_name;
  freeifaddrs(list);
  return down;
}

}  // namespace

kept_port reserve_anywhere() {
  kept_port kept;
  port_range ports;
  kept.why = read_ports(ports);
  if (!kept.why.empty()) return kept;
  for (const int family : {AF_INET6, AF_INET}) {
    address at{};
    at.any.sa_family = static_cast<sa_family_t>(family);
    socklen_t length = family == AF_INET6 ? sizeof at.v6 : sizeof at.v4;
    kept.reservation = bound_within(ports, family, at, length);
    if (!kept.reservation) continue;
    kept.port = ntohs(family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
    return kept;
  }
  kept.why = ports.any() ? std::string("no port is left for PE 0: ") + std::strerror(errno) : k_no_port_left;
  return kept;
}

rendezvous find_rendezvous() {
  rendezvous place;
  port_range ports;
  place.why = read_ports(ports);
  if (!place.why.empty()) return place;
  int err = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    address at;
    socklen_t length = loopback(family, at);
    unique_fd fd = bound_within(ports, family, at, length);
    if (fd && reachable(family, at, length)) {
      const bool v6 = family == AF_INET6;
      place.root = (v6 ? "[::1]:" : "127.0.0.1:") + std::to_string(ntohs(v6 ? at.v6.sin6_port : at.v4.sin_port));
      place.reservation = std::move(fd);
      return place;
    }
    if (err == 0) err = errno;
  }
  if (err == EADDRINUSE && !ports.any()) {
    place.why = k_no_port_left;
    return place;
  }
  const std::string down = interface_that_is_down();
  place.why = "the PEs cannot connect by the loopback interface: ";
  if (!down.empty())
    place.why += down + " is down; type 'ip link set " + down + " up'";
  else
    place.why += std::string("neither 127.0.0.1 nor ::1 can be reached (") + std::strerror(err) +
                 "); give lo one of them, and let no firewall stand between";
  return place;
}

}  // namespace xio::run
