// SPDX-License-Identifier: MIT
// What the TCP carrier is given.
#pragma once
#include <chrono>

#include "base/options.hpp"
#include "proxy/keys.hpp"

namespace xio::proxy {

class frame_faults;

// A write with immediate has come. False: not now, offer it again. Called under the NIC's lock.
using immediate_handler = std::function<bool(std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes)>;

// Of two PEs: their NICs know it, and nobody else. Every copy is wiped when it goes.
struct tcp_key : std::array<unsigned char, 32> {
  tcp_key() : array{} {}
  tcp_key(const tcp_key&) = default;
  tcp_key& operator=(const tcp_key&) = default;
  ~tcp_key() { explicit_bzero(data(), size()); }
};
using tcp_key_source = std::function<tcp_key(int pe)>;

struct tcp_settings {
  int pe = 0, pes = 1;
  tcp_key_source key_with;
  std::string address;      // "host" or "host:port", numeric; empty: every interface
  network_options network;  // interfaces whose addresses are given to peers, ports
  std::uint64_t max_message = std::uint64_t{1} << 30;
  std::uint32_t seed = 1;  // of memory keys
  // Without progress for this long what is under way is sent again, `retries` times. 0 waits for ever.
  std::chrono::microseconds ack_timeout{250'000};
  unsigned retries = 7;
  unsigned rnr_retries = 7;                           // 7: for ever, as in InfiniBand
  std::chrono::milliseconds connect_timeout{30'000};  // 0 waits for ever
  immediate_handler on_immediate;                     // none: no receive is ever posted
  frame_faults* faults = nullptr;                     // outlives the fabric
  memory_place place;                                 // see keys.hpp
};

}  // namespace xio::proxy
