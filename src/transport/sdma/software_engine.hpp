// SPDX-License-Identifier: MIT
// A software copy engine as the model engines of open_engine.cpp drive it. transport/software.cpp makes them.
#pragma once
#include "progress/machine.hpp"

namespace xio::sdma {

// Describes a queue to an engine. The pointers name plain host memory that outlives the queue.
struct software_queue {
  const std::uint32_t* ring;
  std::uint64_t ring_bytes;  // a power of two
  const std::uint64_t* wptr;
  const std::uint64_t* doorbell;
  std::uint32_t* report;  // gets the fault's code and its place, see vendor_text()
  std::uint64_t start;    // value of wptr and doorbell at creation
};

class software_engine {
 public:
  virtual ~software_engine() = default;
  // A progress::machine polls this device.
  virtual progress::device& device() = 0;
  // Memory that packets may name, which may be a GPU's, or plain host memory. False if the range is empty or wraps.
  virtual bool map_payload(void* base, std::size_t bytes) = 0;
  virtual bool map_host(void* base, std::size_t bytes) = 0;
  // On return no packet touches the range (unless it is mapped a second time).
  virtual void unmap(void* base) = 0;
  // Returns the queue's number. On return of remove_queue none of its memory is touched any more.
  virtual std::uint32_t add_queue(const software_queue& memory) = 0;
  virtual void remove_queue(std::uint32_t number) = 0;
};

}  // namespace xio::sdma
