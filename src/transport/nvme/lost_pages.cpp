// SPDX-License-Identifier: MIT
#include "transport/nvme/lost_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

#include "base/earlier_handler.hpp"
#include "base/error.hpp"

namespace xio::nvme {
namespace {

// The handler reads without a lock, so that an entry is never freed: one whose base is 0 is there for the next.
struct entry {
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::size_t> bytes{0};
  entry* next = nullptr;
};
std::atomic<entry*> g_entries{nullptr};
std::mutex g_lock;

struct sigaction g_earlier;
int g_ones = -1;  // a file of one page
std::size_t g_page = 0;

bool is_watched(std::uintptr_t at) {
  for (const entry* e = g_entries.load(std::memory_order_acquire); e != nullptr; e = e->next) {
    const std::uintptr_t base = e->base.load(std::memory_order_acquire);
    if (base != 0 && at >= base && at - base < e->bytes.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

// Async-signal-safe. One call puts the page in place, so that no thread sees it half made.
bool replace(std::uintptr_t at) {
  auto* const page = reinterpret_cast<void*>(at / g_page * g_page);
  return mmap(page, g_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, g_ones, 0) != MAP_FAILED;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool done = info->si_code > 0 && is_watched(at) && replace(at);
  errno = kept;
  if (!done) call_earlier(g_earlier, signal, info, context);
}

// Under the lock.
void install() {
  if (g_ones >= 0) return;
  g_page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::vector<unsigned char> ones(g_page, 0xff);
  const int file = memfd_create("xio-lost", MFD_CLOEXEC);
  if (file < 0 || write(file, ones.data(), ones.size()) != static_cast<ssize_t>(ones.size())) {
    const int why = errno;
    if (file >= 0) close(file);
    fail(XIO_ERR_NO_MEMORY,
         "a page that takes the place of a lost drive's cannot be made: {}; raise the limit of open files (ulimit -n)",
         errno_text(why));
  }
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  // Also on a kernel's own small stack, by the signal stack of its thread.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGBUS, nullptr, &g_earlier);
  action.sa_mask = g_earlier.sa_mask;
  g_ones = file;
  sigaction(SIGBUS, &action, nullptr);
}

entry& entry_of(std::uintptr_t base) {
  for (entry* e = g_entries.load(); e != nullptr; e = e->next)
    if (e->base.load() == base) return *e;
  auto* made = new entry;
  made->next = g_entries.load();
  g_entries.store(made);
  return *made;
}

}  // namespace

lost_pages::lost_pages(void* base, std::size_t bytes) : base_(reinterpret_cast<std::uintptr_t>(base)) {
  const std::lock_guard hold(g_lock);
  install();
  entry& e = entry_of(0);
  e.bytes.store(bytes, std::memory_order_relaxed);
  e.base.store(base_, std::memory_order_release);
}

lost_pages::~lost_pages() {
  const std::lock_guard hold(g_lock);
  entry_of(base_).base.store(0, std::memory_order_release);
}

}  // namespace xio::nvme
