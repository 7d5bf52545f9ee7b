// SPDX-License-Identifier: MIT
#include "model/nic/queue_pair.hpp"

#include <algorithm>

namespace xio::model::rdma {

namespace {

// Of one turn: enough to be worth the visit, little enough that other queues and visitors get theirs.
constexpr std::uint64_t k_turn_bytes = 1 << 20;
constexpr int k_turn_ops = 64;

}  // namespace

bool queue_pair::turn(fault_plan* faults) {
  if (const failure f = queue_->look(); f && stage_ != stage::error) stop(f);
  if (stage_ == stage::lost) return false;
  if (stage_ == stage::error) {
    const bool any = queue_->waiting();
    queue_->flush();
    return any;
  }
  bool worked = false;
  std::uint64_t budget = k_turn_bytes;
  for (int i = 0; i < k_turn_ops && budget != 0; ++i) {
    if (stage_ == stage::idle && !begin(faults)) break;
    if (stage_ == stage::waiting) {
      if (clock::now() < not_before_) break;
      stage_ = stage::running;
    }
    worked = true;
    if (stage_ != stage::running || !go_on(&budget)) break;
  }
  return worked;
}

// False if there is nothing to begin with.
bool queue_pair::begin(fault_plan* faults) {
  if (!queue_->waiting()) return false;
  failure f = queue_->take(op_);
  if (!f && far_ == nullptr) f = {outcome::local_qp_operation, rule::not_connected};
  progress_ = {};
  stage_ = stage::running;
  const std::uint64_t nth = taken_++;
  if (!f && faults != nullptr) {
    const injected_fault fault = faults->next(number_, nth, op_);
    switch (fault.what) {
      case injected_fault::kind::none: break;
      case injected_fault::kind::delay:
        stage_ = stage::waiting;
        not_before_ = clock::now() + fault.wait;
        break;
      case injected_fault::kind::fail: f = fault.how; break;
      case injected_fault::kind::lose: stage_ = stage::lost; break;
    }
  }
  if (f) stop(f);
  return true;
}

// True if the op is done and the next may begin.
bool queue_pair::go_on(std::uint64_t* budget) {
  const std::uint64_t before = progress_.moved;
  failure why;
  const auto step = op_.what == verb::nop ? executor::step::done : far_->advance(op_, progress_, *budget, &why);
  *budget -= std::min(*budget, progress_.moved - before);
  if (step == executor::step::busy) return progress_.moved != before;
  if (step == executor::step::failed) {
    stop(why);
    return false;
  }
  queue_->complete(op_);
  stage_ = stage::idle;
  return true;
}

void queue_pair::stop(failure f) {
  queue_->complete_in_error(op_, f);
  stage_ = stage::error;
}

}  // namespace xio::model::rdma
