// SPDX-License-Identifier: MIT
// What PEs tell each other about RDMA, and the checks of what the others say. All of it is collective.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "proxy/fabric.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::rdma {

using proxy::device_address;

// Of one PE's endpoint.
struct identity {
  std::uint64_t heap_base;  // as the NIC addresses it
  std::uint64_t heap_bytes;
  std::uint32_t nics;
  std::uint32_t max_message;
  std::uint32_t heap_rkey[dev::k_max_nics];
  device_address nic_addresses[dev::k_max_nics];
};

// status: XIO_OK, or why this PE has no endpoint; every PE then throws, naming it.
std::vector<identity> exchange_identities(bootstrap::channel& c, const identity& mine, xio_status_t status);

// One queue pair as its maker describes it to the PE at the other end; number 0: there is none.
struct queue_address {
  std::uint32_t number;
  device_address what;
};

// Each PE has queue addresses for every other PE, but the channel can only gather all to all. To bound its memory, the
// exchange goes in rounds: each is about the next few PEs and gathers about this many bytes.
constexpr std::size_t k_round_bytes = std::size_t{8} << 20;

// mine: `per_peer` queue pairs for each PE, PE by PE. Returns those that each PE has for this one, in the same order;
// where one end has a queue pair the other has one too, or this throws. Every PE takes part in every round before it
// throws.
std::vector<queue_address> exchange_queues(bootstrap::channel& c, const std::vector<queue_address>& mine,
                                           std::uint32_t per_peer, xio_status_t status,
                                           std::size_t round_bytes = k_round_bytes);

}  // namespace xio::rdma
