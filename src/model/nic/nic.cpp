// SPDX-License-Identifier: MIT
#include "model/nic/nic.hpp"

#include <algorithm>

#include "model/nic/shm_executor.hpp"

namespace xio::model::rdma {

// Queue numbers have 24 bits; those below 64 are hardware's own.
nic::nic(const payload_agent& payload, const nic_limits& limits)
    : payload_(payload), limits_(limits), keys_(limits.seed), next_number_(64 + ((limits.seed & 0xff) << 16)) {}

nic::~nic() = default;

std::unique_lock<std::mutex> nic::visit() {
  visitors_.fetch_add(1, std::memory_order_acq_rel);
  std::unique_lock hold(lock_);
  visitors_.fetch_sub(1, std::memory_order_acq_rel);
  return hold;
}

std::uint32_t nic::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  const auto hold = visit();
  return keys_.add(region{reinterpret_cast<std::uint64_t>(base), bytes, static_cast<unsigned char*>(base), allowed});
}

bool nic::unregister_memory(std::uint32_t key) {
  const auto hold = visit();
  return keys_.remove(key);
}

std::uint32_t nic::create_queue(const mlx5_memory& memory) {
  const auto hold = visit();
  const std::uint32_t number = next_number_++ & 0xffffff;
  auto queue = std::make_unique<mlx5_queue>(memory, number, limits_.max_message);
  queues_.push_back(std::make_unique<queue_pair>(number, std::move(queue)));
  return number;
}

void nic::connect(std::uint32_t number, std::shared_ptr<const key_table> far) {
  const auto hold = visit();
  for (auto& q : queues_)
    if (q->number() == number) q->connect(std::make_unique<shm_executor>(payload_, keys_, far));
}

void nic::destroy_queue(std::uint32_t number) {
  const auto hold = visit();
  std::erase_if(queues_, [&](const auto& q) { return q->number() == number; });
}

void nic::set_faults(fault_plan* faults) {
  const auto hold = visit();
  faults_ = faults;
}

bool nic::poll() {
  if (visitors_.load(std::memory_order_acquire) != 0) return true;
  const std::unique_lock hold(lock_);
  bool worked = false;
  for (auto& q : queues_) worked |= q->turn(faults_);
  return worked;
}

}  // namespace xio::model::rdma
