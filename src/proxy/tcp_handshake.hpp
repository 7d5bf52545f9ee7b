// SPDX-License-Identifier: MIT
// How a connection is made: the caller tries the callee's addresses, beside each other and again and again, until the
// NIC at one of them proves to be the callee; the callee checks the caller's proof. Both go in steps that never wait. A
// stranger gets no further than the first message that it cannot make.
#pragma once
#include "base/connect_race.hpp"
#include "base/run_clock.hpp"
#include "proxy/tcp_proof.hpp"
#include "proxy/tcp_socket.hpp"

namespace xio::proxy::tcp {

using clock = run_clock;
enum class step { pending, done, failed };

// Exactly `bytes` of a stream, in pieces.
class short_message {
 public:
  step receive(int fd, void* to, std::size_t bytes);
  std::size_t got() const { return got_; }

 private:
  std::size_t got_ = 0;
};
// Short messages always fit into an empty socket.
bool send_short(int fd, const void* from, std::size_t bytes);

class caller {
 public:
  caller(const tcp_key& key, std::uint32_t me, std::uint32_t them, const identity& target,
         std::vector<socket_address> places, bool trust_network);
  // Failed: nobody listens at any of the addresses, or who does is not trusted.
  step go_on();
  // After `done`.
  unique_fd take(seal& out, seal& in);
  // Its addresses, and what came of the last call to each.
  std::string tried() const;

 private:
  step connect();
  step give_up_place(const std::string& why);
  const tcp_key key_;
  const std::uint32_t me_, them_;
  const identity target_;
  const bool trust_network_;
  connect_race race_;
  std::vector<std::string> outcomes_;  // of addresses that took a call; as the race's
  unique_fd fd_;
  bool heard_ = false;                      // one of this round's addresses took a call
  clock::time_point until_{};               // of an address that has taken the call, or of the rest between rounds
  std::optional<ephemeral_key> ephemeral_;  // of this call
  session session_;
  hello hello_{};
  reply reply_{};
  short_message incoming_;
};

class visitor {
 public:
  visitor(const tcp_key_source& key_with, unique_fd fd, clock::time_point until, bool trust_network)
      : key_with_(key_with), fd_(std::move(fd)), until_(until), trust_network_(trust_network) {}
  // Failed: not for this NIC, or no proof.
  step go_on(std::uint32_t me, const identity& mine);
  // Whether its first message is of this protocol, but of another version.
  bool is_of_another_version() const { return other_version_; }
  bool is_stranger() const { return !replied_; }  // as far as is known
  std::uint32_t who() const { return hello_.caller; }
  unique_fd take(seal& out, seal& in);

 private:
  const tcp_key_source& key_with_;
  tcp_key key_;  // with the PE that it says it is
  unique_fd fd_;
  const clock::time_point until_;
  const bool trust_network_;
  bool replied_ = false, other_version_ = false;
  std::optional<ephemeral_key> ephemeral_;
  session session_;
  hello hello_{};
  reply reply_{};
  proof proof_{};
  short_message incoming_;
};

}  // namespace xio::proxy::tcp
