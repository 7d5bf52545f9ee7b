// SPDX-License-Identifier: MIT
#include "model/nvme/shared_calls.hpp"

#include <algorithm>

namespace xio::model::nvme {
namespace {

// How often the owner looks for the helper's last call, which takes as long as one of its own: some microseconds.
constexpr int k_looks = 200;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void shared_calls::make(const std::vector<file_job*>& jobs, int flags, std::vector<result>& out) {
  for (std::size_t at = 0; at < jobs.size(); at += k_slots)
    make_some(jobs.data() + at, std::min(k_slots, jobs.size() - at), flags, out);
}

void shared_calls::make_some(file_job* const* jobs, std::size_t count, int flags, std::vector<result>& out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (slots_[i].lent) continue;  // its last job has not come back
    slots_[i].flags = flags;
    slots_[i].open.store(jobs[i], std::memory_order_release);
  }
  offered_.store(count, std::memory_order_release);
  for (std::size_t i = 0; i < count; ++i) {
    slot& s = slots_[i];
    if (s.lent || s.open.exchange(nullptr, std::memory_order_acq_rel) != nullptr) {
      out.push_back(result{jobs[i], call(fd_, *jobs[i], flags), flags});
    } else {
      s.lent = true;
      lent_.push_back(loan{&s, jobs[i]});
    }
  }
  offered_.store(0, std::memory_order_relaxed);
  for (int looks = 0; looks < k_looks && !lent_.empty(); ++looks) {
    collect(out);
    relax();
  }
}

void shared_calls::collect(std::vector<result>& out) {
  std::erase_if(lent_, [&](const loan& l) {
    if (!l.from->ended.load(std::memory_order_acquire)) return false;
    l.from->ended.store(false, std::memory_order_relaxed);
    l.from->lent = false;
    out.push_back(result{l.job, l.from->value, l.from->flags});
    return true;
  });
}

// From the back, where the owner comes last.
bool shared_calls::help() {
  bool some = false;
  for (std::size_t i = offered_.load(std::memory_order_acquire); i-- > 0;) {
    slot& s = slots_[i];
    if (s.open.load(std::memory_order_relaxed) == nullptr) continue;
    const file_job* job = s.open.exchange(nullptr, std::memory_order_acq_rel);
    if (job == nullptr) continue;
    s.value = call(fd_, *job, s.flags);
    s.ended.store(true, std::memory_order_release);
    some = true;
  }
  return some;
}

}  // namespace xio::model::nvme
