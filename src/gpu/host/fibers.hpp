// SPDX-License-Identifier: MIT
// A workgroup whose lanes are fibers of one OS thread. Waves take turns; a wave's turn ends when each of its lanes
// has paused, waits or has returned. A lane that returns without ever waiting leaves its stack to the next one, so
// that kernels which do not wait run all lanes on one stack, without a switch.
#pragma once
#include "gpu/host/stacks.hpp"
#include "gpu/host/strand.hpp"
#include "gpu/host/workgroup.hpp"

namespace xio::host_exec {

class fiber_workgroup final : public workgroup {
 public:
  fiber_workgroup();
  ~fiber_workgroup() override;

  // Runs workgroup `index` of l to its end on the calling thread.
  void run(launch& l, std::uint64_t index);

  void pause(lane_state& me) override;
  std::uint64_t converged_lanes(lane_state& me, std::uintptr_t site) override;

 private:
  void block(lane_state& me) override;
  void wake(lane_state& l) override;

  lane_state* pick();
  void next_turn();
  void make_ready(lane_state& l);
  void abandon_blocked();
  void yield_thread();
  strand& strand_of(lane_state& l);
  void go(strand& from, strand& to);
  void live_on(strand& self);
  static void entry(boost::context::detail::transfer_t from);
  void make_strand();

  strand main_;  // the OS thread's own stack
  signal_stack signals_;
  stack_slabs stacks_;
  std::vector<std::unique_ptr<strand>> strands_;
  std::vector<strand*> idle_;
  unsigned ready_ = 0;      // lanes in the waves' queues
  unsigned turn_ = 0;       // wave whose turn it is
  unsigned turn_left_ = 0;  // lanes it may still run
  unsigned budget_ = 0;     // switches until another wave runs in any case
  bool paused_ = false;     // a lane has paused since the first wave's turn
  unsigned polls_ = 0;      // since the core was last offered to others
  unsigned polls_per_yield_ = 1;
};

}  // namespace xio::host_exec
