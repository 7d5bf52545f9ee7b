// SPDX-License-Identifier: MIT
#include "memory/hdp_thread.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace xio::memory {
namespace {

using clock = std::chrono::steady_clock;

void store_fence() {
#if defined(__x86_64__)
  _mm_sfence();  // empties write-combining buffers, which a fence of C++ does not
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void full_fence() {
#if defined(__x86_64__)
  _mm_mfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

void flush_by_register(volatile std::uint32_t* flush_register) {
  full_fence();
  *flush_register = 1;
  full_fence();
  static_cast<void>(*flush_register);
}

// The order of stores, fences and the load is that by which HIP makes kernel arguments in GPU memory visible (ROCm clr,
// rocclr/device/rocm/rocvirtual.cpp).
void flush_by_readback(volatile unsigned char* line, unsigned char value) {
  for (std::size_t i = 0; i + 1 < k_readback_bytes; ++i) line[i] = value;
  store_fence();
  line[k_readback_bytes - 1] = value;
  full_fence();
  static_cast<void>(line[k_readback_bytes - 1]);
}

hdp_thread::hdp_thread(std::uint64_t* asked, std::uint64_t* done, std::function<void()> flush)
    : asked_(asked), done_(done), flush_(std::move(flush)) {
  thread_ = start_thread("flushes of the HDP", [this] { run(); });
}

hdp_thread::~hdp_thread() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
}

bool hdp_thread::serve() {
  // Acquire: the flush comes after the writes for which the kernel asked.
  const std::uint64_t asked = __atomic_load_n(asked_, __ATOMIC_ACQUIRE);
  if (asked <= served_) return false;
  flush_();
  served_ = asked;
  flushes_.fetch_add(1, std::memory_order_relaxed);
  __atomic_store_n(done_, asked, __ATOMIC_RELEASE);
  return true;
}

void hdp_thread::run() {
  clock::time_point last{};
  unsigned sleep_us = 1;
  while (!stop_.load(std::memory_order_relaxed)) {
    const bool served = serve();
    const auto now = clock::now();
    if (served) last = now;
    if (now - last < std::chrono::microseconds(k_hot_us)) {
      sleep_us = 1;
      sched_yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
    sleep_us = std::min(2 * sleep_us, k_longest_sleep_us);
  }
}

}  // namespace xio::memory
