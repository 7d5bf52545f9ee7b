// SPDX-License-Identifier: MIT
// RDMA on the software NIC: mlx5 queues in shared memory, peers' heaps as this process has them mapped.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "model/nic/nic.hpp"
#include "transport/rdma/exchange.hpp"
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

// Keeps the NIC running on the machine's threads as long as anyone has a part of it.
class running_nic {
 public:
  running_nic(model::machine& m, const payload_agent& payload, const model::rdma::nic_limits& limits)
      : machine_(m), nic_(payload, limits) {
    machine_.add(&nic_);
  }
  ~running_nic() { machine_.remove(&nic_); }
  running_nic(const running_nic&) = delete;
  running_nic& operator=(const running_nic&) = delete;
  model::rdma::nic& operator*() { return nic_; }
  model::rdma::nic* operator->() { return &nic_; }

 private:
  model::machine& machine_;
  model::rdma::nic nic_;
};

class model_endpoint final : public endpoint {
 public:
  explicit model_endpoint(const setup& s);
  ~model_endpoint() override;

  const char* backend() const override { return "model mlx5"; }
  memory_keys heap_keys() const override { return {heap_key_, heap_key_}; }
  std::uint64_t remote_heap(int pe) const override { return peer(pe).heap_base; }
  std::uint32_t rkey(int pe) const override { return peer(pe).heap_rkey; }
  bool reaches(int pe) const override { return heaps_[static_cast<std::size_t>(pe)] != nullptr; }
  memory_keys register_memory(void* base, std::size_t bytes) override;
  void unregister_memory(void* base) override;
  std::unique_ptr<queue_set> create_queues(const queue_request& request) override;

  // For tests: faults on purpose, and a message limit that is easy to exceed.
  model::rdma::nic& nic() { return **nic_; }

 private:
  const identity& peer(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }
  std::shared_ptr<const model::rdma::key_table> keys_of(std::size_t pe) const;

  bootstrap::channel& channel_;
  std::vector<void*> heaps_;
  std::shared_ptr<running_nic> nic_;
  std::uint32_t heap_key_ = 0;
  std::vector<identity> peers_;
  std::multimap<void*, std::uint32_t> registered_;
};

}  // namespace xio::rdma
