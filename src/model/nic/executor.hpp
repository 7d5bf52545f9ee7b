// SPDX-License-Identifier: MIT
// Carries neutral ops to the memory behind a queue pair.
#pragma once
#include <cstdint>

#include "model/nic/op.hpp"

namespace xio::model::rdma {

// How far an op has come.
struct progress {
  std::uint64_t moved = 0;
  bool checked = false;
};

class executor {
 public:
  virtual ~executor() = default;

  enum class step { busy, done, failed };
  // Goes on with an op that is at `p`, by about `budget` bytes; never waits. busy: call again. After `done` its
  // effects are in memory, for everybody who sees its completion. One op at a time.
  virtual step advance(const op& o, progress& p, std::uint64_t budget, failure* why) = 0;
};

}  // namespace xio::model::rdma
