// SPDX-License-Identifier: MIT
// One send queue as a NIC family lays it out in memory: where entries are, how a doorbell announces them, how
// completions are reported. One implementation per family (dialect).
#pragma once
#include "proxy/op.hpp"

namespace xio::proxy {

class wire_queue {
 public:
  virtual ~wire_queue() = default;

  // Looks at the doorbell; cheap when nothing happened. A failure is a doorbell that no driver may ring.
  virtual op_error poll_doorbells() = 0;
  // Whether the doorbell has announced entries that were not taken.
  virtual bool waiting() const = 0;
  // Takes and decodes the next entry. On failure the receipt in `out` holds what completion needs.
  virtual op_error fetch(op& out) = 0;

  // Completions, in the order in which entries were taken; several may be under way.
  virtual void complete(const receipt& r) = 0;
  virtual void complete_in_error(const receipt& r, op_error f) = 0;
  // An entry that was taken before another one failed.
  virtual void drop(const receipt& r) = 0;
  // Drops everything announced and not taken, after an error.
  virtual void flush() = 0;
};

}  // namespace xio::proxy
