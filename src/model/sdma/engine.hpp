// SPDX-License-Identifier: MIT
// A software SDMA engine, generation gfx9: executes the packets of its queues and refuses what the generation does not
// define. As strict as hardware is unforgiving: copies between fences run interleaved and in any order, so a program
// that trusts order without a FENCE or ATOMIC gets wrong data here and not one day on silicon.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/payload.hpp"
#include "model/machine.hpp"
#include "model/sdma/memory_map.hpp"

namespace xio::model::sdma {

class queue;

// What a driver tells an engine when it creates a queue. Plain host memory that outlives the queue.
struct queue_memory {
  const std::uint32_t* ring;
  std::uint64_t ring_bytes;       // a power of two
  const std::uint64_t* wptr;      // bytes written since the first, ever growing
  const std::uint64_t* doorbell;  // the same number, stored after wptr
  // Not of the hardware: a refused packet leaves its fault code in report[0], and in report[1] the low word of its
  // place, in dwords since the queue's first. May be null.
  std::uint32_t* report;
  std::uint64_t start;  // value of wptr and doorbell at creation
};

class engine : public model::device {
 public:
  // copy_bytes: most bytes of one copy, 2^22 or 2^30. seed: order of copies between fences.
  engine(const payload_agent& payload, std::uint64_t copy_bytes, std::uint64_t seed);
  ~engine() override;

  // False if the range is empty or wraps.
  bool map(void* base, std::size_t bytes, memory_kind kind);
  // On return no packet touches the range (unless it is mapped a second time).
  bool unmap(void* base);

  // Answers the queue's number. On return of remove_queue none of its memory is touched any more.
  std::uint32_t add_queue(const queue_memory& memory);
  void remove_queue(std::uint32_t number);

  bool poll() override;

 private:
  // Polls give way to visitors, or an engine that is always busy would keep them out.
  std::unique_lock<std::mutex> visit();

  const payload_agent& payload_;
  const std::uint64_t copy_bytes_;
  std::uint64_t seed_;
  memory_map map_;
  std::vector<std::unique_ptr<queue>> queues_;
  std::uint32_t next_number_ = 1;
  std::atomic<int> visitors_{0};
  std::mutex lock_;
};

}  // namespace xio::model::sdma
