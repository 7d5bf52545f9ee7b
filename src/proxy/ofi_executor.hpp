// SPDX-License-Identifier: MIT
// Carries the ops of one queue pair by a provider of libfabric: each becomes messages of an endpoint that queue pairs
// to other peers share. A message that the provider would not keep in order is posted when those before it have
// completed.
#pragma once
#include <map>

#include "base/payload.hpp"
#include "base/run_clock.hpp"
#include "proxy/executor.hpp"
#include "proxy/keys.hpp"
#include "proxy/ofi_endpoint.hpp"

namespace xio::proxy::ofi {

// Memory of this PE: XIO's keys, and the provider's registration of each.
struct local_memory {
  const payload_agent& payload;
  key_table keys;
  std::map<std::uint32_t, owned<fid_mr>> registrations;

  void* local_key(std::uint32_t lkey) const;
};

// Memory that a peer has opened.
struct remote_memory {
  std::uint64_t base, bytes, key;
  std::uint32_t rkey, allowed;
};

// Where immediates of a queue pair go at its peer: words of a ring, and behind them how many there may be in all.
constexpr std::uint64_t k_immediates = 64;
struct immediate_ring {
  std::uint64_t at, key;  // as the provider addresses it
};
constexpr std::uint64_t immediate_word(std::uint64_t nth, std::uint32_t immediate) {
  return (nth + 1) << 32 | immediate;
}

struct way {
  std::shared_ptr<endpoint> by;
  fi_addr_t to;
  const local_memory* memory;  // this and what follows outlive the executor
  const std::vector<remote_memory>* theirs;
  immediate_ring ring;
  bool words_whole;                   // 8 aligned bytes are written in one piece
  std::chrono::nanoseconds patience;  // without any progress; 0: for ever
  unsigned rnr_retries;               // 7: for ever
  std::string ends;                   // for the log
};

class executor final : public proxy::executor, private poster {
 public:
  explicit executor(way w) : w_(std::move(w)) {}
  ~executor() override { w_.by->abandon(this); }

  bool begin(const op& o) override;
  std::uint64_t advance(std::uint64_t budget) override;
  bool ended(op_error* how) override;

 private:
  using clock = run_clock;
  struct begun {
    std::uint64_t end;  // messages below are the op's and those before it
    op_error refused;
  };
  op_error check(const op& o) const;
  op_error locate(remote_place& to, const op& o) const;
  std::size_t messages_of(const op& o) const;
  message& add(kind what, const op& o);
  void add_copies(const op& o);
  void add_word(const op& o);
  void add_atomic(const op& o);
  void add_immediate(const op& o);
  bool may_follow(const message& m) const;
  bool has_room_there(const message& m);
  void ask_for_room();
  bool post();
  void check_time();
  void completed(message& m, const failure* why) override;
  void stop(std::uint64_t number, op_error f, const char* text, int code);

  const way w_;
  std::deque<begun> ops_;
  std::deque<message*> staged_;  // not posted yet
  // Messages are counted from 0 on. completed_ has those from done_ on.
  std::uint64_t next_ = 0, done_ = 0;
  std::deque<bool> completed_;
  std::array<std::uint32_t, k_kinds> under_way_{};
  std::uint32_t long_writes_ = 0;
  std::uint64_t immediates_ = 0, immediates_posted_ = 0, immediates_most_ = 0;
  bool asks_ = false;
  clock::time_point progress_{}, full_since_{};
  op_error failed_;
  std::uint64_t failed_at_ = 0;
};

}  // namespace xio::proxy::ofi
