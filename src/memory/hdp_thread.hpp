// SPDX-License-Identifier: MIT
// The thread that flushes the HDP for kernels that ask, and what it does: see include/xio/device/impl/hdp.hpp.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

namespace xio::memory {

// Stores to the flush register and reads it back.
void flush_by_register(volatile std::uint32_t* flush_register);

// Where no register is mapped: writes a line of GPU memory through the CPU's mapping, then its last byte after a store
// fence, and reads that back behind a full one. `value` differs from call to call.
constexpr std::size_t k_readback_bytes = 64;
void flush_by_readback(volatile unsigned char* line, unsigned char value);

// Serves `asked`: what it finds there goes to `done` after a flush that began later. A GPU cannot wake a thread, so it
// looks: at once for a while after each request, then after sleeps that grow to k_longest_sleep_us. A request that
// comes out of the blue waits for at most that long and the time that the system needs to wake a thread; nobody
// asking costs some thousand looks per second, less than a hundredth of a core.
class hdp_thread {
 public:
  static constexpr unsigned k_hot_us = 50, k_longest_sleep_us = 250;

  // Both words are in host memory and outlive this. Throws XIO_ERR_NO_MEMORY.
  hdp_thread(std::uint64_t* asked, std::uint64_t* done, std::function<void()> flush);
  hdp_thread& operator=(hdp_thread&&) = delete;
  ~hdp_thread();

  std::uint64_t flushes() const { return flushes_.load(std::memory_order_relaxed); }

 private:
  void run();
  bool serve();

  std::uint64_t* const asked_;
  std::uint64_t* const done_;
  const std::function<void()> flush_;
  std::uint64_t served_ = 0;
  std::atomic<std::uint64_t> flushes_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace xio::memory
