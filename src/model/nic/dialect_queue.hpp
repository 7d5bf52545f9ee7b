// SPDX-License-Identifier: MIT
// What the queues of all dialects have: how far they are in their ring, and in their completions.
#pragma once
#include "proxy/decoding.hpp"
#include "proxy/family.hpp"

namespace xio::model::rdma {

using namespace xio::proxy;

// Outlives the queue.
struct dialect_memory {
  const std::uint32_t* slots;  // the ring's entries
  // Number of the first entry, of some dialects a multiple of the depth. Hardware starts at 0; tests start near a wrap.
  std::uint64_t start;
  // Where the ring and its indices, and completions, are; doorbells and records are host memory.
  ring_memory entries = {}, completions = {};
};

// The dialect's, with these set.
template <class Memory>
Memory memory_of(const dev::ring_view& v, const queue_plan& plan) {
  Memory m{};
  m.slots = reinterpret_cast<const std::uint32_t*>(v.slots);
  m.start = plan.ticket_start;
  m.entries = plan.entries;
  m.completions = plan.completions;
  return m;
}

template <class Memory, std::uint32_t EntryDwords>
class dialect_queue : public wire_queue {
 public:
  bool waiting() const final { return next_ != producer_index_; }

 protected:
  dialect_queue(const Memory& memory, std::uint32_t number, std::uint64_t max_message)
      : memory_(memory),
        number_(number),
        max_message_(max_message),
        producer_index_(memory.start),
        next_(memory.start),
        done_(memory.start) {}

  // The reader gives completions back.
  op_error take_back(std::uint64_t completions) {
    if (completions > cq_producer_index_ - cq_consumer_index_) return broken(rule::doorbell_range);
    cq_consumer_index_ += completions;
    return {};
  }

  const Memory memory_;
  const std::uint32_t number_;
  const std::uint64_t max_message_;
  std::uint64_t producer_index_;         // entries below were announced
  std::uint64_t next_;                   // the next entry to take
  std::uint64_t done_;                   // entries below have ended
  std::uint64_t cq_producer_index_ = 0;  // CQEs written
  std::uint64_t cq_consumer_index_ = 0;  // CQEs that the reader has given back
  // The entry being decoded, out of the ring: it may wrap, and the ring is the device's to change.
  std::uint32_t entry_[EntryDwords] = {};
};

}  // namespace xio::model::rdma
