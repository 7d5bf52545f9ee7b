// SPDX-License-Identifier: MIT
// Faults on purpose, for tests: asked once per op, before it is carried out.
#pragma once
#include <chrono>

#include "proxy/op.hpp"

namespace xio::proxy {

struct injected_fault {
  enum class kind {
    none,
    delay,  // carried out after `wait`
    fail,   // completes with `how`
    lose,   // neither carried out nor completed, and nothing behind it on its queue
    skip,   // completes, and its data have not moved
    astray  // carried out `by` bytes beyond the remote place that it names
  } what = kind::none;
  std::chrono::milliseconds wait{0};
  op_error how{};
  std::uint64_t by = 0;
};

class fault_plan {
 public:
  virtual ~fault_plan() = default;
  // The nth op (from 0) of queue `number`. Called by the thread that polls the NIC.
  virtual injected_fault next(std::uint32_t number, std::uint64_t nth, const op& o) = 0;
  // The device has failed for good, from now on.
  virtual bool is_fatal() const { return false; }
};

}  // namespace xio::proxy
