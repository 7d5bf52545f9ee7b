// SPDX-License-Identifier: MIT
#include "model/nvme/shared_calls.hpp"

#include <algorithm>

namespace xio::model::nvme {
namespace {

// How often the owner looks for the helper's last call, which takes as long as one of its own: some microseconds.
constexpr int k_polls = 200;
// One call for fewer costs more than it saves by having both threads at work.
constexpr std::size_t k_few_jobs = 8;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void shared_calls::make(const std::vector<file_job*>& jobs, int flags, mapped_file* pages, std::vector<result>& out) {
  for (std::size_t at = 0; at < jobs.size();) {
    const std::size_t next = offer(jobs, at, flags, pages);
    if (next == at) {  // the helper has all slots
      out.push_back(result{jobs[at], call(fd_, *jobs[at], flags), flags});
      ++at;
      continue;
    }
    at = next;
    take_back(out);
  }
  for (int polls = 0; polls < k_polls && !lent_.empty(); ++polls) {
    collect(out);
    relax();
  }
}

// Gives the first job that found no slot.
std::size_t shared_calls::offer(const std::vector<file_job*>& jobs, std::size_t at, int flags, mapped_file* pages) {
  const std::size_t group = std::clamp((jobs.size() + 1) / 2, k_few_jobs, k_group);
  std::size_t used = 0;
  for (; used < k_slots && at < jobs.size(); ++used) {
    slot& s = slots_[used];
    if (s.lent) continue;  // its last jobs have not come back
    s.flags = flags;
    s.pages = pages != nullptr && pages->fits(*jobs[at]) ? pages : nullptr;
    s.count = 0;
    do {
      s.jobs[s.count++] = jobs[at++];
    } while (s.pages != nullptr && s.count < group && at < jobs.size() && pages->fits(*jobs[at]));
    s.open.store(true, std::memory_order_release);
  }
  offered_.store(used, std::memory_order_release);
  return at;
}

void shared_calls::take_back(std::vector<result>& out) {
  const std::size_t used = offered_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used; ++i) {
    slot& s = slots_[i];
    if (s.lent) continue;
    if (s.open.exchange(false, std::memory_order_acq_rel)) {
      carry_out(s);
      give(s, out);
    } else {
      s.lent = true;
      lent_.push_back(&s);
      lent_jobs_ += s.count;
    }
  }
  offered_.store(0, std::memory_order_relaxed);
}

void shared_calls::carry_out(slot& s) const {
  const std::size_t moved = s.pages != nullptr ? s.pages->move({s.jobs.data(), s.count}) : 0;
  for (std::size_t i = 0; i < s.count; ++i) {
    const file_job& job = *s.jobs[i];
    s.values[i] = i < moved ? static_cast<long>(job.parts[job.part].iov_len) : call(fd_, job, s.flags);
  }
}

void shared_calls::give(const slot& s, std::vector<result>& out) {
  for (std::size_t i = 0; i < s.count; ++i) out.push_back(result{s.jobs[i], s.values[i], s.flags});
}

void shared_calls::collect(std::vector<result>& out) {
  std::erase_if(lent_, [&](slot* s) {
    if (!s->ended.load(std::memory_order_acquire)) return false;
    s->ended.store(false, std::memory_order_relaxed);
    s->lent = false;
    lent_jobs_ -= s->count;
    give(*s, out);
    return true;
  });
}

// From the back, where the owner comes last.
bool shared_calls::help() {
  bool some = false;
  for (std::size_t i = offered_.load(std::memory_order_acquire); i-- > 0;) {
    slot& s = slots_[i];
    if (!s.open.load(std::memory_order_relaxed) || !s.open.exchange(false, std::memory_order_acq_rel)) continue;
    carry_out(s);
    s.ended.store(true, std::memory_order_release);
    some = true;
  }
  return some;
}

}  // namespace xio::model::nvme
