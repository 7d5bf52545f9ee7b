// SPDX-License-Identifier: MIT
// Copies that host threads give to a copy engine: a queue whose producer is the host.
#pragma once
#include "base/error.hpp"
#include "base/run_clock.hpp"
#include "base/sleeper.hpp"
#include "transport/sdma/sdma.hpp"
#include "xio/device/impl/sdma.hpp"

namespace xio::sdma {

namespace w = wire::sdma;

class host_copier {
 public:
  // timeout of every wait; 0: none.
  host_copier(engine& e, std::chrono::milliseconds timeout)
      : timeout_(timeout), queue_(e.create_queue({k_depth, 0, -1, 0, true})), ring_(queue_->view()) {}

  // Returns the ticket of the last piece. Copies end in the order of the calls. Waits for room only. Any thread may
  // call it.
  std::uint64_t start(void* dst, const void* src, std::size_t bytes) {
    const auto to = reinterpret_cast<std::uint64_t>(dst), from = reinterpret_cast<std::uint64_t>(src);
    if (bytes != 0 && (dst == nullptr || src == nullptr))
      fail(XIO_ERR_ARG, "a copy of {} bytes from {} to {}: give two addresses", bytes, src, dst);
    if (to + bytes < to || from + bytes < from)
      fail(XIO_ERR_ARG, "a copy of {} bytes from {} to {} goes past the end of the address space", bytes, src, dst);
    if (to != from && to < from + bytes && from < to + bytes)
      fail(XIO_ERR_ARG, "a copy of {} bytes from {} to {}: they overlap, and engines copy in any order", bytes, src,
           dst);
    if (ring_.sdma.granule != 1 && ((to | from | bytes) & (ring_.sdma.granule - 1u)) != 0)
      fail(XIO_ERR_ARG, "a copy of {} bytes from {} to {}: this engine takes multiples of {}; see XIO_SDMA_GRANULE",
           bytes, src, dst, ring_.sdma.granule);
    const std::lock_guard hold(lock_);
    for (std::uint64_t done = 0; done < bytes;) {
      const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - done, ring_.chunk));
      post(to + done, from + done, now);
      done += now;
    }
    return issued_;
  }
  // Throws XIO_ERR_TIMEOUT, or XIO_ERR_TRANSPORT when the engine stopped.
  void wait(std::uint64_t ticket) {
    const std::lock_guard hold(lock_);
    if (ticket > issued_)
      fail(XIO_ERR_ARG, "copy {} was never started; give what xio_sdma_copy_start returned", ticket);
    wait_below(ticket);
  }

 private:
  using clock = run_clock;
  static constexpr std::uint32_t k_depth = 64;
  // Looks before the thread sleeps between them: about what a short copy takes.
  static constexpr int k_eager_polls = 2000;

  // Slots as in xio/device/impl/sdma.hpp, each with its FENCE: a host thread has time for it.
  void post(std::uint64_t dst, std::uint64_t src, std::uint32_t bytes) {
    const std::uint64_t slots = std::max<std::uint64_t>(1, ring_.sdma.least_slots);
    if (issued_ + slots - completed(issued_) > k_depth) wait_below(issued_ + slots - k_depth);
    constexpr std::uint32_t fence_at = dev::k_sdma_slot_dwords - w::k_fence_dwords;
    for (std::uint64_t i = 1; i <= slots; ++i, ++issued_) {
      auto* dw = reinterpret_cast<std::uint32_t*>(ring_.slots + issued_ % k_depth * dev::k_sdma_slot_bytes);
      if (i != slots) {
        w::encode_nop(dw, dev::k_sdma_slot_dwords);
        continue;
      }
      w::encode_copy_linear(dw, dst, src, bytes);
      w::encode_nop(dw + w::k_copy_linear_dwords, fence_at - w::k_copy_linear_dwords);
      w::encode_fence(dw + fence_at, ring_.sdma.generation, reinterpret_cast<std::uint64_t>(ring_.sdma.completion),
                      static_cast<std::uint32_t>(issued_ + 1));
    }
    const std::uint64_t written = issued_ * dev::k_sdma_slot_bytes;
    // The engine sees the packets, then the pointer, then the doorbell.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    __atomic_store_n(ring_.sdma.write_pointer, written, __ATOMIC_RELEASE);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    __atomic_store_n(ring_.sdma.doorbell, written, __ATOMIC_RELEASE);
    wake_sleepers();
  }
  void wait_below(std::uint64_t upto) {
    const auto end = clock::now() + timeout_;
    for (int polls = 0; completed(upto) < upto; ++polls) {
      if (polls < k_eager_polls) {
        std::this_thread::yield();
        continue;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (timeout_.count() != 0 && clock::now() > end)
        fail(XIO_ERR_TIMEOUT,
             "SDMA queue {:#x}: {} of {} copies did not end within {} ms; the engine hangs, or give it more time",
             queue_->view().id, upto - completed_, upto, timeout_.count());
    }
  }
  // Throws where the engine stopped before all below `wanted` were.
  std::uint64_t completed(std::uint64_t wanted) {
    const dev::sdma_completion* block = ring_.sdma.completion;
    const std::uint32_t fault = __atomic_load_n(&block->fault, __ATOMIC_ACQUIRE);
    const std::uint32_t ahead =
        __atomic_load_n(&block->fence, __ATOMIC_ACQUIRE) - static_cast<std::uint32_t>(completed_);
    if (ahead > k_depth)
      fail(XIO_ERR_INTERNAL,
           "SDMA queue {:#x}: its fence word holds a value that was never asked for; something wrote over it",
           queue_->view().id);
    completed_ += ahead;
    if (fault != 0 && completed_ < wanted)
      fail(
          XIO_ERR_TRANSPORT,
          "SDMA queue {:#x}: the engine stopped with code {} at dword {}; check that both areas of the copy are mapped "
          "(xio_sdma_map), and connect again",
          queue_->view().id, fault, block->fault_dword);
    return completed_;
  }

  const std::chrono::milliseconds timeout_;
  std::unique_ptr<queue> queue_;
  dev::ring_view ring_;
  std::mutex lock_;
  std::uint64_t issued_ = 0, completed_ = 0;
};

}  // namespace xio::sdma
