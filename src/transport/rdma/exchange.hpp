// SPDX-License-Identifier: MIT
// What PEs tell each other about RDMA, and the checks of what the others say. All of it is collective.
#pragma once
#include <cstdint>
#include <vector>

#include "bootstrap/bootstrap.hpp"

namespace xio::rdma {

// Of one PE's endpoint.
struct identity {
  std::uint64_t heap_base;  // as the NIC addresses it
  std::uint64_t heap_bytes;
  std::uint32_t heap_rkey;
  std::uint32_t max_message;
};

// status: XIO_OK, or why this PE has no endpoint; every PE then throws, naming it.
std::vector<identity> exchange_identities(bootstrap::channel& c, const identity& mine, xio_status_t status);

// numbers: my queue pair for each PE, 0 = none. Answers the queue pair that each PE has for me; where I have one, the
// other has one too, or this throws.
std::vector<std::uint32_t> exchange_queues(bootstrap::channel& c, const std::vector<std::uint32_t>& numbers,
                                           xio_status_t status);

}  // namespace xio::rdma
