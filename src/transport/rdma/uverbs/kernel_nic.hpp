// SPDX-License-Identifier: MIT
// The part of a NIC whose queues the kernel's own calls make that is the same for every vendor: its port, its events,
// registered memory.
#pragma once
#include <memory>

#include "transport/rdma/direct/nic.hpp"
#include "transport/rdma/uverbs/domain.hpp"
#include "transport/rdma/uverbs/event_file.hpp"

namespace xio::rdma::uverbs {

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

 protected:
  // Throws where a queue has more entries than the format's indices can name.
  void check_depth(std::uint32_t depth, std::uint32_t most) const;

 private:
  const std::shared_ptr<void> holder_;
  domain& owner_;
  const proxy::verbs_port& port_;
  const direct_hooks& hooks_;
  const bool relaxed_;
  event_file events_;
};

// Of a vendor: a Port has `context`, `port` and `hooks`, and a Queue is made of one.
template <class Port, class Queue>
class nic_of final : public kernel_nic {
 public:
  nic_of(const std::shared_ptr<Port>& port, std::uint32_t least, std::uint32_t most, bool relaxed)
      : kernel_nic(port, port->context.owner(), port->port, port->hooks, relaxed),
        port_(port),
        least_(least),
        most_(most) {}
  std::uint32_t depth_of(std::uint32_t wanted) const override { return wanted > least_ ? wanted : least_; }
  std::unique_ptr<direct_queue> make_queue(std::uint32_t depth, std::uint32_t cq_depth, bool receives) override {
    check_depth(depth, most_);
    return std::make_unique<Queue>(port_, depth, cq_depth, receives);
  }

 private:
  const std::shared_ptr<Port> port_;
  const std::uint32_t least_, most_;
};

// Throws where a step's errno is not 0. what: what was made.
void check_made(const proxy::verbs_address& mine, const char* what, std::uint32_t depth, int err);

}  // namespace xio::rdma::uverbs
