// SPDX-License-Identifier: MIT
// One queue of the software SDMA engine: fetches packets, keeps a window of copies that may run in any order, and
// stops at the first packet that is wrong.
#pragma once
#include <cstdint>
#include <vector>

#include "base/payload.hpp"
#include "model/sdma/engine.hpp"
#include "model/sdma/fault.hpp"
#include "model/sdma/memory_map.hpp"

namespace xio::model::sdma {

// What a queue's packets act on.
struct surroundings {
  const payload_agent& payload;
  const memory_map& map;
  std::uint64_t copy_bytes;
};

class queue {
 public:
  queue(std::uint32_t number, const queue_memory& memory, std::uint64_t seed);

  std::uint32_t number() const { return number_; }
  // One bounded turn; true if it did anything.
  bool turn(const surroundings& around);

 private:
  // What became of the packet at next_.
  enum class outcome {
    done,    // executed or put into the window; next_ is behind it
    drain,   // it waits for the copies before it
    waits,   // it polls for a value that is not there yet
    stopped  // fault
  };
  // A packet that moves data and that no FENCE has closed yet.
  struct move {
    std::uint64_t dst, src, bytes;
    std::uint64_t done;
    std::vector<std::uint32_t> data;  // WRITE and CONST_FILL: what to store, over and over; src is unused
    std::uint64_t dword;              // of its packet, for a fault
  };

  // False if the doorbell breaks a rule.
  bool look_at_doorbell();
  outcome issue(const surroundings& around);
  outcome stop(fault f, std::uint64_t dword, std::uint64_t value = 0);
  outcome finish(std::uint64_t dwords);
  outcome keep(move m, std::uint64_t dwords);
  // Runs up to a slice of one of the window's moves and answers the bytes moved.
  std::uint64_t run_slice(const surroundings& around);

  // One kind of packet each, at dw; packets.cpp.
  outcome do_nop(const std::uint32_t* dw);
  outcome do_copy(const surroundings& around, const std::uint32_t* dw);
  outcome do_write(const surroundings& around, const std::uint32_t* dw);
  outcome do_fill(const surroundings& around, const std::uint32_t* dw);
  outcome do_fence(const surroundings& around, const std::uint32_t* dw);
  outcome do_atomic(const surroundings& around, const std::uint32_t* dw);
  outcome do_poll(const surroundings& around, const std::uint32_t* dw);
  outcome do_timestamp(const surroundings& around, const std::uint32_t* dw);
  outcome do_trap(const std::uint32_t* dw);

  // none if the packet at next_ has that many dwords before the ring's end and the doorbell.
  fault whole(std::uint64_t dwords) const;
  // A store that completes what is before it: visible after all of that.
  void store_word(const surroundings& around, std::uint64_t address, std::uint32_t value) const;
  std::uint64_t next_dword() const { return next_ / 4; }

  const std::uint32_t number_;
  const queue_memory memory_;
  std::uint64_t random_;
  std::uint64_t rung_;  // bytes, as the doorbell said last
  std::uint64_t next_;  // bytes, of the next packet
  std::vector<move> window_;
  bool draining_ = false;
  bool stopped_ = false;
  std::uint32_t poll_looks_ = 0;
};

}  // namespace xio::model::sdma
