// SPDX-License-Identifier: MIT
#include "uverbs/device/wire.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>

namespace uverbs {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  path.copy(a.sun_path, sizeof a.sun_path - 1);
  return a;
}

xio::unique_fd make_socket() {
  return xio::unique_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

bool sender::send(const request_message& m) {
  if (fd_.get() < 0) {
    xio::unique_fd fd = make_socket();
    const sockaddr_un to = address_of(path_);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return false;
    fd_ = std::move(fd);
  }
  const bool carries = m.head.what == xio::proxy::verb::write;
  const std::size_t bytes = sizeof(request) + (carries ? m.head.bytes : 0);
  if (::send(fd_.get(), &m, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes)) return true;
  if (errno != EAGAIN) forget();
  return false;
}

bool sender::receive(response_message& m) {
  if (fd_.get() < 0) return false;
  const ssize_t n = recv(fd_.get(), &m, sizeof m, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN)) forget();
  return n >= static_cast<ssize_t>(sizeof(response));
}

receiver::receiver(const std::string& session, std::uint32_t host) : listening_(make_socket()) {
  const std::string path = session + "/port" + std::to_string(host);
  const sockaddr_un at = address_of(path);
  unlink(path.c_str());
  if (bind(listening_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(listening_.get(), 1024) != 0)
    std::perror("simulated RDMA device: no socket");
}

bool receiver::poll(const server& serve) {
  bool any = false;
  for (int fd; (fd = accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0; any = true)
    peers_.emplace_back(fd);
  static const auto in = std::make_unique<request_message>();
  static const auto out = std::make_unique<response_message>();
  for (std::size_t i = 0; i < peers_.size();) {
    const ssize_t n = recv(peers_[i].get(), in.get(), sizeof *in, 0);
    if (n < static_cast<ssize_t>(sizeof(request))) {
      if (n >= 0 || errno != EAGAIN)
        peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
      continue;
    }
    any = true;
    out->head = {};
    if (serve(*in, *out)) {
      const bool carries = in->head.what == xio::proxy::verb::read && !out->head.how;
      send(peers_[i].get(), out.get(), sizeof(response) + (carries ? out->head.bytes : 0), MSG_NOSIGNAL);
    }
    ++i;
  }
  return any;
}

}  // namespace uverbs
