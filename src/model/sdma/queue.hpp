// SPDX-License-Identifier: MIT
// One queue of the software SDMA engine: fetches packets, keeps a window of copies that may run in any order, and
// stops at the first packet that is wrong.
#pragma once
#include <deque>

#include "base/trace.hpp"
#include "model/sdma/engine.hpp"
#include "model/sdma/fault.hpp"
#include "model/sdma/pitched.hpp"

namespace xio::model::sdma {

// A queue's packets act on these.
struct surroundings {
  const payload_agent& payload;
  const memory_map& map;
  wire::generation generation;
  std::uint32_t granule;
  event_counts& events;
  std::uint64_t& local_time;
  const std::function<void(std::uint32_t)>& trap;
  std::uint64_t (*clock)();
};

class queue {
 public:
  queue(std::uint32_t number, const queue_memory& memory, std::uint64_t seed, move_faults faults);

  std::uint32_t number() const { return number_; }
  // One bounded turn; true if it did anything.
  bool turn(const surroundings& around);
  // Nothing but a doorbell gives it work.
  bool at_rest() const;

 private:
  // The outcome of the packet at next_.
  enum class outcome {
    done,          // executed or put into the window; next_ is behind it
    drain,         // it waits for the copies before it
    waits,         // it polls for a value that is not there yet
    complete_now,  // it waits for copies that travel
    stopped        // fault
  };
  // A packet that moves data and that no FENCE has closed yet.
  struct move {
    pitched dst, src;
    extent size;
    std::vector<std::uint32_t> data;  // WRITE and CONST_FILL: what to store, over and over; src is unused
    std::uint64_t dword;              // of its packet, for a fault
    std::uint64_t row = 0, done = 0;  // rows, and bytes of the next one
    std::chrono::steady_clock::time_point not_before{};
    std::uint64_t began = trace::begin();
  };
  // A FENCE behind copies that still travel: the word is stored when they have arrived. Packets behind it go on, as
  // copies arrive in order and nothing else is done before all have.
  struct late_fence {
    std::uint64_t mark, address;
    std::uint32_t value;
    memory_kind kind;
  };
  // Says what is wrong with a packet, and with which of its dwords.
  struct verdict {
    fault what = fault::none;
    std::uint32_t dword = 0;
  };

  // False if the doorbell breaks a rule.
  bool poll_doorbell();
  outcome issue(const surroundings& around);
  outcome stop(fault f, std::uint64_t dword, std::uint64_t value = 0);
  // A fault, like a FENCE, comes after what is before it.
  outcome refuse(const std::uint32_t* dw, verdict v);
  outcome finish(std::uint64_t dwords);
  outcome keep(move&& m, std::uint64_t dwords);
  bool work(const surroundings& around);
  // Waits for copies that travel by themselves, and for the fences behind them.
  void complete_now(const surroundings& around);
  // Stores the words of fences whose copies have arrived.
  void store_fences(const surroundings& around);
  // All packets are read: true if there is more to do before the turn ends, because copies still travel.
  bool watch_travellers(const surroundings& around);
  // Runs up to a slice of one of the window's moves and returns the bytes moved; 0 if it has to wait.
  std::uint64_t run_slice(const surroundings& around);

  // Bits that the generation does not define, and features that the model does not have; packets.cpp.
  static verdict check_header(const surroundings& around, std::uint32_t dw0);
  static verdict check_fields(const surroundings& around, const std::uint32_t* dw);
  // One kind of packet each, at dw. Those that move data: moves.cpp.
  outcome do_copy(const surroundings& around, const std::uint32_t* dw);
  outcome do_tile(const surroundings& around, const std::uint32_t* dw);
  outcome do_write(const surroundings& around, const std::uint32_t* dw);
  outcome do_fill(const surroundings& around, const std::uint32_t* dw);
  // Those that wait for the moves before them: packets.cpp.
  outcome do_fence(const surroundings& around, const std::uint32_t* dw);
  outcome do_atomic(const surroundings& around, const std::uint32_t* dw);
  outcome do_poll(const surroundings& around, const std::uint32_t* dw);
  outcome do_timestamp(const surroundings& around, const std::uint32_t* dw);
  outcome do_trap(const surroundings& around, const std::uint32_t* dw);
  outcome do_gcr(const surroundings& around, const std::uint32_t* dw);

  // none if the packet at next_ has that many dwords before the ring's end and the doorbell.
  fault whole(std::uint64_t dwords) const;
  std::uint64_t next_dword() const { return next_ / 4; }

  const std::uint32_t number_;
  const queue_memory memory_;
  std::uint64_t random_;
  std::uint64_t announced_;  // bytes, as the doorbell said last
  std::uint64_t next_;       // bytes, of the next packet
  std::vector<move> window_;
  const move_faults faults_;
  std::uint64_t moves_ = 0;  // so far
  bool draining_ = false;
  bool travelling_ = false;  // copies were begun that may not be finished
  std::deque<late_fence> fences_;
  bool stopped_ = false;
  std::uint32_t polls_ = 0;
  std::chrono::steady_clock::time_point next_poll_{};
};

}  // namespace xio::model::sdma
