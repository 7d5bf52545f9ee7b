// SPDX-License-Identifier: MIT
#include "ctx/wait_book.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/membership.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory_file.hpp"

namespace xio {

namespace {

// Kernels that still run keep it.
void unmap(wait_page* page) {
  if (gpu::hide_pages(page)) munmap(page, sizeof *page);
}

}  // namespace

wait_book::wait_book(const membership& members, const unsigned char* heap, std::uint64_t heap_bytes) {
  try {
    file_ = gpu::make_memory_file(k_wait_page_name, sizeof(wait_page), "memory that shows waits",
                                  "xio-info --job will not see this PE");
    void* at = mmap(nullptr, sizeof(wait_page), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED) fail(XIO_ERR_NO_MEMORY, "mapping it: {}", errno_text(errno));
    page_ = {static_cast<wait_page*>(at), unmap};
  } catch (const std::exception& e) {
    file_.reset();
    log::info("xio-info --job will not see what this PE waits for: {}", e.what());
    return;
  }
  seen_ = static_cast<wait_page*>(gpu::show_pages(page_.get(), sizeof(wait_page)));
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
  __atomic_store_n(&p.magic, k_wait_page_magic, __ATOMIC_RELEASE);
}

void wait_book::show(const std::vector<dev::ring_view>& rings, const std::vector<int>& peers, const char* drive) {
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
wait_book::shown_call::shown_call(std::shared_ptr<wait_page> page, const char* call) : page_(std::move(page)) {
  if (page_ == nullptr) return;
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  std::uint64_t text[sizeof page_->call / 8] = {};
  std::memcpy(text, call, std::min(std::strlen(call), sizeof text - 1));
  __atomic_store_n(&page_->call_began, now, __ATOMIC_RELAXED);
  for (std::size_t i = 0; i < std::size(text); ++i)
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(page_->call) + i, text[i], __ATOMIC_RELAXED);
}
wait_book::shown_call::~shown_call() {
  if (page_ != nullptr) __atomic_store_n(reinterpret_cast<std::uint64_t*>(page_->call), 0, __ATOMIC_RELAXED);
}

}  // namespace xio
