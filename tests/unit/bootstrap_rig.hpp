// SPDX-License-Identifier: MIT
// Ranks of a TCP world as threads of one test, and strangers that talk to rank 0 by hand.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/link.hpp"
#include "outcome.hpp"

namespace rig {

using namespace xio::test;

// No passphrases: not every library stretches them.
inline const std::string k_key = "616e20686f6e657374206b6579206f66207468652074657374730000000000aa";
inline const std::string k_other_key = "746865206b6579206f6620736f6d65626f647920656c73650000000000000000";

// A port that was free a moment ago.
inline int free_port(bool v6 = false) {
  const int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr* at = v6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  socklen_t length = v6 ? sizeof six : sizeof four;
  EXPECT_EQ(bind(fd, at, length), 0);
  getsockname(fd, at, &length);
  close(fd);
  return ntohs(v6 ? six.sin6_port : four.sin_port);
}

inline xio::options tcp_options(int port, int rank, int size, std::uint64_t timeout_ms = 10000) {
  auto o = xio::options::defaults();
  o.bootstrap = xio::option::bootstrap::tcp;
  o.tcp_root = "127.0.0.1:" + std::to_string(port);
  o.tcp_rank = std::to_string(rank);
  o.tcp_size = std::to_string(size);
  o.tcp_key = k_key;
  o.timeout_ms = timeout_ms;
  return o;
}

inline std::vector<xio::unique_fd> listen_on(int port) {
  return xio::bootstrap::listen_at({"127.0.0.1", static_cast<std::uint16_t>(port)}, xio::bootstrap::deadline::in(0));
}

// The first connection to come.
inline xio::unique_fd accept_from(const std::vector<xio::unique_fd>& listeners) {
  pollfd p{listeners[0].get(), POLLIN, 0};
  poll(&p, 1, 10000);
  xio::socket_address from;
  return xio::bootstrap::accept_one(listeners[0].get(), from);
}

inline xio::bootstrap::secret key_of(const std::string& text) {
  xio::crypto::start();
  auto o = xio::options::defaults();
  o.tcp_key = text;
  return xio::bootstrap::load_key(o);
}

// Runs body(i) in `count` threads and returns how each of them ended.
inline std::vector<outcome> in_threads(int count, const std::function<void(int)>& body) {
  std::vector<outcome> outcomes(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] { outcomes[static_cast<std::size_t>(i)] = outcome_of([&] { body(i); }); });
  for (auto& t : threads) t.join();
  return outcomes;
}

// All ranks of an allgather, checked byte by byte: rank r gives `bytes` bytes that depend on r and `salt`.
inline std::byte pattern(int rank, std::size_t i, unsigned salt) {
  return static_cast<std::byte>((static_cast<unsigned>(rank) * 131 + static_cast<unsigned>(i) * 7 + salt) & 0xff);
}
inline void check_allgather(xio::bootstrap::channel& c, std::size_t bytes, unsigned salt) {
  std::vector<std::byte> mine(bytes);
  for (std::size_t i = 0; i < bytes; ++i) mine[i] = pattern(c.rank(), i, salt);
  const auto all = c.allgather(mine);
  ASSERT_EQ(all.size(), bytes * static_cast<std::size_t>(c.size()));
  std::size_t wrong = 0;
  for (int r = 0; r < c.size(); ++r)
    for (std::size_t i = 0; i < bytes; ++i)
      wrong += all[static_cast<std::size_t>(r) * bytes + i] != pattern(r, i, salt);
  EXPECT_EQ(wrong, 0u) << "of " << all.size() << " bytes";
}

// All ranks of an all-to-all, checked byte by byte: rank r gives rank q bytes_for(r, q) bytes that depend on both.
template <class BytesFor>
void check_all_to_all(xio::bootstrap::channel& c, BytesFor&& bytes_for) {
  xio::bootstrap::cells mine;
  for (int to = 0; to < c.size(); ++to) {
    std::vector<std::byte> cell(bytes_for(c.rank(), to));
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = pattern(c.rank(), i, static_cast<unsigned>(to));
    mine.add(cell);
  }
  const auto got = c.all_to_all(mine);
  ASSERT_EQ(got.count(), static_cast<std::size_t>(c.size()));
  for (int from = 0; from < c.size(); ++from) {
    const auto cell = got[static_cast<std::size_t>(from)];
    ASSERT_EQ(cell.size(), bytes_for(from, c.rank())) << "from " << from << " to " << c.rank();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < cell.size(); ++i) wrong += cell[i] != pattern(from, i, static_cast<unsigned>(c.rank()));
    EXPECT_EQ(wrong, 0u) << "from " << from << " to " << c.rank();
  }
}

// A plain blocking connection to 127.0.0.1:port that waits for the listener to appear; for strangers.
class raw_connection {
 public:
  explicit raw_connection(int port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    for (int tries = 0; tries < 1000; ++tries) {
      fd_ = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return;
      close(fd_);
      fd_ = -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "no listener at port " << port;
  }
  ~raw_connection() {
    if (fd_ >= 0) close(fd_);
  }
  raw_connection(const raw_connection&) = delete;
  void send_bytes(const void* data, std::size_t n) { (void)!::send(fd_, data, n, MSG_NOSIGNAL); }
  // Bytes until `n` are there, the other side closes, or 10 s go by.
  std::vector<std::byte> receive(std::size_t n) {
    std::vector<std::byte> got;
    while (got.size() < n) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 10000) <= 0) break;
      std::byte b[4096];
      const ssize_t r = recv(fd_, b, std::min(sizeof b, n - got.size()), 0);
      if (r <= 0) break;
      got.insert(got.end(), b, b + r);
    }
    return got;
  }
  bool closed_by_peer() {
    std::byte b;
    pollfd p{fd_, POLLIN, 0};
    return poll(&p, 1, 10000) > 0 && recv(fd_, &b, 1, 0) <= 0;
  }
  int release() { return std::exchange(fd_, -1); }
  void shutdown_now() {
    close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// A setting made wrong, and words of what is said.
struct bad_setting {
  const char* what;
  std::function<void(xio::options&)> spoil;
  const char* expected;
};

}  // namespace rig
