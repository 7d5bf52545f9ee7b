// SPDX-License-Identifier: MIT
// Carries the neutral ops of one queue pair to its peer. Ops begin and end in order; how many are under way at once is
// the executor's own affair.
#pragma once
#include "proxy/op.hpp"

namespace xio::proxy {

class executor {
 public:
  virtual ~executor() = default;

  // Takes an op over; false: no room now, offer it again. `o` is the caller's again on return.
  virtual bool begin(const op& o) = 0;
  // Goes on by about `budget` bytes and never waits. Returns the bytes that it moved, at least 1 if it did anything.
  virtual std::uint64_t advance(std::uint64_t budget) = 0;
  // Whether the oldest op not reported yet has ended, and how; called until it returns false. After an `ok` the op's
  // effects are in memory for everybody who sees its completion.
  virtual bool ended(op_error* how) = 0;
};

}  // namespace xio::proxy
