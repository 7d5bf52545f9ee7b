// SPDX-License-Identifier: MIT
// Memory of the queue pairs of one ctx, and their views. One allocation of each kind for all peers.
#pragma once
#include <memory>
#include <vector>

#include "gpu/gpu.hpp"
#include "transport/rdma/model_endpoint.hpp"
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

class model_queues final : public queue_set {
 public:
  model_queues(std::shared_ptr<running_nic> nic, const std::vector<bool>& wanted, const queue_request& request,
               std::uint32_t chunk);
  ~model_queues() override;

  dev::ring_view view(int pe) const override { return views_[static_cast<std::size_t>(pe)]; }
  // By PE; 0 where there is none.
  std::vector<std::uint32_t> numbers() const;

 private:
  void take_down();
  dev::ring_view make(std::size_t place, const queue_request& request, std::uint32_t chunk);

  std::shared_ptr<running_nic> nic_;
  gpu::buffer shared_;  // slots, CQE, doorbell record, doorbell of each queue
  gpu::buffer device_;  // state and sequence of each queue
  std::vector<dev::ring_view> views_;
};

}  // namespace xio::rdma
