// SPDX-License-Identifier: MIT
// An I/O queue pair that the module hands out, polled. Layouts: NVM Express Base Specification 2.0, figures 86 and 91.
#pragma once
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "kmod_rig.hpp"

namespace kmod {

struct command {
  std::uint32_t dw0 = 0, nsid = 1;
  std::uint64_t reserved = 0, metadata = 0, prp1 = 0, prp2 = 0;
  std::uint32_t dw10 = 0, dw11 = 0, dw12 = 0, dw13 = 0, dw14 = 0, dw15 = 0;
};
static_assert(sizeof(command) == 64);

struct completion {
  std::uint32_t dw0, dw1, sq, status;
};
static_assert(sizeof(completion) == 16);

struct block {
  block(int fd, const xio_kmod_pci& device, std::size_t bytes) : a(memory_of(device, bytes)) {
    CHECK(ioctl(fd, XIO_KMOD_MEMORY, &a) == 0);
    memory = map(fd, a.offset, bytes);
    CHECK(memory != MAP_FAILED);
  }
  block& operator=(block&&) = delete;
  ~block() { munmap(memory, a.bytes); }
  xio_kmod_memory a;
  void* memory = nullptr;
};

inline constexpr std::uint32_t k_entries = 8;  // laps often

// A queue's place: the module's memory, or an offset in a buffer that is pinned.
struct queue_place {
  std::uint32_t handle;
  std::uint64_t offset;
  void* memory;
};

class queue_pair {
 public:
  queue_pair(int fd, const xio_kmod_pci& device)
      : sq_(std::in_place, fd, device, k_page), cq_(std::in_place, fd, device, k_page) {
    make(fd, device, {sq_->a.handle, 0, sq_->memory}, {cq_->a.handle, 0, cq_->memory});
  }
  queue_pair(int fd, const xio_kmod_pci& device, const queue_place& sq, const queue_place& cq) {
    make(fd, device, sq, cq);
  }
  void make(int fd, const xio_kmod_pci& device, const queue_place& sq, const queue_place& cq) {
    commands_ = static_cast<command*>(sq.memory);
    completions_ = static_cast<completion*>(cq.memory);
    a.device = device;
    a.sq_memory = sq.handle;
    a.cq_memory = cq.handle;
    a.sq_offset = sq.offset;
    a.cq_offset = cq.offset;
    a.sq_entries = a.cq_entries = k_entries;
    status = ioctl(fd, XIO_KMOD_QUEUE_PAIR, &a) == 0 ? 0 : errno;
    if (status == 0) doorbells = static_cast<unsigned char*>(map(fd, a.offset, k_page));
    CHECK(status != 0 || doorbells != MAP_FAILED);
  }
  queue_pair& operator=(queue_pair&&) = delete;
  ~queue_pair() {
    if (status == 0) munmap(doorbells, k_page);
  }

  void submit(command c) {
    c.dw0 |= static_cast<std::uint32_t>(++cid_) << 16;
    std::memcpy(commands_ + tail_, &c, sizeof c);
    tail_ = (tail_ + 1) % k_entries;
    ring(a.sq_doorbell, tail_);
  }
  // The status field without the phase; 0xffff: nothing came.
  std::uint32_t wait() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    volatile completion* entry = completions_ + head_;
    while (((entry->status >> 16) & 1) != phase_) {
      if (std::chrono::steady_clock::now() > limit) return 0xffff;
      std::this_thread::yield();
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::uint32_t word = entry->status;
    CHECK((word & 0xffff) == cid_);
    CHECK(entry->sq >> 16 == a.queue);
    head_ = (head_ + 1) % k_entries;
    if (head_ == 0) phase_ ^= 1;
    ring(a.cq_doorbell, head_);
    return word >> 17;
  }
  std::uint32_t run(const command& c) {
    submit(c);
    return wait();
  }

  int status = 0;
  xio_kmod_queue_pair a{};
  unsigned char* doorbells = nullptr;
  const block& sq() const { return *sq_; }

 private:
  void ring(std::uint32_t offset, std::uint32_t value) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    *reinterpret_cast<volatile std::uint32_t*>(doorbells + offset) = value;
  }
  std::optional<block> sq_, cq_;
  command* commands_ = nullptr;
  completion* completions_ = nullptr;
  std::uint32_t tail_ = 0, head_ = 0, phase_ = 1;
  std::uint16_t cid_ = 0;
};

// A dma-buf that a device reaches, by place.
class pinned {
 public:
  pinned(int fd, const xio_kmod_pci& device, const buffer& b) : a(pin_of(device, b.fd())) {
    CHECK(ioctl(fd, XIO_KMOD_PIN, &a) == 0);
    list_ = segments(fd, a.handle, a.segments);
  }
  std::uint64_t address(std::uint64_t offset) const {
    for (const auto& s : list_) {
      if (offset < s.bytes) return s.address + offset;
      offset -= s.bytes;
    }
    CHECK(!"an offset inside");
    return 0;
  }
  xio_kmod_pin a;

 private:
  std::vector<xio_kmod_segment> list_;
};

}  // namespace kmod
