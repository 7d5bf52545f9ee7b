// SPDX-License-Identifier: MIT
// A software RDMA NIC: memory keys, queue pairs of a dialect, and the executor that reaches their peers. As strict as
// hardware: an entry that breaks a rule completes in error and its queue pair is dead.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/payload.hpp"
#include "model/machine.hpp"
#include "model/nic/fault_plan.hpp"
#include "model/nic/keys.hpp"
#include "model/nic/mlx5_queue.hpp"
#include "model/nic/queue_pair.hpp"

namespace xio::model::rdma {

struct nic_limits {
  std::uint64_t max_message = std::uint64_t{1} << 30;  // mlx5: log_max_msg 30
  std::uint32_t seed = 1;                              // of keys and queue numbers: differs from NIC to NIC
};

// Thread safe. Memory that queues and regions name outlives them.
class nic : public device {
 public:
  nic(const payload_agent& payload, const nic_limits& limits);
  ~nic() override;

  // Answers the key, 0 if the range is empty or wraps. `allowed` is of `rights`.
  std::uint32_t register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed);
  // On return no op touches it any more.
  bool unregister_memory(std::uint32_t key);

  // Answers the queue pair's number. It can be rung once it is connected.
  std::uint32_t create_queue(const mlx5_memory& memory);
  // far: what the peer has opened, with mappings of this process.
  void connect(std::uint32_t number, std::shared_ptr<const key_table> far);
  // On return none of its memory is touched any more.
  void destroy_queue(std::uint32_t number);

  // Null ends it. Must outlive the NIC or be taken away.
  void set_faults(fault_plan* faults);

  bool poll() override;

 private:
  // Polls give way to visitors, or a NIC that is always busy would keep them out.
  std::unique_lock<std::mutex> visit();

  const payload_agent& payload_;
  const nic_limits limits_;
  key_table keys_;
  std::vector<std::unique_ptr<queue_pair>> queues_;
  fault_plan* faults_ = nullptr;
  std::uint32_t next_number_;
  std::atomic<int> visitors_{0};
  std::mutex lock_;
};

}  // namespace xio::model::rdma
