// SPDX-License-Identifier: MIT
#include "transport/rdma/model_endpoint.hpp"

#include "base/error.hpp"
#include "transport/rdma/model_queues.hpp"

namespace xio::rdma {

namespace nic_rights = model::rdma;

namespace {

constexpr std::uint32_t k_local = nic_rights::local_read | nic_rights::local_write;
constexpr std::uint32_t k_remote = nic_rights::remote_read | nic_rights::remote_write | nic_rights::remote_atomic;
constexpr std::uint32_t k_max_message = 1u << 30;

// Keys and queue numbers of one PE mean nothing at another: if they were equal, mixing them up would go unnoticed.
model::rdma::nic_limits limits_of(int rank) {
  model::rdma::nic_limits limits;
  limits.max_message = k_max_message;
  limits.seed = static_cast<std::uint32_t>(rank) + 1;
  return limits;
}

}  // namespace

model_endpoint::model_endpoint(const setup& s)
    : channel_(*s.channel),
      heaps_(s.peer_heaps),
      nic_(std::make_shared<running_nic>(*s.machine, *s.payload, limits_of(s.channel->rank()))) {
  heaps_.resize(static_cast<std::size_t>(channel_.size()));
  heap_key_ = nic().register_memory(s.heap, s.heap_bytes, k_local | k_remote);
  const identity mine{reinterpret_cast<std::uint64_t>(s.heap), s.heap_bytes, heap_key_, k_max_message};
  peers_ = exchange_identities(channel_, mine, heap_key_ == 0 ? XIO_ERR_ARG : XIO_OK);
  if (heap_key_ == 0)
    fail(XIO_ERR_ARG, "the software NIC was given a heap of {} bytes at {}; it must have at least one byte",
         s.heap_bytes, s.heap);
}

model_endpoint::~model_endpoint() {
  for (const auto& [base, key] : registered_) nic().unregister_memory(key);
  nic().unregister_memory(heap_key_);
}

memory_keys model_endpoint::register_memory(void* base, std::size_t bytes) {
  const std::uint32_t key = nic().register_memory(base, bytes, k_local);
  if (key == 0)
    fail(XIO_ERR_ARG,
         "{} bytes at {} cannot be registered with the software NIC: the range is empty or leaves the address "
         "space",
         bytes, base);
  registered_.emplace(base, key);
  return {key, key};
}

void model_endpoint::unregister_memory(void* base) {
  const auto found = registered_.find(base);
  if (found == registered_.end())
    fail(XIO_ERR_NOT_REGISTERED,
         "no memory at {} is registered with the software NIC; give the address that was registered", base);
  nic().unregister_memory(found->second);
  registered_.erase(found);
}

// What a peer has opened to this PE: its heap, under the peer's own address and key.
std::shared_ptr<const model::rdma::key_table> model_endpoint::keys_of(std::size_t pe) const {
  auto table = std::make_shared<model::rdma::key_table>(0);
  table->adopt(peers_[pe].heap_rkey, model::rdma::region{peers_[pe].heap_base, peers_[pe].heap_bytes,
                                                         static_cast<unsigned char*>(heaps_[pe]), k_remote});
  return table;
}

std::unique_ptr<queue_set> model_endpoint::create_queues(const queue_request& request) {
  std::unique_ptr<model_queues> queues;
  std::vector<std::uint32_t> numbers;
  std::vector<bool> wanted(heaps_.size());
  for (std::size_t pe = 0; pe < wanted.size(); ++pe)
    wanted[pe] = pe < request.peers.size() && request.peers[pe] && heaps_[pe] != nullptr;
  try {
    queues = std::make_unique<model_queues>(nic_, wanted, request, k_max_message);
    numbers = queues->numbers();
  } catch (...) {
    // The others are on their way to the exchange: they must hear of it.
    exchange_queues(channel_, {}, status_of_current_exception());
    throw;
  }
  exchange_queues(channel_, numbers, XIO_OK);
  for (std::size_t pe = 0; pe < numbers.size(); ++pe)
    if (numbers[pe] != 0) nic().connect(numbers[pe], keys_of(pe));
  return queues;
}

}  // namespace xio::rdma
