// SPDX-License-Identifier: MIT
// NICs that share nothing but a network: ops travel by TCP, with one connection for each pair of PEs.
#pragma once
#include <list>
#include <map>
#include <unordered_map>

#include "proxy/fabric.hpp"
#include "proxy/tcp_requester.hpp"
#include "proxy/tcp_responder.hpp"
#include "proxy/tcp_settings.hpp"
#include "proxy/tcp_socket.hpp"

namespace xio::proxy {

class tcp_fabric final : public fabric {
 public:
  // Listens from here on. Throws with the reason.
  tcp_fabric(const payload_agent& payload, tcp_settings settings);

  const char* name() const override { return "tcp"; }
  std::uint64_t max_message() const override { return settings_.max_message; }
  key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) override;
  void unregister_memory(const key_pair& keys) override { keys_.remove(keys.lkey); }
  device_address get_address() override;
  void connect_peers(const std::vector<device_address>& all) override;
  device_address get_queue_address(std::uint32_t, int) override { return {}; }
  std::unique_ptr<executor> connect(std::uint32_t number, int pe, const device_address& remote,
                                    std::uint32_t remote_number) override;
  void forget(std::uint32_t number) override;
  bool poll() override;
  bool at_rest(sleeper::descriptors& found) override;

 private:
  struct peer {
    tcp::identity id{};
    std::vector<socket_address> places;
  };
  struct pair {
    int pe;
    std::uint32_t remote_number;
    tcp::requester* ask;  // goes before forget()
    tcp::responder responder;
  };
  std::shared_ptr<tcp::link> link_to(int pe);
  void link_to_self();
  bool handle(tcp::link& way, const tcp::frame_head& h, const unsigned char* payload);
  void acknowledge(tcp::link& way);
  void accept();
  void poll_visitors();
  bool serve(tcp::link& way);

  const payload_agent& payload_;
  const tcp_settings settings_;
  key_table keys_;
  tcp::identity id_{};
  tcp::listener listener_;
  std::vector<peer> peers_;
  tcp::link_room room_;
  std::map<int, std::shared_ptr<tcp::link>> links_;
  std::shared_ptr<tcp::link> mirror_;  // where what this PE sends to itself comes out
  std::list<tcp::visitor> visitors_;
  std::unordered_map<std::uint32_t, std::unique_ptr<pair>> pairs_;
  std::vector<std::uint32_t> owing_;
  bool said_full_ = false, said_version_ = false;
};

}  // namespace xio::proxy
