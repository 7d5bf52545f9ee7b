// SPDX-License-Identifier: MIT
// The part of a NIC whose queues a library makes that is the same for every vendor: memory is registered, and its port
// and events are read, as with any verbs device.
#pragma once
#include <memory>
#include <utility>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

class verbs_nic : public direct_nic {
 public:
  // holder: what the others are parts of.
  verbs_nic(std::shared_ptr<void> holder, const proxy::verbs_port& port, const proxy::verbs_path& path,
            const direct_hooks& hooks)
      : holder_(std::move(holder)), port_(port), memory_(port, path, nullptr, hooks.export_memory) {}
  const proxy::verbs_address& identity() const override { return port_.identity; }
  std::uint64_t max_message() const override { return port_.max_message; }
  proxy::verbs_fabric* fabric() override { return &memory_; }
  port_facts port() const override { return read_port(port_.context.get(), port_.identity.port); }
  void poll_events() override { memory_.poll(); }  // no queue pair is a fabric's own here
  bool has_failed() const override { return memory_.has_failed(); }
  proxy::key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) override {
    return memory_.register_memory(base, bytes, allowed);
  }
  void unregister_memory(const proxy::key_pair& keys) override { memory_.unregister_memory(keys); }

 private:
  const std::shared_ptr<void> holder_;
  const proxy::verbs_port port_;
  proxy::verbs_fabric memory_;
};

}  // namespace xio::rdma
