// SPDX-License-Identifier: MIT
// This PE's wait_page, which its kernels and calls of the host write.
#pragma once
#include "base/options.hpp"
#include "ctx/metrics.hpp"
#include "ctx/wait_page.hpp"

namespace xio {

class membership;

class wait_book {
 public:
  // Where there is no memory for it the world does without, and one sentence of the log says so.
  wait_book(const ctx_options& o, const membership& members, const unsigned char* heap, std::uint64_t heap_bytes);

  // Where kernels write, or null.
  dev::wait_note* notes() const { return seen_ == nullptr ? nullptr : seen_->notes; }
  // From now on waits for these rings are noted, the first of which leads to PE peers[0], or all to a drive. More than
  // dev::k_queue_notes share places, and the newest has it.
  void show(const counted_queues& q, const char* drive = nullptr);
  // On return nothing of the owner's rings is read any more, and their counts are kept as they are now.
  void forget(const void* owner) {
    if (counts_) counts_->forget(owner);
  }
  void end_counts() { counts_.reset(); }
  // A call of the host, which runs while this lives: that may be longer than the book does. Of several threads the last
  // to begin one is shown.
  class shown_call {
   public:
    shown_call(std::shared_ptr<wait_page> page, const char* call);
    ~shown_call();
    shown_call& operator=(shown_call&&) = delete;

   private:
    const std::shared_ptr<wait_page> page_;
    const char* const call_;
    const std::uint64_t began_ = trace::begin();
    const trace::range_receivers* const ranges_ = trace::g_ranges.load(std::memory_order_acquire);
  };
  shown_call enter(const char* call) const { return {page_, call}; }

  struct memory;

 private:
  static memory take();
  static void give_back(memory m);

  std::shared_ptr<wait_page> page_;      // as the host sees it
  wait_page* seen_ = nullptr;            // as kernels do
  std::atomic<std::uint32_t> shown_{0};  // rings
  std::optional<metrics> counts_;
};

}  // namespace xio
