// SPDX-License-Identifier: MIT
// Asynchronous events (NVMe base 2.0, 5.2) and the log that they point to (5.16.1.2).
#pragma once
#include <cstddef>
#include <cstdint>
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
  bool ask(std::uint16_t cid);
  bool withdraw(std::uint16_t cid);
  void happen(std::uint32_t dw0);
  std::optional<event_completion> next();
  void log_was_read() { masked_ = false; }

  // Newest first, as the log page has them.
  void add(std::uint32_t sqid, std::uint32_t cid, std::uint32_t status, std::uint64_t lba, std::uint32_t nsid);
  void fill_log(std::byte* page) const;  // k_log_bytes
  std::uint64_t recorded() const { return errors_; }

  void reset();

 private:
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
