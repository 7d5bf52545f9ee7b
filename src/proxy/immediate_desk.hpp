// SPDX-License-Identifier: MIT
// Where immediates go that come in by queue pairs: the inboxes that kernels look into (include/xio/wire/inbox.hpp).
#pragma once
#include <functional>
#include <map>
#include <mutex>

#include "base/payload.hpp"

namespace xio::proxy {

// Fabrics call this with a queue pair's number; false: no room, offer it again.
using immediate_handler = std::function<bool(std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes)>;

// As this process reaches it, which may be by the mapping of another PE's memory: its words are hostile.
struct inbox {
  unsigned char* at;
  std::uint32_t entries;  // a power of two
};

// Thread safe. The memory of an inbox outlives its entry here.
class immediate_desk {
 public:
  explicit immediate_desk(const payload_agent& payload) : payload_(payload) {}

  void enrol(std::uint32_t number, const inbox& to);
  // On return its inbox is not touched any more on behalf of that number.
  void forget(std::uint32_t number);
  // Visible after everything that the caller has made visible. False if the number is unknown or its inbox full.
  bool deliver(std::uint32_t number, std::uint32_t immediate);
  // Immediates that were read of the number's inbox, and those that it can hold.
  std::uint64_t room(std::uint32_t number);

 private:
  bool drop(const inbox& to, std::uint32_t immediate) const;

  const payload_agent& payload_;
  std::mutex lock_;
  std::map<std::uint32_t, inbox> inboxes_;  // by queue pair
};

}  // namespace xio::proxy
