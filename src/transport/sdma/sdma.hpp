// SPDX-License-Identifier: MIT
// Host side of SDMA: user queues of copy engines.
#pragma once
#include "base/options.hpp"
#include "base/payload.hpp"
#include "progress/machine.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::sdma {

struct queue_request {
  std::uint32_t depth;         // slots, a power of two of 4 and more
  std::uint64_t ticket_start;  // a multiple of depth
  int peer;                    // the PE with the memory to copy to or from, as in set_peers; -1: any
  std::uint32_t which;         // of several queues for that peer
  bool alone;                  // one thread at a time posts and waits
};

class queue {
 public:
  virtual ~queue() = default;  // stops it
  // Takes the queue from the engine. On return no copy of it is under way any more; the ring's own memory stays.
  virtual void stop() noexcept = 0;
  virtual dev::ring_view view() const = 0;  // filled but for `index`
};

class engine {
 public:
  virtual ~engine() = default;
  virtual const char* backend() const = 0;  // "model gfx90a"
  // Memory that packets may name; the model refuses others. The heap, peers' heaps and registered buffers.
  virtual void map(void* base, std::size_t bytes) = 0;
  virtual void unmap(void* base) = 0;
  // Where the GPU of each peer is, for the choice of engines; "" where there is none or it is not known.
  virtual void set_peers(const std::vector<std::string>& identities) { static_cast<void>(identities); }
  virtual std::unique_ptr<queue> create_queue(const queue_request& request) = 0;
};

std::unique_ptr<engine> open_engine(const sdma_options& o, progress::machine& machine, const payload_agent& payload);

}  // namespace xio::sdma
