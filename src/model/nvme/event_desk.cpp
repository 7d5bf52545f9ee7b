// SPDX-License-Identifier: MIT
#include "model/nvme/event_desk.hpp"

#include <cstring>

namespace xio::model::nvme {
namespace {

constexpr std::size_t k_events_kept = 8;

template <class T>
void put_field(std::byte* entry, std::size_t offset, T value) {
  std::memcpy(entry + offset, &value, sizeof value);
}

}  // namespace

bool event_desk::ask(std::uint16_t cid) {
  if (requests_.size() >= k_requests) return false;
  requests_.push_back(cid);
  return true;
}

bool event_desk::withdraw(std::uint16_t cid) { return std::erase(requests_, cid) != 0; }

void event_desk::happen(std::uint32_t dw0) {
  if (events_.size() < k_events_kept) events_.push_back(dw0);
}

std::optional<event_desk::event_completion> event_desk::next() {
  if (masked_ || requests_.empty() || events_.empty()) return std::nullopt;
  const event_completion t{requests_.front(), events_.front()};
  requests_.pop_front();
  events_.pop_front();
  masked_ = true;
  return t;
}

void event_desk::add(std::uint32_t sqid, std::uint32_t cid, std::uint32_t status, std::uint64_t lba,
                     std::uint32_t nsid) {
  log_.push_front(entry{++errors_, sqid, cid, status, nsid, lba});
  if (log_.size() > k_log_entries) log_.pop_back();
}

// 5.16.1.2: count 0-7, SQID 8-9, CID 10-11, status 12-13 (from bit 1), location 14-15 (FFFFh: none), LBA 16-23,
// namespace 24-27.
void event_desk::fill_log(std::byte* page) const {
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

// The log and its count outlive a reset of the controller.
void event_desk::reset() {
  requests_.clear();
  events_.clear();
  masked_ = false;
}

}  // namespace xio::model::nvme
