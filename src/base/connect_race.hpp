// SPDX-License-Identifier: MIT
// A connection to that of several addresses which replies first (RFC 8305, "Happy Eyeballs"). Attempts begin in the
// order of the addresses, the next one when the one before has failed or some time after it began, and those before go
// on. So an address that swallows packets costs that time, and not the seconds until TCP gives up on it.
//
// Nothing here waits: the caller polls and calls step() again.
#pragma once
#include <poll.h>

#include <deque>
#include <vector>

#include "base/run_clock.hpp"
#include "base/socket_address.hpp"
#include "base/unique_fd.hpp"

namespace xio {

class connect_race {
 public:
  // RFC 8305's delay, and the time in which the attempts of a round begin all the same: many dead addresses before a
  // good one shall not sum up.
  static constexpr std::chrono::milliseconds k_apart{250}, k_all_begun{500};
  // One attempt. TCP repeats its request after one second, then after two: a new attempt asks sooner than that.
  static constexpr std::chrono::milliseconds k_attempt{2000};

  explicit connect_race(std::vector<socket_address> where);

  // running: look again when one of poll()'s descriptors is ready, or after poll_ms().
  // connected: take() has the connection. If it turns out to be none's that is wanted, step() goes on with the others.
  // over: every address has failed in this round.
  enum class state { running, connected, over };
  state step();
  unique_fd take() { return std::move(won_); }
  std::size_t which() const { return which_; }  // the index of what take() gave

  // Tries all of them from the start.
  void begin_round();

  void add_to(std::vector<pollfd>& polled) const;
  // Until something is due, at most `most`.
  int poll_ms(int most) const;

  // Of a round that is over: whether all addresses refused, or no way led to them from here, and one refused at least.
  // So the host is there and nobody listens.
  bool refused() const;
  // Whether an address was silent, or its network down, which may pass.
  bool may_pass() const;
  // Of each address, the errno of its last attempt. 0: none has ended; ETIMEDOUT: no reply in k_attempt.
  int error_of(std::size_t i) const { return errors_[i]; }
  std::string error_text_of(std::size_t i) const;
  const std::vector<socket_address>& addresses() const { return where_; }
  // "10.0.0.1:7: Connection refused, ..."; of a single address without its name.
  std::string errors() const;

 private:
  using time_point = run_clock::time_point;
  struct attempt {
    std::size_t which;
    unique_fd fd;
    time_point until;
  };
  void begin_next();
  bool look_at(attempt& a, short events);
  void win(attempt& a);
  void fail(std::size_t which, int err) { errors_[which] = err; }

  const std::vector<socket_address> where_;
  const std::chrono::milliseconds apart_;
  std::vector<int> errors_;
  std::deque<std::size_t> waiting_;  // not begun in this round
  std::vector<attempt> running_;
  time_point next_{};
  unique_fd won_;
  std::size_t which_ = 0;
};

}  // namespace xio
