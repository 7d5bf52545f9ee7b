// SPDX-License-Identifier: MIT
// Both ends' memory is mapped in this process: ops are copies and atomics, one at a time.
#pragma once
#include "base/run_clock.hpp"
#include "proxy/immediate_desk.hpp"
#include "proxy/memory_ops.hpp"
#include "proxy/shm_gates.hpp"

namespace xio::proxy {

class shm_executor final : public executor {
 public:
  // far: what the peer has opened, by its own keys and addresses.
  // tell: puts an immediate into the peer's inbox, false if there is no room; null: the peer takes none. rnr_retries
  // times 0.64 ms is waited for room, 7 is for ever, as in InfiniBand (9.7.5.2.8).
  using immediate_delivery = std::function<bool(std::uint32_t immediate, std::uint64_t bytes)>;
  shm_executor(const payload_agent& payload, const key_table& local, std::shared_ptr<const key_table> remote,
               immediate_delivery deliver = {}, unsigned rnr_retries = 7, remote_gate gate = {})
      : payload_(payload),
        local_(local),
        remote_(std::move(remote)),
        deliver_(std::move(deliver)),
        rnr_retries_(rnr_retries),
        gate_(std::move(gate)) {}

  bool begin(const op& o) override;
  std::uint64_t advance(std::uint64_t budget) override;
  bool ended(op_error* how) override;

 private:
  using clock = run_clock;
  enum class stage { idle, running, delivering, over };
  op_error check() const;
  op_error distant(std::uint32_t wanted, unsigned char** place) const;
  op_error step(std::uint64_t budget);
  op_error step_inside(std::uint64_t budget);
  op_error write_inline();
  op_error move(std::uint64_t budget);
  op_error change();
  void deliver_immediate();

  const payload_agent& payload_;
  const key_table& local_;
  std::shared_ptr<const key_table> remote_;
  const immediate_delivery deliver_;
  const unsigned rnr_retries_;
  const remote_gate gate_;
  op op_;
  stage stage_ = stage::idle;
  std::uint64_t moved_ = 0;
  op_error how_;
  clock::time_point deliver_since_{};  // since when there is something to tell
};

// NICs of one machine whose owners have each other's memory mapped.
class shm_fabric final : public fabric {
 public:
  shm_fabric(const payload_agent& payload, std::uint64_t max_message, std::uint32_t seed,
             immediate_handler handler = {}, unsigned rnr_retries = 7, memory_place place = {})
      : payload_(payload),
        max_message_(max_message),
        keys_(seed),
        handler_(std::move(handler)),
        rnr_retries_(rnr_retries),
        place_(std::move(place)) {}

  // Adds the region that PE `pe` has registered under `rkey`, with the place where it is mapped here.
  void adopt(int pe, std::uint32_t rkey, const region& what);
  // Takes that back.
  void drop(int pe, std::uint32_t rkey);

  const char* name() const override { return "shm"; }
  std::uint64_t max_message() const override { return max_message_; }
  key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) override;
  void unregister_memory(const key_pair& keys) override { keys_.remove(keys.lkey); }
  device_address get_address() override { return gates_.get_address(); }
  void connect_peers(const std::vector<device_address>& all) override { gates_.connect_peers(all); }
  device_address get_queue_address(std::uint32_t number, int) override { return gates_.open_gate(number); }
  std::unique_ptr<executor> connect(std::uint32_t number, int pe, const device_address& remote,
                                    std::uint32_t remote_number) override;
  void forget(std::uint32_t number) override { gates_.shut(number, k_gate_patience); }
  void cut_off(std::uint32_t number) override { gates_.shut(number, std::chrono::milliseconds(1)); }
  bool poll() override { return false; }
  bool at_rest(sleeper::descriptors&) override { return true; }

 private:
  const payload_agent& payload_;
  const std::uint64_t max_message_;
  key_table keys_;
  const immediate_handler handler_;  // by the number of the sending queue pair: no other NIC takes part
  const unsigned rnr_retries_;
  const memory_place place_;
  std::map<int, std::shared_ptr<key_table>> remote_;
  shm_gates gates_;
};

}  // namespace xio::proxy
