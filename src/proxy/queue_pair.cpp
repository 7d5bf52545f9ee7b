// SPDX-License-Identifier: MIT
#include "proxy/queue_pair.hpp"

namespace xio::proxy {

namespace {

// Of one turn: enough to be worth the visit, little enough that other queues and visitors get theirs.
constexpr std::uint64_t k_turn_bytes = 1 << 20;
constexpr int k_turn_ops = 64;

// An op without bytes names no memory, and completes like any other. Atomics always have theirs.
void forget_data(op& o) {
  if (o.what == verb::atomic) return;
  o.bytes = 0;
  o.span_count = 0;
  o.is_inline = false;
}

}  // namespace

bool queue_pair::turn(fault_plan* faults) {
  if (const op_error f = queue_->poll_doorbells(); f && stage_ < stage::broken) {
    // A wrong doorbell names no entry: the failure is reported for the entry fetched last.
    broken_ = f;
    stage_ = stage::broken;
  }
  if (stage_ == stage::error) {
    const bool any = queue_->waiting();
    queue_->flush();
    return any;
  }
  bool worked = false;
  std::uint64_t budget = k_turn_bytes;
  for (int i = 0; i < k_turn_ops && budget != 0 && stage_ != stage::error; ++i) {
    bool some = fill(faults);
    // As many as the executor takes: it may send them on together.
    while (some && i < k_turn_ops && fill(faults)) ++i;
    if (executor_ != nullptr && !under_way_.empty()) {
      const std::uint64_t moved = executor_->advance(budget);
      budget -= std::min(budget, moved);
      some |= moved != 0;
    }
    some |= collect();
    if (!some) break;
    worked = true;
  }
  return worked;
}

// Hands entries to the executor. True if any went.
bool queue_pair::fill(fault_plan* faults) {
  if (stage_ == stage::idle && !begin(faults)) return false;
  if (stage_ == stage::waiting && clock::now() >= not_before_) stage_ = stage::ready;
  if (stage_ == stage::broken && under_way_.empty()) {
    stop({op_, shown_}, broken_);
    return true;
  }
  if (stage_ != stage::ready || !executor_->begin(op_)) return false;
  under_way_.push_back({op_, shown_});
  stage_ = stage::idle;
  return true;
}

// Takes the next entry. False if there is none.
bool queue_pair::begin(fault_plan* faults) {
  if (!queue_->waiting()) return false;
  broken_ = queue_->fetch(op_);
  op_.began = trace::begin();
  shown_ = trace::show(static_cast<trace::carried>(op_.what), op_.bytes, pe_, number_);
  if (!broken_) broken_ = gone_;
  if (!broken_ && executor_ == nullptr) broken_ = {outcome::local_qp_operation, rule::not_connected};
  stage_ = stage::ready;
  const std::uint64_t nth = fetched_++;
  if (!broken_ && faults != nullptr) {
    const injected_fault fault = faults->next(number_, nth, op_);
    switch (fault.what) {
      case injected_fault::kind::none: break;
      case injected_fault::kind::delay:
        stage_ = stage::waiting;
        not_before_ = clock::now() + fault.wait;
        break;
      case injected_fault::kind::fail: broken_ = fault.how; break;
      case injected_fault::kind::lose: stage_ = stage::lost; break;
      case injected_fault::kind::skip: forget_data(op_); break;
      case injected_fault::kind::astray: op_.remote += fault.by; break;
    }
  }
  if (broken_) stage_ = stage::broken;
  return true;
}

// Completes what the executor has ended.
bool queue_pair::collect() {
  bool any = false;
  op_error how;
  while (!under_way_.empty() && executor_ != nullptr && executor_->ended(&how)) {
    const sent r = under_way_.front();
    under_way_.pop_front();
    any = true;
    if (how) {
      stop(r, how);
      return true;
    }
    queue_->complete(r);
    trace_end(r);
  }
  return any;
}

void queue_pair::break_off(op_error f) {
  gone_ = f;
  executor_.reset();
  if (stage_ == stage::error) return;
  if (!under_way_.empty()) {
    const sent oldest = under_way_.front();
    under_way_.pop_front();
    stop(oldest, f);
  } else if (stage_ != stage::idle && stage_ != stage::broken) {
    broken_ = f;
    stage_ = stage::broken;
  }
}

void queue_pair::trace_end(const sent& r) const {
  static constexpr const char* names[] = {"nop", "write", "read", "atomic"};
  trace::end({"op", names[static_cast<int>(r.what)], r.began, r.bytes, pe_, number_, r.shown});
}

// Ops under way behind the failure, and an entry that was fetched and not begun, are dropped.
void queue_pair::stop(const sent& r, op_error f) {
  const bool holds_one = stage_ == stage::waiting || stage_ == stage::ready || stage_ == stage::lost;
  queue_->complete_in_error(r, f);
  trace_end(r);
  for (const sent& later : under_way_) {
    queue_->drop(later);
    trace_end(later);
  }
  under_way_.clear();
  if (holds_one) queue_->drop(op_);
  if (holds_one) trace::show_end(shown_);
  stage_ = stage::error;
}

}  // namespace xio::proxy
