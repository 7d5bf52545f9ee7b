// SPDX-License-Identifier: MIT
#include "gpu/host/overflow.hpp"
#include "gpu/host/strand.hpp"

#if defined(XIO_FIBERS_ASAN) || defined(XIO_FIBERS_TSAN)

namespace xio::host_exec {
void watch(const guarded_stacks&) {}
void forget(const guarded_stacks&) {}
signal_stack::signal_stack() = default;
signal_stack::~signal_stack() = default;
}  // namespace xio::host_exec

#else

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/earlier_handler.hpp"
#include "gpu/host/settings.hpp"

namespace xio::host_exec {
namespace {

// --- What is watched ---------------------------------------------------------------------------------

// The handler reads without a lock, so that an entry is never freed: one whose base is null is there for the next.
struct entry {
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::size_t> bytes{0}, stride{1}, guard{0};
  entry* next = nullptr;

  bool is_guard(std::uintptr_t at) const {
    const std::uintptr_t first = base.load(std::memory_order_acquire);
    if (first == 0 || at < first || at - first >= bytes.load(std::memory_order_relaxed)) return false;
    return (at - first) % stride.load(std::memory_order_relaxed) < guard.load(std::memory_order_relaxed);
  }
};
std::atomic<entry*> entries{nullptr};
std::mutex entries_lock;

entry& entry_of(std::uintptr_t base) {
  for (entry* e = entries.load(); e != nullptr; e = e->next)
    if (e->base.load() == base) return *e;
  auto* made = new entry;
  made->next = entries.load();
  entries.store(made);
  return *made;
}

bool in_a_guard(const void* address) {
  for (const entry* e = entries.load(std::memory_order_acquire); e != nullptr; e = e->next)
    if (e->is_guard(reinterpret_cast<std::uintptr_t>(address))) return true;
  return false;
}

// --- The handler: async-signal-safe ------------------------------------------------------------------

struct sigaction before;
std::string* sentence = nullptr;

void on_fault(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  if (info->si_code > 0 && in_a_guard(info->si_addr)) {
    // Nothing is left to do if it cannot be written.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, sentence->data(), sentence->size());
  }
  errno = kept;
  call_earlier(before, signal, info, context);
}

void install() {
  sentence =
      new std::string("xio error: a thread of a kernel ran out of its stack of " + std::to_string(config().stack) +
                      " bytes; set XIO_HOST_STACK to more, or keep large arrays out of the kernel\n");
  if (sigaction(SIGSEGV, nullptr, &before) != 0) return;
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_mask = before.sa_mask;
  sigaction(SIGSEGV, &action, nullptr);
}

// Enough for handlers that print where they are.
std::size_t signal_stack_bytes() {
  return std::max<std::size_t>(std::size_t{64} << 10, static_cast<std::size_t>(std::max(0l, sysconf(_SC_SIGSTKSZ))));
}

}  // namespace

void watch(const guarded_stacks& stacks) {
  const std::lock_guard hold(entries_lock);
  entry& e = entry_of(0);
  e.bytes.store(stacks.bytes, std::memory_order_relaxed);
  e.stride.store(stacks.stride, std::memory_order_relaxed);
  e.guard.store(stacks.guard, std::memory_order_relaxed);
  e.base.store(reinterpret_cast<std::uintptr_t>(stacks.base), std::memory_order_release);
}

void forget(const guarded_stacks& stacks) {
  const std::lock_guard hold(entries_lock);
  entry_of(reinterpret_cast<std::uintptr_t>(stacks.base)).base.store(0, std::memory_order_release);
}

signal_stack::signal_stack() {
  static std::once_flag once;
  std::call_once(once, install);
  stack_t has{};
  if (sigaltstack(nullptr, &has) != 0 || (has.ss_flags & SS_DISABLE) == 0) return;
  const std::size_t bytes = signal_stack_bytes();
  memory_.reset(new unsigned char[bytes]);  // its pages come when a handler runs
  stack_t mine{};
  mine.ss_sp = memory_.get();
  mine.ss_size = bytes;
  if (sigaltstack(&mine, nullptr) != 0) memory_.reset();
}

signal_stack::~signal_stack() {
  stack_t has{};
  if (memory_ == nullptr || sigaltstack(nullptr, &has) != 0 || has.ss_sp != memory_.get()) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace xio::host_exec

#endif
