// SPDX-License-Identifier: MIT
#include "ctx/wait_book.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "ctx/membership.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory_file.hpp"

namespace xio {

// Pages are never unmapped, for that waits for all kernels, by a call which HIP may still be in when the process ends.
// The next world takes the page of one that has ended.
struct wait_book::memory {
  unique_fd file;
  wait_page* page;
  wait_page* seen;
};
namespace {
struct kept {
  std::mutex lock;
  std::vector<wait_book::memory> free;
};
kept& all_kept() {
  static auto* one = new kept;
  return *one;
}
}  // namespace

wait_book::memory wait_book::take() {
  {
    const std::lock_guard hold(all_kept().lock);
    auto& free = all_kept().free;
    if (!free.empty() && !process::is_forked()) {
      memory m = std::move(free.back());
      free.pop_back();
      return m;
    }
  }
  memory m{gpu::make_memory_file(k_wait_page_name, sizeof(wait_page), "memory that shows waits",
                                 "xio-info --job will not see this PE"),
           nullptr, nullptr};
  void* at = mmap(nullptr, sizeof(wait_page), PROT_READ | PROT_WRITE, MAP_SHARED, m.file.get(), 0);
  if (at == MAP_FAILED) fail(XIO_ERR_NO_MEMORY, "mapping it: {}", errno_text(errno));
  m.page = static_cast<wait_page*>(at);
  m.seen = static_cast<wait_page*>(gpu::show_pages(at, sizeof(wait_page)));
  return m;
}

// A page without its magic number is nobody's.
void wait_book::give_back(memory m) {
  __atomic_store_n(&m.page->magic, 0, __ATOMIC_RELEASE);
  std::memset(m.page, 0, sizeof *m.page);
  const std::lock_guard hold(all_kept().lock);
  all_kept().free.push_back(std::move(m));
}

wait_book::wait_book(const ctx_options& o, const membership& members, const unsigned char* heap,
                     std::uint64_t heap_bytes) {
  try {
    const auto m = std::make_shared<memory>(take());
    seen_ = m->seen;
    page_ = {m->page, [m](wait_page*) { give_back(std::move(*m)); }};
  } catch (const std::exception& e) {
    log::info("xio-info --job will not see what this PE waits for: {}", e.what());
    if (!o.metrics.empty()) counts_.emplace(o.metrics, members, nullptr, false);
    return;
  }
  if (seen_ == nullptr) log::info("xio-info --job will not see waits of kernels: the GPU cannot write to host memory");
  wait_page& p = *page_;
  p.layout = k_wait_page_layout;
  p.bytes = sizeof p;
  p.pid = static_cast<std::uint32_t>(getpid());
  p.pe = static_cast<std::uint32_t>(members.me());
  p.n_pes = static_cast<std::uint32_t>(members.size());
  p.local_pes = static_cast<std::uint32_t>(members.place().local_size);
  p.job = members.job();
  p.ticks_per_ms = gpu::ticks_per_ms();
  p.heap = reinterpret_cast<std::uint64_t>(heap);
  p.heap_bytes = heap_bytes;
  trace::g_shown.store(&p.ops, std::memory_order_release);
  __atomic_store_n(&p.magic, k_wait_page_magic, __ATOMIC_RELEASE);
  try {
    counts_.emplace(o.metrics, members, page_, !trace::file_of(o.trace).empty());
  } catch (const error& e) {
    if (!o.metrics.empty()) throw;
    log::info("xio-info will not see counts of this PE: {}", e.what());
  }
}

void wait_book::show(const counted_queues& q, const char* drive) {
  const auto& [owner, labels, rings, peers, failed_call] = q;
  if (counts_) counts_->add(q);
  for (std::size_t i = 0; seen_ != nullptr && i < rings.size(); ++i) {
    const std::size_t place = dev::k_wait_notes + shown_++ % dev::k_queue_notes;
    dev::wait_note& n = page_->notes[place];
    n.kind = static_cast<std::uint32_t>(dev::call_kind::queue_wait);
    n.pe = i < peers.size() ? static_cast<std::uint32_t>(peers[i]) : dev::k_no_pe;
    n.compare = rings[i].index;
    n.address = static_cast<std::uint64_t>(rings[i].kind) << 32 | rings[i].id;
    if (drive != nullptr) std::snprintf(page_->drives[drive_of(n)], sizeof page_->drives[0], "%s", drive);
    gpu::put_value(&rings[i].state->note, seen_->notes + place);
  }
}

// Readers are other processes, and other threads may store at the same moment: so by words.
wait_book::shown_call::shown_call(std::shared_ptr<wait_page> page, const char* call)
    : page_(std::move(page)), call_(call) {
  if (ranges_ != nullptr) ranges_->push(call);
  if (page_ == nullptr) return;
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  std::uint64_t text[sizeof page_->call / 8] = {};
  std::memcpy(text, call, std::min(std::strlen(call), sizeof text - 1));
  __atomic_store_n(&page_->call_began, now, __ATOMIC_RELAXED);
  for (std::size_t i = 0; i < std::size(text); ++i)
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(page_->call) + i, text[i], __ATOMIC_RELAXED);
}
wait_book::shown_call::~shown_call() {
  if (ranges_ != nullptr) ranges_->pop();
  trace::end({"call", call_, began_});
  if (page_ != nullptr) __atomic_store_n(reinterpret_cast<std::uint64_t*>(page_->call), 0, __ATOMIC_RELAXED);
}

}  // namespace xio
