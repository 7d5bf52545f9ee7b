// SPDX-License-Identifier: MIT
// A provider of libfabric between the NIC and its peers. One endpoint takes what peers write; queue pairs of one ctx
// send by an endpoint of their own, which goes with the last of them.
#pragma once
#include <list>

#include "gpu/memory.hpp"
#include "proxy/fabric.hpp"
#include "proxy/ofi_executor.hpp"

namespace xio::proxy {

// A write with immediate has come. False: not now, offer it again. Called under the NIC's lock.
using immediate_handler = std::function<bool(std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes)>;

struct ofi_settings {
  int pe = 0, pes = 1;
  std::uint32_t seed = 1;                // of memory keys
  std::chrono::nanoseconds patience{0};  // see ofi::way
  unsigned rnr_retries = 7;
  immediate_handler on_immediate;
  // How many immediates the queue pair's inbox may get in all, by now; see immediate_desk.hpp.
  std::function<std::uint64_t(std::uint32_t number)> room;
  // Of this process, as libfabric names it, and how its memory is found.
  fi_hmem_iface gpu = FI_HMEM_SYSTEM;
  gpu::location (*locate)(const void* address) = gpu::locate;
};

class ofi_fabric final : public fabric {
 public:
  // Tries each kind of op between this PE and itself. Throws with the reason.
  ofi_fabric(const payload_agent& payload, const ofi::library& l, ofi::info_list domain, ofi_settings settings);
  ~ofi_fabric() override;

  const char* name() const override { return name_.c_str(); }
  std::uint64_t max_message() const override { return by_.what().max_message; }
  key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) override;
  void unregister_memory(const key_pair& keys) override;
  device_address get_address() override;
  void connect_peers(const std::vector<device_address>& all) override;
  device_address get_queue_address(std::uint32_t number, int pe) override;
  std::unique_ptr<executor> connect(std::uint32_t number, int pe, const device_address& remote,
                                    std::uint32_t remote_number) override;
  void forget(std::uint32_t number) override;
  void cut_off(std::uint32_t number) override;
  bool poll() override;
  bool has_failed() const override { return failed_.load(std::memory_order_acquire); }

  std::uint32_t atomics() const { return atomics_; }  // of dev::nic_atomics, that the trial has shown
  const ofi::traits& what() const { return by_.what(); }
  // Keys, addresses, atomics and order, as the trial has shown them.
  const std::string& summary() const { return summary_; }

 private:
  using memory_list = std::vector<ofi::remote_memory>;
  struct peer {
    std::vector<unsigned char> address;
    fi_addr_t at = FI_ADDR_UNSPEC;  // resolved at first use
    memory_list memory;
  };
  // Queue pairs of one ctx: one to each PE at most.
  struct group {
    std::vector<std::uint32_t> numbers;      // by PE; 0: none
    std::vector<std::uint64_t> taken, most;  // immediates, by PE: that were taken, and that may come
    std::vector<std::uint64_t> words;        // the rings that peers write to, and a count behind each
    ofi::owned<fid_mr> key;
    std::shared_ptr<ofi::endpoint> sender;
    std::size_t members = 0;
    bool is_whole = false;          // its queue pairs are being connected
    run_clock::time_point until{};  // without members: when what is under way is cut off
  };
  group& group_without(int pe);
  group make_group();
  group* group_of(std::uint32_t number);
  group* take_out(std::uint32_t number);
  bool close_parted();
  fi_addr_t resolve(int pe);
  ofi::memory_range range_of(void* base, std::uint64_t bytes) const;
  void list_own_memory();
  bool take_immediates(group& g, std::size_t pe);
  void offer_room(group& g, std::size_t pe);
  void try_out();

  const ofi_settings settings_;
  ofi::provider by_;
  std::string name_;
  ofi::endpoint receiver_;
  ofi::local_memory memory_;
  std::vector<peer> peers_;  // this PE too
  std::list<group> groups_;
  std::atomic<bool> failed_{false};  // peers' ops make no progress here any more
  std::size_t parted_ = 0;           // groups without members
  std::uint32_t atomics_ = 0;
  std::string summary_;
};

}  // namespace xio::proxy
