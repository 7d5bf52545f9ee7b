// SPDX-License-Identifier: MIT
// A queue pair: takes ops off its wire queue one by one and in order, has them carried out, completes them. After
// the first failure it is in error for good and drops what comes.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include "model/nic/executor.hpp"
#include "model/nic/fault_plan.hpp"
#include "model/nic/wire_queue.hpp"

namespace xio::model::rdma {

class queue_pair {
 public:
  queue_pair(std::uint32_t number, std::unique_ptr<wire_queue> queue) : number_(number), queue_(std::move(queue)) {}

  std::uint32_t number() const { return number_; }
  void connect(std::unique_ptr<executor> far) { far_ = std::move(far); }
  // One bounded turn; true if it did anything.
  bool turn(fault_plan* faults);

 private:
  using clock = std::chrono::steady_clock;
  enum class stage { idle, waiting, running, lost, error };

  bool begin(fault_plan* faults);
  bool go_on(std::uint64_t* budget);
  void stop(failure f);

  const std::uint32_t number_;
  std::unique_ptr<wire_queue> queue_;
  std::unique_ptr<executor> far_;
  stage stage_ = stage::idle;
  op op_;
  progress progress_;
  clock::time_point not_before_{};
  std::uint64_t taken_ = 0;
};

}  // namespace xio::model::rdma
