// SPDX-License-Identifier: MIT
// The two makers of ionic's queues. Their depths are powers of two, and each queue has whole pages.
#pragma once
#include <algorithm>
#include <bit>
#include <string>

#include "transport/rdma/direct/queue_maker.hpp"
#include "transport/rdma/ionic/receives.hpp"
#include "xio/wire/ionic.hpp"

namespace xio::rdma::ionic {

constexpr std::uint32_t k_receive_bytes = receives::k_entry_bytes;
constexpr std::uint32_t k_spans = (wire::ionic::k_wqe_bytes - wire::ionic::k_payload_at) / 16;

// Of the NIC and its driver, by context.
struct nic_facts {
  std::size_t page = 0;               // bytes; queues have whole ones, and doorbells have one
  std::uint64_t doorbell_offset = 0;  // in the page, where each type of queue has 8 bytes
  std::uint8_t sq_type = 0, rq_type = 0, cq_type = 0;
  std::uint16_t version = 0;  // of the entries
};

class maker : public queue_maker {
 public:
  const nic_facts& facts() const { return facts_; }

 protected:
  bool is_possible() const {
    const auto last = std::max({facts_.sq_type, facts_.rq_type, facts_.cq_type}) * sizeof(std::uint64_t);
    return facts_.doorbell_offset < facts_.page && facts_.doorbell_offset + last < facts_.page &&
           facts_.doorbell_offset % sizeof(std::uint64_t) == 0;
  }
  nic_facts facts_;
};

inline std::uint32_t log2_of(std::size_t n) { return static_cast<std::uint32_t>(std::countr_zero(n)); }

// Both throw a sentence that says what is missing.
std::unique_ptr<maker> make_by_kernel(const std::string& device, const std::string& file);
std::unique_ptr<maker> make_by_library(ibv_context* context, ibv_pd* domain, std::string* path = nullptr);

// Of system calls or firmware that are not there.
std::string lacking(const std::string& device, const std::string& what);

}  // namespace xio::rdma::ionic
