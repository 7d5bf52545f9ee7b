// SPDX-License-Identifier: MIT
// RDMA on software NICs: rings of any family in shared memory, carried to the peers by a fabric. Over verbs this is
// also how a real device serves kernels that cannot reach its own queues (proxy).
#pragma once
#include "proxy/nic.hpp"
#include "proxy/shm_executor.hpp"
#include "transport/rdma/joined_nics.hpp"
#include "transport/rdma/memory_probe.hpp"
#include "transport/rdma/nic_queues.hpp"

namespace xio::rdma {

struct nic_parts {
  const rdma::family* family;
  std::vector<std::unique_ptr<proxy::fabric>> fabrics;  // one per NIC
  std::vector<proxy::shm_fabric*> mapped;               // those of them that need the peers' mappings
  std::uint32_t atomics;                                // of dev::nic_atomics, what the fabric can
  std::uint32_t inline_bytes;                           // see dev::ring_view
  std::unique_ptr<proxy::fault_plan> faults;            // or null
  bool is_model;
  std::shared_ptr<proxy::immediate_desk> desk;  // to which the fabrics hand immediates, or null
};

class nic_endpoint final : public endpoint {
 public:
  nic_endpoint(const setup& s, nic_parts parts);
  ~nic_endpoint() override;

  const char* backend() const override { return name_.c_str(); }
  std::uint32_t nics() const override { return static_cast<std::uint32_t>(nics_.size()); }
  memory_keys heap_keys() const override { return joined_.heap_keys(); }
  bool on_devices() const override { return on_devices_; }
  bool has_failed() const override;
  bool reaches(int pe) const override { return !needs_mapping_ || heaps_[static_cast<std::size_t>(pe)] != nullptr; }
  bool takes_immediates() const override { return desk_ != nullptr; }
  bool is_lazy(const queue_request& r) const override { return joined_.is_lazy(r); }
  memory_keys register_memory(void* base, std::size_t bytes) override;
  void unregister_memory(void* base) override { joined_.unregister_memory(base, name_); }
  std::vector<std::unique_ptr<queue_set>> create_queues(const std::vector<queue_request>& requests) override;

  // For tests: faults on purpose.
  proxy::nic& nic(std::size_t which = 0) { return **nics_[which]; }

 private:
  joined_nics<proxy::nic>::opened start(const setup& s, nic_parts& parts);
  void map_heaps(const std::vector<proxy::shm_fabric*>& mapped);
  probed_nics for_trial(const std::vector<proxy::shm_fabric*>& mapped);
  std::unique_ptr<nic_queues> make_queues(const queue_request& request);
  proxy::inbox inbox_for(const queue_request& request, std::size_t pe) const;

  unsigned char* heap_;
  std::size_t rank_;
  std::shared_ptr<proxy::immediate_desk> desk_;
  std::vector<void*> heaps_;
  std::unique_ptr<proxy::fault_plan> faults_;
  nic_list nics_;
  queue_style style_{};
  bool needs_mapping_ = false;
  bool on_devices_ = false;
  std::string name_;
  std::string gpu_refusal_;         // as of gpu_memory_refusal
  joined_nics<proxy::nic> joined_;  // goes first: memory is taken from the NICs
};

}  // namespace xio::rdma
