// SPDX-License-Identifier: MIT
// A page whose every access is seen, as a device sees those to its registers: it is mapped without rights, each access
// faults, is noted, runs alone, and the page is closed again. One at a time; x86-64, and not under ThreadSanitizer.
#pragma once
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define XIO_TEST_HAS_TRAPPED_PAGE 1
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace xio::test {

class trapped_page {
 public:
  // on_store runs before each store, where the device would act on it: in a signal handler.
  explicit trapped_page(std::function<void()> on_store = {}) : on_store_(std::move(on_store)) {
    bytes_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    base_ = static_cast<unsigned char*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    current_ = this;
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = &on_fault;
    sigaction(SIGSEGV, &action, &old_fault_);
    action.sa_sigaction = &on_step;
    sigaction(SIGTRAP, &action, &old_step_);
  }
  trapped_page& operator=(trapped_page&&) = delete;
  ~trapped_page() {
    sigaction(SIGSEGV, &old_fault_, nullptr);
    sigaction(SIGTRAP, &old_step_, nullptr);
    current_ = nullptr;
    munmap(base_, bytes_);
  }

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(base_);
  }

  // "wwr": what was done to it since the last call, in order.
  std::string accesses() {
    const std::size_t n = count_.exchange(0);
    return {log_, n < sizeof log_ ? n : sizeof log_};
  }
  std::size_t offset(std::size_t i) const { return offsets_[i]; }

 private:
  // Exceptions of the processor: Intel SDM volume 3, 6.15, page fault error code: bit 1 is a write. Bit 8 of the flags
  // stops it after the next instruction.
  static constexpr long long k_write = 2, k_single_step = 0x100;

  static void on_fault(int, siginfo_t* info, void* raw) {
    auto* context = static_cast<ucontext_t*>(raw);
    trapped_page* page = current_;
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const auto base = reinterpret_cast<std::uintptr_t>(page != nullptr ? page->base_ : nullptr);
    if (page == nullptr || at < base || at >= base + page->bytes_) {
      // Not ours: the next fault ends the program, as it should.
      signal(SIGSEGV, SIG_DFL);
      return;
    }
    const bool writes = (context->uc_mcontext.gregs[REG_ERR] & k_write) != 0;
    const std::size_t n = page->count_.fetch_add(1);
    if (n < sizeof page->log_) {
      page->log_[n] = writes ? 'w' : 'r';
      page->offsets_[n] = at - base;
    }
    if (writes && page->on_store_) page->on_store_();
    mprotect(page->base_, page->bytes_, PROT_READ | PROT_WRITE);
    context->uc_mcontext.gregs[REG_EFL] |= k_single_step;
  }
  static void on_step(int, siginfo_t*, void* raw) {
    auto* context = static_cast<ucontext_t*>(raw);
    context->uc_mcontext.gregs[REG_EFL] &= ~k_single_step;
    if (current_ != nullptr) mprotect(current_->base_, current_->bytes_, PROT_NONE);
  }

  static inline trapped_page* current_ = nullptr;
  std::function<void()> on_store_;
  unsigned char* base_ = nullptr;
  std::size_t bytes_ = 0;
  struct sigaction old_fault_ {
  }, old_step_{};
  std::atomic<std::size_t> count_{0};
  char log_[4096] = {};
  std::size_t offsets_[4096] = {};
};

}  // namespace xio::test
#endif
