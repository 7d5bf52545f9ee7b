// SPDX-License-Identifier: MIT
// The PEs of a world: how many they are, on which machines, and how they come to one outcome of a call.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "base/options.hpp"
#include "bootstrap/bootstrap.hpp"
#include "ctx/agreement.hpp"
#include "ctx/peer_states.hpp"
#include "topology/placement.hpp"

namespace xio {

class membership {
 public:
  // Collective: the PEs tell each other their versions and places. Throws on every PE or on none.
  membership(const options& o, std::unique_ptr<bootstrap::channel> channel);
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;

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
  bootstrap::one_call one_call() { return {*channel_, timeout_ms_}; }
  // Lets the bootstrap end the other PEs, as far as it can.
  void abort(int code) noexcept { channel_->abort(code); }

  // Lists for teams, by numbers in the world.
  std::vector<int> everybody() const;
  std::vector<int> machine_mates() const;
  std::vector<int> across_machines();  // collective

 private:
  std::unique_ptr<bootstrap::channel> channel_;
  agreement agreement_;
  int me_;
  int n_;
  std::uint64_t timeout_ms_;
  topology::placement place_;
  std::optional<peer_states> states_;
};

}  // namespace xio
