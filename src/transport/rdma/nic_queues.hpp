// SPDX-License-Identifier: MIT
// Memory of the queue pairs of one ctx on software NICs, and their views. One allocation of each kind for all.
#pragma once
#include "gpu/gpu.hpp"
#include "memory/mode.hpp"
#include "proxy/immediate_desk.hpp"
#include "proxy/nic.hpp"
#include "transport/rdma/exchange.hpp"
#include "transport/rdma/families.hpp"
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

// Keeps a NIC running on the machine's threads as long as anyone has a part of it.
class running_nic {
 public:
  running_nic(progress::machine& m, std::unique_ptr<proxy::fabric> carried_by, std::uint32_t seed)
      : machine_(m), nic_(std::move(carried_by), seed) {
    machine_.add(&nic_);
  }
  ~running_nic() { machine_.remove(&nic_); }
  running_nic& operator=(running_nic&&) = delete;
  proxy::nic& operator*() { return nic_; }
  proxy::nic* operator->() { return &nic_; }

 private:
  progress::machine& machine_;
  proxy::nic nic_;
};

using nic_list = std::vector<std::shared_ptr<running_nic>>;

// The properties that all queue pairs of a set share.
struct queue_style {
  const rdma::family* family;
  std::uint32_t chunk;  // most bytes of one message
  std::uint32_t path_mtu;
  std::uint32_t atomics;  // of dev::nic_atomics, what fabric and family can
  memory::ring_places where;
  std::uint64_t cq_depth;      // as rdma_options::rdma_cq_depth
  std::uint32_t inline_bytes;  // see dev::ring_view
};

class nic_queues final : public queue_set {
 public:
  nic_queues(nic_list nics, const std::vector<bool>& wanted, const queue_request& request, const queue_style& style);
  ~nic_queues() override;

  void stop() noexcept override;
  void stop_to(int pe) noexcept override;
  dev::ring_view view(int pe, std::uint32_t which) const override { return views_[place_of(pe, which)]; }
  // As joined_nics::create_queues wants them.
  queue_address get_queue_address(std::size_t place);
  dev::ring_view& view(std::size_t place) { return views_[place]; }
  void connect(std::size_t place, const queue_address& theirs);
  // From now on immediates of the queue pairs to PE `pe` go to inbox_for(pe).
  void deliver_to(const std::shared_ptr<proxy::immediate_desk>& desk,
                  const std::function<proxy::inbox(std::size_t pe)>& inbox_for);

 private:
  std::size_t place_of(int pe, std::uint32_t which) const { return static_cast<std::size_t>(pe) * per_peer_ + which; }
  proxy::nic& nic_of(std::size_t place) { return **nics_[place % per_peer_ % nics_.size()]; }
  using ending = void (proxy::nic::*)(std::uint32_t number);
  void destroy(std::size_t place, ending how) noexcept;
  void register_slots();
  dev::ring_view make(std::size_t place, std::uint32_t which, const queue_request& request, const queue_style& style);

  nic_list nics_;
  std::shared_ptr<proxy::immediate_desk> desk_;  // or null
  std::uint32_t per_peer_;
  gpu::buffer slots_;                       // slots and side table of each queue
  gpu::buffer completions_;                 // of each queue
  gpu::buffer words_;                       // record and doorbells of each queue
  gpu::buffer device_;                      // state and sequence of each queue
  std::vector<proxy::key_pair> slot_keys_;  // of slots_, one per NIC, for families that want it
  std::vector<dev::ring_view> views_;       // id 0: destroyed
  bool stopped_ = false;
};

}  // namespace xio::rdma
