// SPDX-License-Identifier: MIT
#include "proxy/tcp_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/interfaces.hpp"
#include "base/port_range.hpp"

namespace xio::proxy::tcp {

namespace {

constexpr int k_listen_backlog = 128;

socket_address parse(const std::string& text) {
  const auto bad = [&] [[noreturn]] {
    fail(XIO_ERR_CONFIG,
         "XIO_NIC_TCP_ADDRESS='{}' is no numeric address of this machine; give one such as 10.0.0.1, 10.0.0.1:7001 or "
         "[fd00::1]:7001",
         text);
  };
  std::string host = text, port;
  if (!text.empty() && text[0] == '[') {
    const auto end = text.find(']');
    if (end == std::string::npos || (end + 1 < text.size() && text[end + 1] != ':')) bad();
    host = text.substr(1, end - 1);
    if (end + 1 < text.size()) port = text.substr(end + 2);
    if (end + 1 < text.size() && port.empty()) bad();
  } else if (std::ranges::count(text, ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
    if (port.empty()) bad();
  }
  const int family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  unsigned char bytes[16];
  std::uint16_t number = 0;
  if (inet_pton(family, host.c_str(), bytes) != 1) bad();
  const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (!port.empty() && (ec != std::errc() || end != port.data() + port.size() || number == 0)) bad();
  return socket_address::of(family, bytes, number);
}

unique_fd bind_at(const socket_address& at, int& err) {
  unique_fd fd = stream_socket(at.family(), err);
  const int on = 1, off = 0;
  if (!fd) return {};
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.family() == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd.get(), at.get(), at.length) == 0 && listen(fd.get(), k_listen_backlog) == 0) return fd;
  err = errno;
  return {};
}

}  // namespace

void tune(int fd) {
  const int on = 1;
  // Frames leave in batches of this fabric's own making.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

listener listen_at(const std::string& address, const network_options& o) {
  const interface_choice choice(o.tcp_interface);
  const auto ports = port_range::parse(o.tcp_ports);
  socket_address given = address.empty() ? socket_address::of(AF_INET6, &in6addr_any, 0) : parse(address);
  const bool chooses_port = given.port() == 0 && !ports.any();
  int err = 0;
  const auto bind_given = [&] {
    if (!chooses_port) return bind_at(given, err);
    return ports.first_free([&](std::uint16_t port) {
      given.set_port(port);
      unique_fd fd = bind_at(given, err);
      errno = err;
      return fd;
    });
  };
  listener out;
  out.fd = bind_given();
  if (!out.fd && address.empty()) {
    given = socket_address::of(AF_INET, &in6addr_any, 0);
    out.fd = bind_given();
  }
  if (!out.fd && chooses_port && err == EADDRINUSE)
    fail(XIO_ERR_IO,
         "the software NIC cannot listen: no port of XIO_TCP_PORTS={} is free; give more ports, one for each NIC of "
         "each PE of this machine",
         o.tcp_ports);
  if (!out.fd)
    fail(XIO_ERR_IO,
         "the software NIC cannot listen at {}: {}; set XIO_NIC_TCP_ADDRESS to an address of this machine and, if with "
         "a port, one that is free",
         given.text(), errno_text(err));
  if (given.any()) {
    for (const auto& own : choice.of(own_addresses()))
      if (given.family() == AF_INET6 || own.address.family() == AF_INET) out.places.push_back(own.address);
  } else {
    out.places.push_back(given);
  }
  if (out.places.empty())
    fail(XIO_ERR_IO, "no network interface of this machine is up, not even loopback; the software NIC needs one");
  const std::uint16_t port = bound_address(out.fd.get()).port();
  for (auto& p : out.places) p.set_port(port);
  return out;
}

unique_fd accept_one(int listener, int& err) {
  for (;;) {
    unique_fd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    err = fd ? 0 : errno;
    if (fd) tune(fd.get());
    if (!no_descriptor(err)) return fd;
    // accept4 takes a descriptor before it looks whether anybody waits.
    pollfd p{listener, POLLIN, 0};
    if (poll(&p, 1, 0) <= 0) err = EAGAIN;
    if (err != EMFILE || !raise_descriptor_limit("a PE calls the software NIC")) return fd;
  }
}

std::pair<unique_fd, unique_fd> socket_pair() {
  int two[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, two) != 0)
    fail(XIO_ERR_IO, "the software NIC has no socket pair for queue pairs to its own PE: {}; raise ulimit -n",
         errno_text(errno));
  return {unique_fd(two[0]), unique_fd(two[1])};
}

}  // namespace xio::proxy::tcp
