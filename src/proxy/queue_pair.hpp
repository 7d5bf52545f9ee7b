// SPDX-License-Identifier: MIT
// A queue pair: takes ops off its wire queue one by one and in order, has them carried out, completes them in order.
// After the first failure it is in error for good and drops what comes.
#pragma once
#include <deque>
#include <memory>

#include "base/run_clock.hpp"
#include "base/trace.hpp"
#include "proxy/executor.hpp"
#include "proxy/fault_plan.hpp"
#include "proxy/wire_queue.hpp"

namespace xio::proxy {

class queue_pair {
 public:
  queue_pair(std::uint32_t number, std::unique_ptr<wire_queue> queue) : number_(number), queue_(std::move(queue)) {}

  std::uint32_t number() const { return number_; }
  void connect(std::unique_ptr<executor> e, int pe) {
    executor_ = std::move(e);
    pe_ = static_cast<std::uint32_t>(pe);
  }
  // One bounded turn; true if it did anything.
  bool turn(fault_plan* faults);
  // Nothing is under way and nothing waits: the next work comes by a doorbell.
  bool at_rest() const { return under_way_.empty() && (stage_ == stage::idle || stage_ == stage::error); }
  // The device behind the executor is gone: what is under way and what comes fails so.
  void break_off(op_error f);

 private:
  using clock = run_clock;
  enum class stage {
    idle,     // ready for the next entry
    waiting,  // holds one until not_before_
    ready,    // holds one that the executor had no room for
    lost,     // never goes on
    broken,   // a failure stands behind what is under way
    error
  };

  bool fill(fault_plan* faults);
  bool begin(fault_plan* faults);
  bool collect();
  struct sent : receipt {
    std::uint64_t shown = 0;  // see trace::show
  };
  void stop(const sent& r, op_error f);
  void trace_end(const sent& r) const;

  const std::uint32_t number_;
  std::uint32_t pe_ = trace::k_none;
  std::unique_ptr<wire_queue> queue_;
  std::unique_ptr<executor> executor_;
  stage stage_ = stage::idle;
  op op_;
  std::uint64_t shown_ = 0;  // of op_
  op_error gone_;            // every entry fails so
  op_error broken_;          // why op_ fails once all before it are complete
  std::deque<sent> under_way_;
  clock::time_point not_before_{};
  std::uint64_t fetched_ = 0;
};

}  // namespace xio::proxy
