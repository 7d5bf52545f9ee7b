// SPDX-License-Identifier: MIT
// The PEs of a world: how many they are, on which machines, and how they come to one outcome of a call.
#pragma once
#include "bootstrap/groups.hpp"
#include "bootstrap/members.hpp"
#include "ctx/agreement.hpp"
#include "ctx/peer_states.hpp"
#include "topology/placement.hpp"

namespace xio {

class membership {
 public:
  // Collective: the PEs tell each other their versions and places. Throws on every PE or on none.
  membership(const options& o, std::unique_ptr<bootstrap::channel> channel);
  membership& operator=(membership&&) = delete;

  int me() const { return me_; }
  int size() const { return n_; }
  const topology::placement& place() const { return place_; }
  bootstrap::channel& channel() { return *channel_; }
  agreement& agree() { return agreement_; }
  peer_states& states() { return *states_; }
  const peer_states& states() const { return *states_; }

  void barrier() {
    agreement_.each(call::barrier, [] {});
  }
  // For a call that is made of several exchanges.
  std::uint64_t timeout_ms() const { return timeout_ms_; }  // 0: waits have no end
  bootstrap::one_call one_call() { return {*channel_, timeout_ms_}; }
  // Lets the bootstrap end the other PEs, as far as it can.
  void abort(int code) noexcept { channel_->abort(code); }

  // Exchanges of some PEs alone.
  bootstrap::groups& groups() { return *groups_; }
  // Of a world whose members may die, else null.
  bootstrap::members_channel* survivors() { return survivors_; }
  // By how many ns the clock of this machine (CLOCK_MONOTONIC) is before that of PE 0's, about.
  std::int64_t clock_lead() const { return clock_lead_; }
  std::uint64_t job() const { return job_; }  // a number of this world, equal on all PEs
  bool takes_part(int pe) const { return channel_->takes_part(pe); }
  // Of that call, which all PEs have come to: see bootstrap::call_report. `hash` is asked only where it is needed.
  struct noted_call {
    call what;
    std::uint64_t a = 0, b = 0, c = 0;
    bool goes_back = false;  // undone where not all have completed it
  };
  template <class Hash>
  void note(const noted_call& done, Hash&& hash) {
    if (survivors_ == nullptr) return;
    const std::uint64_t kind = static_cast<std::uint64_t>(done.what) | (done.goes_back ? bootstrap::k_goes_back : 0);
    last_ = {last_.calls + 1, kind, done.a, done.b, done.c, last_.after, hash()};
  }
  const bootstrap::call_report& last_call() const { return last_; }
  // All have the same now.
  void note_alike(std::uint64_t calls, std::uint64_t hash) { last_ = {calls, 0, 0, 0, 0, hash, hash}; }

  // Lists for teams, by numbers in the world.
  std::vector<int> everybody() const;
  std::vector<int> machine_mates() const;
  std::vector<int> across_machines();  // collective

 private:
  void outlive_members(const options& o);
  void check_living(const bootstrap::pe_set& pes);
  std::unique_ptr<bootstrap::channel> channel_;
  agreement agreement_;
  int me_, n_;
  std::uint64_t job_ = 0;
  std::int64_t clock_lead_ = 0;
  std::uint64_t timeout_ms_;
  topology::placement place_;
  std::optional<peer_states> states_;
  std::optional<bootstrap::groups> groups_;
  bootstrap::members_channel* survivors_ = nullptr;  // channel_
  bootstrap::call_report last_{};
};

}  // namespace xio
