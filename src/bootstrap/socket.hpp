// SPDX-License-Identifier: MIT
// Stream sockets as the TCP bootstrap needs them: non-blocking, owned, and never waiting past a deadline.
#pragma once
#include <cstddef>
#include <vector>

#include "base/socket_address.hpp"
#include "base/unique_fd.hpp"
#include "bootstrap/deadline.hpp"

namespace xio::bootstrap {

using xio::socket_address;

// "host:port" or "[v6]:port".
struct endpoint {
  std::string host;
  std::uint16_t port = 0;
  static endpoint parse(const std::string& text, const std::string& variable);
};

// Every address of the endpoint. A name is looked up without waiting past `until`.
std::vector<socket_address> resolve(const endpoint& where, const deadline& until);

// Sockets listening at the endpoint; throws XIO_ERR_IO or XIO_ERR_CONFIG with the reason if there is none.
std::vector<unique_fd> listen_at(const endpoint& where, const deadline& until);

// Of every connection of the bootstrap.
void tune(int fd);

// Takes one connection; none when there is no more. Non-blocking.
unique_fd accept_one(int listener, socket_address& from);

// Bytes going out of and coming into one connection, a piece at a time as the kernel takes and gives them.
class byte_stream {
 public:
  enum class state { blocked, done, closed };

  byte_stream() = default;
  explicit byte_stream(unique_fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool sending() const { return sent_ < out_.size(); }
  void queue(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  // Sends what is queued. closed: the other side is gone.
  state send_some();

  // Fills in() up to `want` bytes in all. closed: the other side ended or broke the connection.
  state receive_up_to(std::size_t want);
  std::span<const std::byte> in() const { return in_; }
  void clear_in() { in_.clear(); }

  // Ends the stream so that what was sent arrives: says "no more", then reads what comes until the other side ends too.
  void finish_sending();
  bool drained();
  void close() { fd_.reset(); }

 private:
  unique_fd fd_;
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;
  std::vector<std::byte> in_;
};

}  // namespace xio::bootstrap
