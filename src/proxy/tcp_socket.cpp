// SPDX-License-Identifier: MIT
#include "proxy/tcp_socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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

socklen_t to_native(const place& p, sockaddr_storage& out) {
  out = {};
  if (p.family == 4) {
    auto* four = reinterpret_cast<sockaddr_in*>(&out);
    four->sin_family = AF_INET;
    four->sin_port = htons(p.port);
    std::memcpy(&four->sin_addr, p.bytes, 4);
    return sizeof *four;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&out);
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(p.port);
  std::memcpy(&six->sin6_addr, p.bytes, 16);
  return sizeof *six;
}

bool from_native(const sockaddr* a, place& out) {
  out = {};
  if (a == nullptr) return false;
  if (a->sa_family == AF_INET) {
    out.family = 4;
    std::memcpy(out.bytes, &reinterpret_cast<const sockaddr_in*>(a)->sin_addr, 4);
    out.port = ntohs(reinterpret_cast<const sockaddr_in*>(a)->sin_port);
    return true;
  }
  if (a->sa_family != AF_INET6) return false;
  const auto* six = reinterpret_cast<const sockaddr_in6*>(a);
  // A link-local address means nothing without the interface, whose name the peer does not know.
  if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) return false;
  out.family = 6;
  std::memcpy(out.bytes, &six->sin6_addr, 16);
  out.port = ntohs(six->sin6_port);
  return true;
}

bool is_loopback(const place& p) {
  return p.family == 4 ? p.bytes[0] == 127 : IN6_IS_ADDR_LOOPBACK(reinterpret_cast<const in6_addr*>(p.bytes));
}

bool is_any(const place& p) {
  return std::all_of(p.bytes, p.bytes + 16, [](unsigned char b) { return b == 0; });
}

struct network {
  place address, mask;
};

std::vector<network> own_networks() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  std::vector<network> out;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    network n;
    if ((i->ifa_flags & IFF_UP) != 0 && from_native(i->ifa_addr, n.address) && from_native(i->ifa_netmask, n.mask))
      out.push_back(n);
  }
  return out;
}

bool shares(const network& n, const place& p) {
  if (n.address.family != p.family) return false;
  for (int i = 0; i < 16; ++i)
    if ((n.address.bytes[i] & n.mask.bytes[i]) != (p.bytes[i] & n.mask.bytes[i])) return false;
  return true;
}

void tune(int fd) {
  const int on = 1;
  // Frames leave in batches of this fabric's own making.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

place parse(const std::string& text) {
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
  place p;
  p.family = host.find(':') == std::string::npos ? 4 : 6;
  if (inet_pton(p.family == 4 ? AF_INET : AF_INET6, host.c_str(), p.bytes) != 1) bad();
  const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), p.port);
  if (!port.empty() && (ec != std::errc() || end != port.data() + port.size() || p.port == 0)) bad();
  return p;
}

unique_fd bind_at(const place& p, int& err) {
  sockaddr_storage native;
  const socklen_t length = to_native(p, native);
  unique_fd fd(socket(native.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  if (fd) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (p.family == 6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&native), length) == 0 && listen(fd.get(), k_backlog) == 0)
      return fd;
  }
  err = errno;
  return {};
}

std::uint16_t port_of(int fd) {
  sockaddr_storage native{};
  socklen_t length = sizeof native;
  place p;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&native), &length) != 0 ||
      !from_native(reinterpret_cast<const sockaddr*>(&native), p))
    return 0;
  return p.port;
}

}  // namespace

std::string place::text() const {
  char host[INET6_ADDRSTRLEN] = "?";
  inet_ntop(family == 4 ? AF_INET : AF_INET6, bytes, host, sizeof host);
  return family == 4 ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

listener listen_at(const std::string& address) {
  place any6, any4;
  any6.family = 6;
  any4.family = 4;
  place given = address.empty() ? any6 : parse(address);
  int err = 0;
  listener out;
  out.fd = bind_at(given, err);
  if (!out.fd && address.empty()) out.fd = bind_at(given = any4, err);
  if (!out.fd)
    fail(XIO_ERR_IO,
         "the software NIC cannot listen at {}: {}; set XIO_NIC_TCP_ADDRESS to an address of this machine and, if with "
         "a port, one that is free",
         given.text(), errno_text(err));
  const std::uint16_t port = port_of(out.fd.get());
  if (is_any(given)) {
    for (const network& n : own_networks())
      if (given.family == 6 || n.address.family == 4) out.places.push_back(n.address);
  } else {
    out.places.push_back(given);
  }
  if (out.places.empty())
    fail(XIO_ERR_IO, "no network interface of this machine is up, not even loopback; the software NIC needs one");
  for (place& p : out.places) p.port = port;
  std::stable_partition(out.places.begin(), out.places.end(), [](const place& p) { return !is_loopback(p); });
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

unique_fd call(const place& where, int& err) {
  sockaddr_storage native;
  const socklen_t length = to_native(where, native);
  unique_fd fd(socket(native.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) {
    tune(fd.get());
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&native), length) == 0 || errno == EINPROGRESS) return fd;
  }
  err = errno;
  return {};
}

int call_state(int fd, int& err) {
  pollfd p{fd, POLLOUT, 0};
  if (poll(&p, 1, 0) <= 0) return 0;
  err = 0;
  socklen_t length = sizeof err;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length) == 0 && err == 0 ? 1 : -1;
}

std::pair<unique_fd, unique_fd> socket_pair() {
  int two[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, two) != 0)
    fail(XIO_ERR_IO, "the software NIC has no socket pair for queue pairs to its own PE: {}; raise ulimit -n",
         errno_text(errno));
  return {unique_fd(two[0]), unique_fd(two[1])};
}

void sort_by_nearness(std::vector<place>& places) {
  const std::vector<network> own = own_networks();
  const auto rank = [&](const place& p) {
    if (is_loopback(p)) return 2;
    return std::any_of(own.begin(), own.end(), [&](const network& n) { return shares(n, p); }) ? 0 : 1;
  };
  std::stable_sort(places.begin(), places.end(), [&](const place& a, const place& b) { return rank(a) < rank(b); });
}

}  // namespace xio::proxy::tcp
