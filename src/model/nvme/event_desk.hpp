// SPDX-License-Identifier: MIT
// Asynchronous events (NVMe base 2.0, 5.2) and the log that they point to (5.16.1.2).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>

namespace xio::model::nvme {

// All events of this drive are of type Error Status: after one was reported, the next waits until the driver has read
// the error log.
class event_desk {
 public:
  static constexpr std::size_t k_requests = 4, k_log_entries = 16;
  static constexpr std::size_t k_log_bytes = k_log_entries * 64;

  struct event_completion {
    std::uint16_t cid;  // of the Asynchronous Event Request
    std::uint32_t dw0;
  };

  // False: the driver has asked too often.
  bool ask(std::uint16_t cid) {
    if (requests_.size() >= k_requests) return false;
    requests_.push_back(cid);
    return true;
  }
  bool withdraw(std::uint16_t cid) { return std::erase(requests_, cid) != 0; }
  void happen(std::uint32_t dw0) {
    if (events_.size() < k_events_kept) events_.push_back(dw0);
  }
  std::optional<event_completion> next() {
    if (masked_ || requests_.empty() || events_.empty()) return std::nullopt;
    const event_completion t{requests_.front(), events_.front()};
    requests_.pop_front();
    events_.pop_front();
    masked_ = true;
    return t;
  }
  void log_was_read() { masked_ = false; }

  // Newest first, as the log page has them.
  void add(std::uint32_t sqid, std::uint32_t cid, std::uint32_t status, std::uint64_t lba, std::uint32_t nsid) {
    log_.push_front(entry{++errors_, sqid, cid, status, nsid, lba});
    if (log_.size() > k_log_entries) log_.pop_back();
  }
  // k_log_bytes, as 5.16.1.2 has them: count 0-7, SQID 8-9, CID 10-11, status 12-13 (from bit 1), location 14-15
  // (FFFFh: none), LBA 16-23, namespace 24-27.
  void fill_log(std::byte* page) const {
    std::memset(page, 0, k_log_bytes);
    std::byte* at = page;
    for (const entry& e : log_) {
      put_field<std::uint64_t>(at, 0, e.count);
      put_field<std::uint16_t>(at, 8, static_cast<std::uint16_t>(e.sqid));
      put_field<std::uint16_t>(at, 10, static_cast<std::uint16_t>(e.cid));
      put_field<std::uint16_t>(at, 12, static_cast<std::uint16_t>(e.status << 1));
      put_field<std::uint16_t>(at, 14, 0xffff);
      put_field<std::uint64_t>(at, 16, e.lba);
      put_field<std::uint32_t>(at, 24, e.nsid);
      at += 64;
    }
  }
  std::uint64_t recorded() const { return errors_; }

  // The log and its count outlive a reset of the controller.
  void reset() {
    requests_.clear();
    events_.clear();
    masked_ = false;
  }

 private:
  static constexpr std::size_t k_events_kept = 8;

  template <class T>
  static void put_field(std::byte* entry, std::size_t offset, T value) {
    std::memcpy(entry + offset, &value, sizeof value);
  }

  struct entry {
    std::uint64_t count;
    std::uint32_t sqid, cid, status, nsid;
    std::uint64_t lba;
  };

  std::deque<std::uint16_t> requests_;
  std::deque<std::uint32_t> events_;
  bool masked_ = false;
  std::deque<entry> log_;
  std::uint64_t errors_ = 0;
};

}  // namespace xio::model::nvme
