// SPDX-License-Identifier: MIT
// The receive side of a queue pair: entries that its owner posts, of which a write with immediate takes one, and
// completions that say what came.
#pragma once
#include <memory>

#include "uverbs/device/doorbells.hpp"
#include "uverbs/firmware/firmware.hpp"

namespace uverbs {

class receive_side {
 public:
  virtual ~receive_side() = default;
  // Whether an entry is posted, and a completion has room. If not, the peer gets RNR, and tries again.
  virtual bool is_ready() const = 0;
  virtual void complete(std::uint32_t immediate, std::uint32_t bytes) = 0;
  // False: it is another queue's.
  virtual bool take_doorbell(const doorbell&) { return false; }
};

// Null where the queue pair has none.
std::unique_ptr<receive_side> make_mlx5_receives(std::uint32_t qpn, const firmware::rings& r);

// Types: of ionic's queues, where in the page their doorbells are.
struct ionic_receive_rings {
  const unsigned char* entries;
  unsigned char* completions;
  std::uint32_t depth, cq_depth, cq_number, page;
  std::uint8_t rq_type, cq_type;
};
std::unique_ptr<receive_side> make_ionic_receives(std::uint32_t qpn, const ionic_receive_rings& r);

struct bnxt_receive_rings {
  const unsigned char* entries;
  unsigned char* completions;
  std::uint32_t depth, entry_bytes, page, cq_depth, cq_number, cq_page;
};
std::unique_ptr<receive_side> make_bnxt_receives(std::uint32_t qpn, const bnxt_receive_rings& r);

}  // namespace uverbs
