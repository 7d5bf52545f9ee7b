// SPDX-License-Identifier: MIT
// What the host must know of a format of entries to lay a queue pair out in memory. One file per family fills one of
// these: the proxy's own here, those of software NICs in src/model/nic. transport/software.cpp lists them.
#pragma once
#include <memory>

#include "base/options.hpp"
#include "proxy/ring_memory.hpp"
#include "proxy/wire_queue.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::proxy {

// Of one queue pair on the software NIC.
struct queue_plan {
  std::uint64_t ticket_start;  // a multiple of the depth
  std::uint64_t max_message;
  std::uint32_t path_mtu;
  std::uint32_t first_psn;  // 24 bits
  // How slots (and what is beside them) and completions are reached.
  ring_memory entries = {}, completions = {};
};

// Parts of a queue pair that only some families have, as kernels see them.
struct queue_parts {
  unsigned char* beside;           // family::aux_bytes of memory
  std::uint32_t* doorbell_record;  // the send queue's word
  std::uint64_t* cq_doorbell;
  std::uint32_t path_mtu;
  std::uint32_t slots_lkey;  // of the slots, where family::registered_slots
};

// Host memory that holds, or will become, the slots, what is beside them, and the completions.
struct queue_image {
  unsigned char *slots, *aux, *completion;
};

constexpr std::uint32_t k_least_depth = 4;  // of every family

struct family {
  const char* name;  // as XIO_NIC_FAMILY names it
  dev::ring_kind kind;
  std::uint32_t slot_bytes;
  std::uint32_t most_depth;
  std::uint32_t inline_bytes, gather_bytes;  // see dev::rdma_ring
  std::uint32_t atomics;                     // dev::nic_atomics
  // Of a completion queue; 0 where the last completion alone is kept, in one place.
  std::uint32_t most_cq_depth;
  // Bytes beside the slots: the completion queue (or word), and what queue_parts::beside points to. A doorbell, a
  // doorbell record and a CQ doorbell of 8 bytes each exist always.
  std::size_t (*completion_bytes)(std::uint32_t cq_depth);
  std::size_t (*aux_bytes)(std::uint32_t depth);
  // Fills the family's own fields of rdma_ring; the others are set.
  void (*set_fields)(dev::rdma_ring& r, const queue_parts& parts);
  // Memory stands, all of it zero, and so does the view: writes into the image what the driver would write before the
  // first use. `state` becomes the ring's; issued, completed and credits are set.
  void (*prepare)(const dev::ring_view& v, const queue_image& image, dev::ring_state& state, const queue_plan& plan);
  // The decoder over that memory.
  std::unique_ptr<wire_queue> (*decode)(const dev::ring_view& v, const queue_plan& plan, std::uint32_t number);
  // The NIC takes payload out of the slots as out of any registered memory: ernic_ring::slots_lkey.
  bool registered_slots = false;
};

// Entries of the completion queue of a send queue of `depth`: `wanted`, or as many as are needed where that is 0; 0 for
// a family that has none. Throws XIO_ERR_CONFIG for what cannot be.
std::uint32_t completion_depth(const family& f, std::uint32_t depth, std::uint64_t wanted);
// Most bytes that a put carries in its entry, by rdma_options::rdma_inline. Throws XIO_ERR_CONFIG.
std::uint32_t inline_limit(const family& f, option::AUTO_UINT wanted);

// XIO's neutral entries.
const family& proxy_family();

}  // namespace xio::proxy
