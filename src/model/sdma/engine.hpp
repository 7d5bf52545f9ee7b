// SPDX-License-Identifier: MIT
// A software SDMA engine of one generation, gfx9 to gfx12: executes the packets of its queues and refuses what the
// generation does not define. As strict as hardware is unforgiving: copies between fences run interleaved and in any
// order, so a program that trusts order without a FENCE or ATOMIC gets wrong data here and not one day on silicon.
#pragma once
#include "base/payload.hpp"
#include "model/sdma/memory_map.hpp"
#include "progress/machine.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::model::sdma {

namespace wire = xio::wire::sdma;

class queue;

// A driver passes this to an engine when it creates a queue. Plain host memory that outlives the queue.
struct queue_memory {
  const std::uint32_t* ring;
  std::uint64_t ring_bytes;       // a power of two
  const std::uint64_t* wptr;      // bytes written since the first, ever growing
  const std::uint64_t* doorbell;  // the same number, stored after wptr
  // Not of the hardware: a refused packet leaves its fault code in report[0], and in report[1] the low word of its
  // place, in dwords since the queue's first. May be null.
  std::uint32_t* report;
  std::uint64_t start;  // value of wptr and doorbell at creation
  // Where the engine tells how far it has read, in bytes since the first: a slot of the ring behind it may be written
  // again. May be null.
  std::uint64_t* rptr = nullptr;
};

// Faults, on purpose, of packets that move data, which are counted from 0.
struct move_faults {
  struct late {
    std::uint64_t nth;
    std::chrono::microseconds wait;
  };
  std::vector<std::uint64_t> lost;  // only seem to be done
  std::vector<late> delayed;        // begin so much later
};

// Packets whose work leaves no trace in memory, counted when they are done.
struct event_counts {
  std::atomic<std::uint64_t> hdp_flushes{0}, cache_controls{0}, traps{0};
};

// Engines share nothing: each may be polled by a thread of its own.
class engine : public progress::device {
 public:
  // seed: order of copies between fences. granule: 1, or 4 for an engine that refuses linear copies whose addresses or
  // count are no multiples of 4.
  engine(const payload_agent& payload, wire::generation generation, std::uint64_t seed, std::uint32_t granule = 1);
  ~engine() override;

  // False if the range is empty or wraps.
  bool map(void* base, std::size_t bytes, memory_kind kind);
  // On return no packet touches the range (unless it is mapped a second time).
  bool unmap(void* base);

  // Of queues that are added later.
  void inject(move_faults faults);
  // Returns the queue's number. On return of remove_queue none of its memory is touched any more.
  std::uint32_t add_queue(const queue_memory& memory);
  void remove_queue(std::uint32_t number);

  const event_counts& events() const { return events_; }
  // Sets the function that gets the interrupts of TRAP packets, each with its context; it is called within polls.
  void listen(std::function<void(std::uint32_t context)> trap);
  // Sets the clock of time stamps; they count nanoseconds without it.
  void tell_time_by(std::uint64_t (*clock)());

  bool poll() override;
  bool at_rest(sleeper::descriptors&) override;

 private:
  std::unique_lock<std::mutex> visit() { return turns_.visit(); }

  const payload_agent& payload_;
  const wire::generation generation_;
  const std::uint32_t granule_;
  std::uint64_t seed_;
  move_faults faults_;
  memory_map map_;
  event_counts events_;
  std::function<void(std::uint32_t)> trap_;
  std::uint64_t (*clock_)();
  std::uint64_t local_time_ = 0;  // added to the clock: what TIMESTAMP sets
  std::vector<std::unique_ptr<queue>> queues_;
  std::uint32_t next_number_ = 1;
  progress::turn_lock turns_;
};

}  // namespace xio::model::sdma
