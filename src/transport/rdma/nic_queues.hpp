// SPDX-License-Identifier: MIT
// Memory of the queue pairs of one ctx on software NICs, and their views. One allocation of each kind for all.
#pragma once
#include <deque>

#include "gpu/gpu.hpp"
#include "memory/mode.hpp"
#include "proxy/immediate_desk.hpp"
#include "proxy/nic.hpp"
#include "transport/rdma/connector.hpp"
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
  // lazy: none is made yet.
  nic_queues(nic_list nics, std::vector<bool> wanted, const queue_request& request, const queue_style& style,
             bool lazy);
  ~nic_queues() override;

  void stop() noexcept override;
  void stop_to(int pe) noexcept override;
  dev::ring_view view(int pe, std::uint32_t which) const override;
  void when_connected(std::function<void(int pe)> publish) override {
    if (lazy_ != nullptr) lazy_->when_connected(std::move(publish));
  }
  std::string silence_of(int pe) const override { return lazy_ == nullptr ? "" : lazy_->silence_of(pe); }
  // As joined_nics::create_queues wants them.
  queue_address get_queue_address(std::size_t place);
  dev::ring_view& view(std::size_t place) { return views_[place]; }
  void connect(std::size_t place, const queue_address& theirs);
  void make_to(int pe);
  std::unique_ptr<lazy_set>& lazy() { return lazy_; }
  // From now on immediates of the queue pairs to PE `pe` go to inbox_for(pe).
  void deliver_to(const std::shared_ptr<proxy::immediate_desk>& desk,
                  std::function<proxy::inbox(std::size_t pe)> inbox_for);

 private:
  std::size_t place_of(int pe, std::uint32_t which) const { return static_cast<std::size_t>(pe) * per_peer_ + which; }
  proxy::nic& nic_of(std::size_t place) { return **nics_[place % per_peer_ % nics_.size()]; }
  using ending = void (proxy::nic::*)(std::uint32_t number);
  void destroy(std::size_t place, ending how) noexcept;
  // The memory of some queue pairs.
  struct block {
    gpu::buffer slots;                       // slots and side table of each queue
    gpu::buffer completions;                 // of each queue
    gpu::buffer words;                       // record and doorbells of each queue
    gpu::buffer device;                      // state and sequence of each queue
    std::vector<proxy::key_pair> slot_keys;  // of slots, one per NIC, for families that want it
  };
  block& add_block(std::size_t count);
  void give_back(const block& b) noexcept;
  void make_to(std::size_t pe, const block& in, std::size_t first);
  dev::ring_view common_view(std::uint32_t which) const;
  dev::ring_view make(const block& in, std::size_t place, std::uint32_t which);

  nic_list nics_;
  std::shared_ptr<proxy::immediate_desk> desk_;  // or null
  std::function<proxy::inbox(std::size_t pe)> inbox_for_;
  const std::vector<bool> wanted_;
  const queue_request request_;
  const queue_style style_;
  std::uint32_t per_peer_;
  std::deque<block> blocks_;           // one, or of a lazy set one for each PE that has queue pairs
  std::vector<dev::ring_view> views_;  // id 0: destroyed, or not made
  bool stopped_ = false;
  std::unique_ptr<lazy_set> lazy_;  // goes first, or null
};

}  // namespace xio::rdma
