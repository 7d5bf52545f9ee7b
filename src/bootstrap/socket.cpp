// SPDX-License-Identifier: MIT
#include "bootstrap/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/launcher.hpp"
#include "bootstrap/resolve.hpp"

namespace xio::bootstrap {

namespace {

unique_fd listen_on(const socket_address& at, int& err) {
  unique_fd fd = stream_socket(at.bytes.ss_family, err);
  const int on = 1, off = 0;
  if (fd) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // xiorun keeps the port for this user by a socket that is bound and does not listen.
    if (started_by_xiorun()) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    // "::" shall also take IPv4; a specific IPv6 address is not affected.
    if (at.bytes.ss_family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd.get(), at.get(), at.length) == 0 && listen(fd.get(), SOMAXCONN) == 0) return fd;
    err = errno;
  }
  return {};
}

// Debian's /etc/hosts gives a host's own name a loopback address, where no other host would find rank 0.
bool name_hides_behind_loopback(const endpoint& where, const std::vector<socket_address>& addresses) {
  if (where.host == "localhost" || is_numeric_host(where.host)) return false;
  for (const auto& a : addresses)
    if (!a.loopback()) return false;
  return true;
}

std::vector<socket_address> every_interface(std::uint16_t port) {
  return {socket_address::of(AF_INET6, &in6addr_any, port), socket_address::of(AF_INET, &in6addr_any, port)};
}

}  // namespace

void tune(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A host that loses power sends no FIN. Without a deadline (XIO_TIMEOUT_MS=0) only keep-alive ends the wait.
  const int idle = 10, interval = 5, probes = 4;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

endpoint endpoint::parse(const std::string& text, const std::string& variable) {
  const auto bad = [&](const char* why) {
    fail(XIO_ERR_CONFIG, "{}='{}' {}; give host:port such as node0:4711 or [::1]:4711", variable, text, why);
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) bad("has no port");
  endpoint e;
  e.host = text.substr(0, colon);
  if (e.host.size() >= 2 && e.host.front() == '[' && e.host.back() == ']')
    e.host = e.host.substr(1, e.host.size() - 2);
  else if (e.host.find(':') != std::string::npos)
    bad("is an IPv6 address without brackets");
  if (e.host.empty()) bad("has no host");
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  auto [end, ec] = std::from_chars(first, last, e.port);
  if (ec != std::errc() || end != last || e.port == 0) bad("has no port between 1 and 65535");
  return e;
}

std::vector<unique_fd> listen_at(const endpoint& where, const deadline& until) {
  auto addresses = resolve(where, until);
  const bool hidden = name_hides_behind_loopback(where, addresses);
  if (hidden) {
    log::info("{} is a loopback address here; rank 0 listens on every interface instead", where.host);
    addresses = every_interface(where.port);
  }
  std::vector<unique_fd> listeners;
  std::string reasons;
  int err = 0;
  for (const auto& a : addresses) {
    if (hidden && !listeners.empty()) break;  // the first, "::", took IPv4 as well
    if (auto fd = listen_on(a, err))
      listeners.push_back(std::move(fd));
    else
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : ", ", a.text(), errno_text(err));
  }
  if (listeners.empty() && no_descriptor(err))
    fail(XIO_ERR_IO, "rank 0 has no file descriptor left to listen at XIO_TCP_ROOT={}:{}: {}", where.host, where.port,
         text_of_no_descriptor(err));
  if (listeners.empty())
    fail(XIO_ERR_IO,
         "rank 0 cannot listen at XIO_TCP_ROOT={}:{} ({}); choose a free port and an address of the host that runs "
         "rank 0, and check that no second process has XIO_TCP_RANK=0",
         where.host, where.port, reasons);
  return listeners;
}

unique_fd accept_one(int listener, socket_address& from) {
  from.length = sizeof from.bytes;
  unique_fd fd(accept4(listener, reinterpret_cast<sockaddr*>(&from.bytes), &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) tune(fd.get());
  return fd;
}

byte_stream::state byte_stream::send_some() {
  while (sending()) {
    const ssize_t n = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n > 0) {
      sent_ += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return state::blocked;
    } else {
      return state::closed;
    }
  }
  out_.clear();
  sent_ = 0;
  return state::done;
}

byte_stream::state byte_stream::receive_up_to(std::size_t want) {
  while (in_.size() < want) {
    const std::size_t had = in_.size();
    // Memory follows what has arrived, not what the other side announces.
    const std::size_t step = std::min<std::size_t>(want - had, 64 * 1024);
    in_.resize(had + step);
    const ssize_t n = recv(fd_.get(), in_.data() + had, step, 0);
    in_.resize(had + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return state::blocked;
    return state::closed;
  }
  return state::done;
}

void byte_stream::finish_sending() { shutdown(fd_.get(), SHUT_WR); }

bool byte_stream::drained() {
  std::byte sink[4096];
  for (int i = 0; i < 64; ++i) {  // a flood shall not keep the caller from its deadline
    const ssize_t n = recv(fd_.get(), sink, sizeof sink, 0);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
  return false;
}

}  // namespace xio::bootstrap
