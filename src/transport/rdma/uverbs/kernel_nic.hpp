// SPDX-License-Identifier: MIT
// The part of a NIC whose queues the kernel's own calls make that is the same for every vendor: its port, its events,
// registered memory.
#pragma once
#include <atomic>

#include "proxy/device_events.hpp"
#include "transport/rdma/direct/verbs_nic.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma::uverbs {

// A device's events, read by system calls alone: for those that no library of ours has opened.
class event_file {
 public:
  // A kernel that gives none is taken, and nothing is heard of.
  event_file(const domain& d, int port);
  // Looks now and then. For one thread.
  void poll();
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  const std::string name_;
  const int port_;
  unique_fd fd_;
  proxy::event_timer timer_;
  std::atomic<bool> failed_{false};
};

class kernel_nic : public direct_nic {
 public:
  // holder: what the others are parts of.
  kernel_nic(std::shared_ptr<void> holder, domain& owner, const proxy::verbs_port& port, const direct_hooks& hooks,
             bool relaxed);
  const proxy::verbs_address& identity() const final { return port_.identity; }
  port_facts port() const final;
  void poll_events() final { events_.poll(); }
  bool has_failed() const final { return events_.has_failed(); }
  std::uint64_t max_message() const final { return port_.max_message; }
  proxy::key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) final;
  void unregister_memory(const proxy::key_pair& keys) final;

 private:
  const std::shared_ptr<void> holder_;
  domain& owner_;
  const proxy::verbs_port& port_;
  const direct_hooks& hooks_;
  const bool relaxed_;
  event_file events_;
};

// Throws where a queue has more entries than the format's indices can name.
void check_depth(const proxy::verbs_address& mine, std::uint32_t depth, std::uint32_t most);

// Of a vendor: a Port has `port`, `hooks` and what a Queue needs that is made of one.
template <class Base, class Port, class Queue>
class nic_of final : public Base {
 public:
  template <class... Arguments>
  nic_of(const std::shared_ptr<Port>& port, std::uint32_t least, std::uint32_t most, Arguments&&... arguments)
      : Base(port, std::forward<Arguments>(arguments)...), port_(port), least_(least), most_(most) {}
  std::uint32_t depth_of(std::uint32_t wanted) const override { return wanted > least_ ? wanted : least_; }
  std::unique_ptr<direct_queue> make_queue(std::uint32_t depth, std::uint32_t cq_depth, bool receives) override {
    check_depth(port_->port.identity, depth, most_);
    return std::make_unique<Queue>(port_, depth, cq_depth, receives);
  }

 private:
  const std::shared_ptr<Port> port_;
  const std::uint32_t least_, most_;
};

// owner: null where the vendor's library makes the queues, and memory is registered as with any verbs device.
template <class Queue, class Port>
std::unique_ptr<direct_nic> open_nic(const std::shared_ptr<Port>& port, domain* owner, const proxy::verbs_path& path,
                                     std::uint32_t least, std::uint32_t most) {
  if (owner == nullptr)
    return std::make_unique<nic_of<verbs_nic, Port, Queue>>(port, least, most, port->port, path, port->hooks);
  return std::make_unique<nic_of<kernel_nic, Port, Queue>>(port, least, most, *owner, port->port, port->hooks,
                                                           path.relaxed_ordering);
}

// Throws where a step's errno is not 0. what: what was made.
void check_made(const proxy::verbs_address& mine, const char* what, std::uint32_t depth, int err);

}  // namespace xio::rdma::uverbs
