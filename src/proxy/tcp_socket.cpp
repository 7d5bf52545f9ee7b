// SPDX-License-Identifier: MIT
#include "proxy/tcp_socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/descriptors.hpp"
#include "base/error.hpp"

namespace xio::proxy::tcp {

namespace {

constexpr int k_backlog = 128;

struct network {
  socket_address address, mask;
};

std::vector<network> own_networks() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  std::vector<network> out;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const network n{socket_address::of(i->ifa_addr), socket_address::of(i->ifa_netmask)};
    // A link-local address means nothing without the interface, whose name the peer does not know.
    if ((i->ifa_flags & IFF_UP) != 0 && n.address.length != 0 && n.mask.length != 0 && !n.address.link_local())
      out.push_back(n);
  }
  return out;
}

bool shares(const network& n, const socket_address& p) {
  if (n.address.family() != p.family()) return false;
  const auto one = n.address.host(), other = p.host(), mask = n.mask.host();
  for (std::size_t i = 0; i < mask.size(); ++i)
    if ((one[i] & mask[i]) != (other[i] & mask[i])) return false;
  return true;
}

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
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
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
  if (bind(fd.get(), at.get(), at.length) == 0 && listen(fd.get(), k_backlog) == 0) return fd;
  err = errno;
  return {};
}

}  // namespace

void tune(int fd) {
  const int on = 1;
  // Frames leave in batches of this fabric's own making.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

listener listen_at(const std::string& address) {
  const auto any6 = socket_address::of(AF_INET6, &in6addr_any, 0);
  const auto any4 = socket_address::of(AF_INET, &in6addr_any, 0);
  socket_address given = address.empty() ? any6 : parse(address);
  int err = 0;
  listener out;
  out.fd = bind_at(given, err);
  if (!out.fd && address.empty()) out.fd = bind_at(given = any4, err);
  if (!out.fd)
    fail(XIO_ERR_IO,
         "the software NIC cannot listen at {}: {}; set XIO_NIC_TCP_ADDRESS to an address of this machine and, if with "
         "a port, one that is free",
         given.text(), errno_text(err));
  const std::uint16_t port = bound_address(out.fd.get()).port();
  if (given.any()) {
    for (const network& n : own_networks())
      if (given.family() == AF_INET6 || n.address.family() == AF_INET) out.places.push_back(n.address);
  } else {
    out.places.push_back(given);
  }
  if (out.places.empty())
    fail(XIO_ERR_IO, "no network interface of this machine is up, not even loopback; the software NIC needs one");
  for (auto& p : out.places) p.set_port(port);
  std::stable_partition(out.places.begin(), out.places.end(), [](const auto& p) { return !p.loopback(); });
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

void sort_by_nearness(std::vector<socket_address>& places) {
  const std::vector<network> own = own_networks();
  const auto rank = [&](const socket_address& p) {
    if (p.loopback()) return 2;
    return std::any_of(own.begin(), own.end(), [&](const network& n) { return shares(n, p); }) ? 0 : 1;
  };
  std::stable_sort(places.begin(), places.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

}  // namespace xio::proxy::tcp
