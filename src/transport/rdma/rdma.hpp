// SPDX-License-Identifier: MIT
// Host side of RDMA: one endpoint per world (device, memory keys), one queue pair per (ctx, peer).
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/payload.hpp"
#include "bootstrap/bootstrap.hpp"
#include "progress/machine.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/status.h"

namespace xio::rdma {

// The queue pairs of one ctx. Destruction stops them; local.
class queue_set {
 public:
  virtual ~queue_set() = default;
  // Takes the queue pairs from the device. On return it reads and writes nothing on their behalf any more, even if
  // peers still send; the rings' own memory stays.
  virtual void stop() noexcept = 0;
  // The same of the queue pairs to one PE, in milliseconds. Kernels may still be posting to them.
  virtual void stop_to(int pe) noexcept = 0;
  // Queue pair `which` to a PE: filled but for `index`; ring_kind::none when this set has no queue to that PE. Of one
  // that is not connected yet (queue_request::lazy): a dormant view, filled but for what lies in the ctx.
  virtual dev::ring_view view(int pe, std::uint32_t which) const = 0;
  // Of a lazy set: publish(pe) is called by another thread when kernels have asked for its queue pairs to that PE and
  // they are connected, before those kernels go on. Not behind stop().
  virtual void when_connected(std::function<void(int pe)>) {}
  // Of a lazy set: why the last attempt to reach that PE failed, or "".
  virtual std::string silence_of(int) const { return ""; }
};

// Of local memory, by NIC.
struct memory_keys {
  std::uint32_t lkey[dev::k_max_nics];
  std::uint32_t rkey[dev::k_max_nics];
};

struct queue_request {
  std::vector<bool> peers;  // to which PEs; symmetric: if a wants b then b wants a
  std::uint32_t depth;      // entries, a power of two
  std::uint64_t ticket_start;
  memory_keys scratch;
  std::uint32_t per_peer;        // queue pairs to each, a power of two
  std::uint64_t inboxes = 0;     // where in every heap the inboxes lie; see wire/inbox.hpp
  std::uint32_t immediates = 0;  // entries of each, 0: none
  bool lazy = false;             // queue pairs are made when the first op goes there, where the endpoint does that
};

struct setup {
  const rdma_options* opts;
  progress::machine* machine;
  const payload_agent* payload;
  bootstrap::channel* channel;
  void* heap;
  std::size_t heap_bytes;
  // Peers' heaps in this address space, null where not mapped (another machine).
  std::vector<void*> peer_heaps;
  int local_rank;
  // Why queue pairs cannot be made while kernels run, or "".
  std::string why_not_lazy;
  bool lazy = false;  // the endpoint's: what all PEs have come to
  // Where in the heap k_probe_bytes are that nobody else uses (memory_probe.hpp).
  static constexpr std::size_t k_no_spare = SIZE_MAX;
  std::size_t spare = k_no_spare;
};

class endpoint {
 public:
  virtual ~endpoint() = default;
  virtual const char* backend() const = 0;  // "mlx5 over shm (model)", "proxy over rxe0"
  virtual std::uint32_t nics() const = 0;   // 1 .. k_max_nics, the same on every PE
  virtual memory_keys heap_keys() const = 0;
  virtual bool on_devices() const = 0;  // and not by the software NIC
  // A device of this PE does nothing any more; another endpoint has to be opened.
  virtual bool has_failed() const = 0;
  virtual bool reaches(int pe) const = 0;
  // Whether immediates that come are put into the inboxes of queue_request.
  virtual bool takes_immediates() const { return false; }
  // Whether the queue pairs of such a set are made while kernels run.
  virtual bool is_lazy(const queue_request&) const { return false; }
  virtual memory_keys register_memory(void* base, std::size_t bytes) = 0;
  virtual void unregister_memory(void* base) = 0;
  // A set for each request. Collective: all PEs take part in one exchange, also those that have failed before it, and
  // after a failure on any of them the channel can be used.
  virtual std::vector<std::unique_ptr<queue_set>> create_queues(const std::vector<queue_request>& requests) = 0;
};

// Collective. Throws XIO_ERR_UNSUPPORTED when the backend asked for is not there.
std::unique_ptr<endpoint> open_endpoint(const setup& s);

}  // namespace xio::rdma
