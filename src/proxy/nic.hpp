// SPDX-License-Identifier: MIT
// A software RDMA NIC: queue pairs of any dialect over one fabric. As strict as hardware: an entry that breaks a rule
// completes in error and its queue pair is dead.
#pragma once
#include "progress/machine.hpp"
#include "proxy/fabric.hpp"
#include "proxy/keys.hpp"
#include "proxy/queue_pair.hpp"
#include "proxy/queue_rota.hpp"

namespace xio::proxy {

// Thread safe. Memory that queues and regions name outlives them.
class nic : public progress::device {
 public:
  // seed: of queue numbers; differs from NIC to NIC, so that mixing them up does not go unnoticed.
  nic(std::unique_ptr<fabric> carried_by, std::uint32_t seed);
  ~nic() override;

  key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed);
  void unregister_memory(const key_pair& keys);  // on return no op touches it any more

  device_address get_address();
  void connect_peers(const std::vector<device_address>& all);

  // Returns the queue pair's number, 20 bits wide. `make` builds its wire queue. Doorbells count once it is connected.
  using queue_maker = std::function<std::unique_ptr<wire_queue>(std::uint32_t number)>;
  std::uint32_t create_queue(const queue_maker& make);
  device_address get_queue_address(std::uint32_t number, int pe);
  void connect(std::uint32_t number, int pe, const device_address& remote, std::uint32_t remote_number);
  // On return none of its memory is touched any more.
  void destroy_queue(std::uint32_t number);
  void cut_off_queue(std::uint32_t number);  // see fabric::cut_off

  // Whether the device behind it has failed for good: its queue pairs are in error, and no other can be made.
  bool has_failed() const { return failed_.load(std::memory_order_acquire) || fabric_->has_failed(); }

  // Null ends it. Must outlive the NIC or be taken away.
  void set_faults(fault_plan* faults);

  // Under the NIC's lock, as everything that a fabric does.
  template <class Use>
  auto with_fabric(Use&& use) {
    const auto hold = visit();
    return use(*fabric_);
  }

  bool poll() override;
  bool at_rest(sleeper::descriptors& found) override;

 private:
  std::unique_lock<std::mutex> visit() { return turns_.visit(); }

  std::unique_ptr<fabric> fabric_;
  queue_rota<queue_pair> queues_;
  fault_plan* faults_ = nullptr;
  bool broken_off_ = false;          // the device has failed, and the queue pairs know
  std::atomic<bool> failed_{false};  // by a fault on purpose
  std::uint32_t next_number_;
  progress::turn_lock turns_;
};

}  // namespace xio::proxy
