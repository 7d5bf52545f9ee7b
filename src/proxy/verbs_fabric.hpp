// SPDX-License-Identifier: MIT
// A port of a real RDMA device between the NIC and its peers: ops travel by the device's own queue pairs, and keys are
// the device's own. Any device with verbs and RC will do.
#pragma once
#include <deque>
#include <map>

#include "proxy/device_events.hpp"
#include "proxy/fabric.hpp"
#include "proxy/verbs_queue.hpp"

namespace xio::proxy {

class verbs_fabric final : public fabric {
 public:
  verbs_fabric(verbs_port port, const verbs_path& path, immediate_handler handler, memory_exporter exporter);
  ~verbs_fabric() override;

  const char* name() const override { return name_.c_str(); }
  std::uint64_t max_message() const override { return port_.max_message; }
  key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) override;
  void unregister_memory(const key_pair& keys) override;

  device_address get_address() override { return pack(port_.identity); }
  void connect_peers(const std::vector<device_address>& all) override;

  device_address get_queue_address(std::uint32_t number, int pe) override;
  std::unique_ptr<executor> connect(std::uint32_t number, int pe, const device_address& remote,
                                    std::uint32_t remote_number) override;
  void forget(std::uint32_t number) override;

  bool poll() override;
  bool has_failed() const override { return failed_.load(std::memory_order_acquire); }

 private:
  struct immediate {
    std::uint32_t value;
    std::uint64_t bytes;
  };
  struct pair {
    std::unique_ptr<verbs_queue> queue;
    std::size_t receives;  // which of receive_cqs_
    std::deque<immediate> held;
  };
  // Receive completions of several queue pairs, as many as it has room for.
  struct receive_cq {
    verbs_owned<ibv_cq> cq;
    std::uint32_t room;  // queue pairs
  };
  std::size_t find_receive_cq();
  bool poll_receives(ibv_cq* cq);
  bool deliver_held();
  void poll_events();

  const verbs_port port_;
  const verbs_path path_;
  const immediate_handler handler_;
  const memory_exporter exporter_;
  const std::string name_;
  std::vector<receive_cq> receive_cqs_;
  std::map<std::uint32_t, pair> pairs_;
  std::size_t held_ = 0;                                       // of all pairs
  std::multimap<std::uint32_t, verbs_owned<ibv_mr>> regions_;  // by lkey
  event_timer events_;
  std::atomic<bool> failed_{false};
};

}  // namespace xio::proxy
