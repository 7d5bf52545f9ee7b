// SPDX-License-Identifier: MIT
// What this PE knows of the others: alive, silent, dead by proof, excluded. docs/failures.md has the rules.
#pragma once
#include "base/other_process.hpp"
#include "bootstrap/bootstrap.hpp"
#include "ctx/hello.hpp"
#include "xio/peers.h"

namespace xio {

class peer_states {
 public:
  // The other PEs of this machine are watched from here on: they live, for the exchanges that follow need them.
  peer_states(const std::vector<hello>& all, const std::vector<bool>& together, const bootstrap::channel& channel);
  peer_states& operator=(peer_states&&) = delete;

  // By a new look. silence: the evidence of queues against the PE, or "".
  xio_pe_info_t find(int pe, const std::string& silence);
  // Whether its process has ended; for good.
  bool is_dead(int pe);
  bool is_excluded(int pe) const { return of(pe).excluded_at.has_value(); }

  void exclude(int pe);
  void vouch_dead(int pe, const std::string& why);
  bool is_stopped(int pe) const { return of(pe).process.is_stopped(); }
  // Kills those of them whose processes are watched, and waits until they have ended.
  void kill(const std::vector<int>& pes, std::chrono::milliseconds patience);

  // Throws XIO_ERR_PEER if a PE was excluded: then no collective call can be complete.
  void check_whole(const char* function) const;
  // "; PE 3 is dead: its process has ended", or "": what an exchange that failed may have failed for.
  std::string who_is_dead();

  // The state of each PE for kernels; null until it has a place.
  void show_at(std::uint32_t* table);

 private:
  using clock = std::chrono::steady_clock;
  struct record {
    other_process process{};
    std::optional<clock::time_point> silent_at{}, dead_at{}, excluded_at{};
    std::string why_dead{};
  };
  const record& of(int pe) const { return all_[static_cast<std::size_t>(pe)]; }
  record& of(int pe) { return all_[static_cast<std::size_t>(pe)]; }
  void bury(record& r, const std::string& why);
  void show(int pe);
  static xio_pe_life_t life_of(const record& r);

  const bootstrap::channel& channel_;
  std::vector<record> all_;
  std::uint32_t* table_ = nullptr;
};

}  // namespace xio
