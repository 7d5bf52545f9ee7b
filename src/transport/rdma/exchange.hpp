// SPDX-License-Identifier: MIT
// What PEs tell each other about RDMA, and the checks of what the others say. All of it is collective.
#pragma once
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/unique_id.hpp"
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
  std::optional<xio_unique_id_t> listens{};  // where queue pairs are made when they are needed
};

// status: XIO_OK, or why this PE has no endpoint; every PE then throws, naming it.
std::vector<identity> exchange_identities(bootstrap::channel& c, const identity& mine, xio_status_t status);

// One queue pair as its maker describes it to the PE at the other end; number 0: there is none.
struct queue_address {
  std::uint32_t number;
  device_address what;
};

// mine: `per_peer` queue pairs for each PE, PE by PE. Returns those that each PE has for this one, in the same order;
// where one end has a queue pair the other has one too, or this throws. One exchange, in which each PE hears of its own
// queue pairs alone; a PE that has failed takes part in it.
std::vector<queue_address> exchange_queues(bootstrap::channel& c, const std::vector<queue_address>& mine,
                                           std::uint32_t per_peer, xio_status_t status);

// Between two PEs that connect queue pairs of one set when they are needed (connector.hpp).
struct pair_message {
  bool is_reply;
  std::uint64_t set;
  xio_status_t status;  // else why and no queues
  std::string why;
  std::vector<queue_address> queues;
};
std::vector<std::byte> encode_pair(const pair_message& m);
pair_message decode_pair(std::span<const std::byte> message, int pe);

}  // namespace xio::rdma
