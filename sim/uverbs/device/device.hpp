// SPDX-License-Identifier: MIT
// The NIC of this process: firmware, memory keys, doorbell pages and the queue pairs that work. A thread of its own
// looks at the pages, as the hardware does.
#pragma once
#include <mutex>
#include <set>

#include "proxy/keys.hpp"
#include "proxy/queue_pair.hpp"
#include "uverbs/device/receives.hpp"
#include "uverbs/device/settings.hpp"
#include "uverbs/device/wire.hpp"

namespace uverbs {

// Rings of a queue pair that the kernel makes, checked.
struct rings {
  unsigned char* slots;  // bnxt: and the MSN table behind
  std::uint32_t depth, page;
  unsigned char* completions;
  std::uint32_t cq_depth, cq_number, cq_page, mtu, table_log2;
};

class device final : public firmware::resources, public firmware::nic {
 public:
  // Null where the process is in no session.
  static device* current();

  const settings& chosen() const { return settings_; }
  std::unique_lock<std::mutex> lock() { return std::unique_lock(lock_); }

  // All below under the lock.
  void set_faults(const std::string& words);
  firmware::processor& processor() { return processor_; }
  xio::proxy::key_table& keys() { return keys_; }
  std::uint32_t add_umem(firmware::umem m);
  void remove_umem(std::uint32_t id) { umems_.erase(id); }
  std::uint32_t add_domain();
  void remove_domain(std::uint32_t pdn) { domains_.erase(pdn); }
  std::uint32_t add_page();
  void remove_page(std::uint32_t id) { pages_.erase(id); }
  void count_page(std::uint32_t type) { ++pages_asked_[type]; }
  unsigned pages_asked(std::uint32_t type) { return pages_asked_[type]; }
  void gid(unsigned char to[16]) const;

  const firmware::umem* find_umem(std::uint32_t id) const override;
  bool has_uar(std::uint32_t page) const override { return pages_.contains(page); }
  bool has_domain(std::uint32_t pdn) const override { return domains_.contains(pdn); }
  bool has_gid(std::uint32_t index) const override { return index == 0; }
  bool mac_of(const unsigned char gid[16], unsigned char mac[6]) const override;
  void start(std::uint32_t qpn, const firmware::queue_pair& q) override;
  void stop(std::uint32_t qpn) override;
  // Queue pairs that the kernel makes, and not commands.
  std::uint32_t next_number() { return next_number_++; }
  void connect(std::uint32_t qpn, const firmware::queue_pair& q) { pairs_[qpn] = q; }
  void start_bnxt(std::uint32_t qpn, const firmware::queue_pair& q, const rings& r);
  void add_receives(std::uint32_t qpn, std::unique_ptr<receive_side> r) { receives_[qpn] = std::move(r); }
  void start_ionic(std::uint32_t qpn, const firmware::queue_pair& q, const rings& r);
  // Types of ionic's queues: where in the page their doorbells are. Firmware chooses them.
  static constexpr std::uint8_t k_ionic_sq_type = 4, k_ionic_rq_type = 5, k_ionic_cq_type = 6;

 private:
  struct running {
    std::uint32_t page = 0, cq_number = 0, cq_page = 0;
    std::uint64_t doorbell = 0, cq_doorbell = 0;  // as the decoder sees them
    std::uint32_t expected_psn = 0;
    std::unique_ptr<xio::proxy::queue_pair> queue;
  };

  device();
  template <class Memory>
  std::pair<running&, Memory> begin(std::uint32_t qpn, const firmware::queue_pair& q, const rings& r);
  void work();
  void take_faults();
  bool turn();
  void ring(const doorbell& d);
  std::uint64_t* find_doorbell(const doorbell& d, running** whose);
  std::uint64_t* find_bnxt_doorbell(const doorbell& d, running** whose);
  std::uint64_t* find_ionic_doorbell(const doorbell& d, running** whose);
  const firmware::queue_pair* find_pair(std::uint32_t qpn) const;
  bool serve(const request_message& in, response_message& out);
  receive_side* find_receives(std::uint32_t qpn, const firmware::queue_pair& q);

  settings settings_;
  std::mutex lock_;
  firmware::processor processor_;
  xio::proxy::key_table keys_;
  std::map<std::uint32_t, firmware::umem> umems_;
  std::map<std::uint32_t, bool> domains_;
  std::set<std::uint32_t> pages_;
  std::map<std::uint32_t, unsigned> pages_asked_;  // by type
  std::map<std::uint32_t, running> running_;
  std::map<std::uint32_t, firmware::queue_pair> pairs_;
  std::map<std::uint32_t, std::uint32_t> expected_psn_;
  std::map<std::uint32_t, std::unique_ptr<receive_side>> receives_;
  receiver receiver_;
  std::uint32_t next_umem_ = 1, next_domain_ = 0x77, next_page_ = 0x21, next_number_ = 0x3c1;
};

}  // namespace uverbs
