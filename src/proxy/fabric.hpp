// SPDX-License-Identifier: MIT
// What lies between a NIC and its peers: shared memory, TCP or a real RDMA device. Made once per NIC; queue pairs are
// connected through it one by one. All calls but the constructor are made under the NIC's lock.
#pragma once
#include <cstddef>
#include <memory>

#include "base/sleeper.hpp"
#include "proxy/executor.hpp"

namespace xio::proxy {

// PEs exchange device addresses through the bootstrap: of a NIC (where it listens, its port's link), and of one queue
// pair (its number on the fabric). Contents and length are the fabric's own, and hostile until checked; an empty one
// says that there is none.
using device_address = std::vector<std::byte>;
constexpr std::size_t k_device_address_most = 255;

struct key_pair {
  std::uint32_t lkey, rkey;
};

class fabric {
 public:
  virtual ~fabric() = default;
  virtual const char* name() const = 0;  // "shm", "tcp", "verbs rxe0"

  // Bigger messages are cut by the lane.
  virtual std::uint64_t max_message() const = 0;
  // `allowed` is of `rights` (keys.hpp). Throws with the reason.
  virtual key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) = 0;
  // On return no op touches it any more.
  virtual void unregister_memory(const key_pair& keys) = 0;

  // The first returns this NIC's address; the second gets those of all PEs, this one included. connect_peers throws
  // and names the PE if an address cannot be right.
  virtual device_address get_address() = 0;
  virtual void connect_peers(const std::vector<device_address>& all) = 0;

  // The first makes the fabric's part of queue pair `number` to PE `pe` and returns its address; the second connects it
  // to the queue pair that PE made.
  virtual device_address get_queue_address(std::uint32_t number, int pe) = 0;
  virtual std::unique_ptr<executor> connect(std::uint32_t number, int pe, const device_address& remote,
                                            std::uint32_t remote_number) = 0;
  virtual void forget(std::uint32_t number) = 0;  // its executor is gone
  // The same of a queue pair to a PE that was excluded: nobody waits for what it is just doing.
  virtual void cut_off(std::uint32_t number) { forget(number); }

  // One short turn of what no queue pair does by itself: accepting, serving peers, acknowledging.
  virtual bool poll() = 0;

  // progress::device::at_rest of what poll() does.
  virtual bool at_rest(sleeper::descriptors&) { return false; }

  // Whether the device does nothing any more, for this process never again. Any thread may ask, without the NIC's lock.
  virtual bool has_failed() const { return false; }
};

}  // namespace xio::proxy
