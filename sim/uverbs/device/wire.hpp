// SPDX-License-Identifier: MIT
// The network between simulated devices: messages over sockets of the session's folder, each with the sender's queue
// pair, its packet number and one piece of an op. A device that would drop a packet drops the message.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "proxy/op.hpp"

namespace uverbs {

constexpr std::uint32_t k_piece = 32 << 10;

struct request {
  std::uint32_t host, qpn;        // sender
  std::uint32_t remote_qpn, psn;  // for whom; counts messages
  xio::proxy::verb what;
  bool has_immediate;
  std::uint32_t immediate;
  std::uint32_t rkey, bytes;  // of this piece
  std::uint64_t remote;
  xio::proxy::atomic_change change;
};
struct response {
  xio::proxy::op_error how;
  bool is_not_ready;  // no receive is posted: the same again, later
  std::uint32_t bytes;
  std::uint64_t old;
};

struct request_message {
  request head;
  unsigned char data[k_piece];
};
struct response_message {
  response head;
  unsigned char data[k_piece];
};

// One requester's way to a peer; opened when it is first used.
class sender {
 public:
  sender(std::string session, std::uint32_t host) : path_(std::move(session) + "/port" + std::to_string(host)) {}
  bool send(const request_message& m);  // false: not now
  bool receive(response_message& m);    // false: nothing yet
  // Messages that are still on their way count no more.
  void forget() { fd_ = xio::unique_fd(); }

 private:
  const std::string path_;
  xio::unique_fd fd_;
};

// Takes messages of all peers.
class receiver {
 public:
  receiver(const std::string& session, std::uint32_t host);
  // `serve` returns false where a device would drop the packet. True if anything came.
  using server = std::function<bool(const request_message&, response_message&)>;
  bool poll(const server& serve);

 private:
  xio::unique_fd listening_;
  std::vector<xio::unique_fd> peers_;
};

}  // namespace uverbs
