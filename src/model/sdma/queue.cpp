// SPDX-License-Identifier: MIT
#include "model/sdma/queue.hpp"

#include "base/log.hpp"
#include "model/sdma/words.hpp"

namespace xio::model::sdma {
namespace {

using clock = std::chrono::steady_clock;

// Bounds of one turn, so that one thread can play many queues and nobody waits long for his.
constexpr unsigned k_packets_a_turn = 64;
constexpr std::uint64_t k_bytes_a_turn = 1u << 20;
// Moves that may run beside each other, and how much of one runs before another may.
constexpr std::size_t k_window = 8;
constexpr std::uint64_t k_slice = 256u << 10;
// Of copies that travel by themselves, where a turn waits for them once; so long that the wait is nothing beside it.
constexpr std::uint64_t k_travelling_slice = 64u << 20;
constexpr std::uint64_t k_travelling_bytes_a_turn = 512u << 20;
constexpr unsigned k_travelling_packets_a_turn = 256;
constexpr std::uint64_t k_travelling_row_cost = 16u << 10;
constexpr std::uint64_t k_row_cost = 64;  // bytes that a short row counts as

std::uint64_t read_acquire(const std::uint64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }

}  // namespace

queue::queue(std::uint32_t number, const queue_memory& memory, std::uint64_t seed, move_faults faults)
    : number_(number),
      memory_(memory),
      random_(seed | 1),
      announced_(memory.start),
      next_(memory.start),
      faults_(std::move(faults)) {
  window_.reserve(k_window);
}

bool queue::poll_doorbell() {
  const std::uint64_t announced = read_acquire(memory_.doorbell);
  if (announced == announced_) return true;
  fault f = fault::none;
  if (announced < announced_) {
    f = fault::pointer_backwards;
  } else if (announced % 4 != 0) {
    f = fault::pointer_unaligned;
  } else if (announced - next_ > memory_.ring_bytes) {
    f = fault::pointer_beyond_ring;
  } else if (read_acquire(memory_.wptr) < announced) {
    // Ahead is right: the next round of wptr and doorbell may be half done.
    f = fault::pointer_not_stored;
  }
  if (f != fault::none) {
    // Packets announced before the mistake still count.
    if (!window_.empty() || next_ != announced_ || !fences_.empty()) return true;
    stop(f, announced_ / 4, announced);
    return false;
  }
  announced_ = announced;
  return true;
}

bool queue::at_rest() const {
  if (stopped_) return true;
  return window_.empty() && fences_.empty() && !travelling_ && next_ == announced_ &&
         read_acquire(memory_.doorbell) == announced_;
}

bool queue::turn(const surroundings& around) {
  if (stopped_) return false;
  if (window_.empty() && next_ == announced_ && read_acquire(memory_.doorbell) == announced_) return false;
  if (!poll_doorbell()) return true;
  const bool worked = work(around);
  if (memory_.rptr != nullptr) __atomic_store_n(memory_.rptr, next_, __ATOMIC_RELEASE);
  // A thread that unmaps memory waits for turns to end, and for nothing that they have begun.
  complete_now(around);
  return worked;
}

void queue::complete_now(const surroundings& around) {
  if (!travelling_) return;
  while (!fences_.empty()) store_fences(around);
  around.payload.finish();
  travelling_ = false;
}

void queue::store_fences(const surroundings& around) {
  for (; !fences_.empty() && around.payload.reached(fences_.front().mark); fences_.pop_front()) {
    const late_fence& f = fences_.front();
    word{around.payload, f.kind, f.address, 4}.store(f.value);
  }
}

bool queue::watch_travellers(const surroundings& around) {
  store_fences(around);
  if (fences_.empty()) return false;
  // A producer that saw the last word may have posted more, which should not wait for all that is under way.
  return poll_doorbell();
}

bool queue::work(const surroundings& around) {
  const bool travels = around.payload.copy_later != nullptr;
  const std::uint64_t most_bytes = travels ? k_travelling_bytes_a_turn : k_bytes_a_turn;
  const unsigned most_packets = travels ? k_travelling_packets_a_turn : k_packets_a_turn;
  bool worked = false;
  unsigned packets = 0;
  std::uint64_t bytes = 0;
  while (packets < most_packets && bytes < most_bytes) {
    store_fences(around);
    // Read ahead, so that copies that could overlap do.
    bool waits = false;
    while (!draining_ && next_ != announced_ && window_.size() < k_window && packets < most_packets) {
      const outcome o = issue(around);
      if (o == outcome::stopped) return true;
      if (o == outcome::drain) draining_ = true;
      if (o == outcome::complete_now) complete_now(around);
      waits = o == outcome::waits;
      if (o != outcome::done) break;
      ++packets;
      worked = true;
    }
    if (window_.empty()) {
      if (draining_) {
        draining_ = false;
        around.payload.fence();
        continue;
      }
      if (waits) break;
      if (next_ == announced_ && !watch_travellers(around)) break;
      continue;
    }
    const std::uint64_t moved = run_slice(around);
    bytes += moved;
    if (stopped_) return true;
    if (moved == 0) break;
    worked = true;
  }
  return worked;
}

std::uint64_t queue::run_slice(const surroundings& around) {
  // xorshift64: any order will do, as long as a seed gives it again.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const std::size_t pick = random_ % window_.size();
  move& m = window_[pick];
  if (m.not_before != clock::time_point{} && clock::now() < m.not_before) return 0;
  const std::uint64_t rows = m.size.height * m.size.depth;
  const bool reads = m.data.empty();
  const bool travels = reads && around.payload.copy_later != nullptr;
  const std::uint64_t slice = travels ? k_travelling_slice : k_slice;
  const auto copy = travels ? around.payload.copy_later : around.payload.copy;
  travelling_ |= travels;
  // Of moves behind a fence only those that travel come after those before it by themselves.
  if (!travels && !fences_.empty()) complete_now(around);
  std::uint64_t cost = 0;
  while (m.row != rows && cost < slice) {
    const std::uint64_t to = m.dst.row(m.row, m.size) + m.done;
    const std::uint64_t from = m.src.row(m.row, m.size) + m.done;
    const std::uint64_t bytes = std::min(reads ? slice : m.data.size() * 4, m.size.width - m.done);
    // Looked up again: it may have been unmapped since the packet was read.
    if (around.map.find(to, bytes) == nullptr || (reads && around.map.find(from, bytes) == nullptr)) {
      complete_now(around);
      stop(fault::not_mapped, m.dword, to);
      return cost;
    }
    const void* data = reads ? reinterpret_cast<const void*>(from) : m.data.data();
    if (!reads || from != to) copy(reinterpret_cast<void*>(to), data, bytes);
    cost += std::max(bytes, travels ? k_travelling_row_cost : k_row_cost);
    m.done += bytes;
    if (m.done == m.size.width) {
      m.done = 0;
      ++m.row;
    }
  }
  if (m.row == rows) {
    trace::end({"engine", reads ? "copy" : "fill", m.began, m.size.width * rows, trace::k_none, number_});
    if (&m != &window_.back()) m = std::move(window_.back());
    window_.pop_back();
  }
  return cost;
}

queue::outcome queue::stop(fault f, std::uint64_t dword, std::uint64_t value) {
  stopped_ = true;
  window_.clear();
  log::error(
      "SDMA model queue {}: stopped at dword {} ({:#x}): {}; it takes no more work, and waits on it fail with vendor "
      "code {}",
      number_, dword, value, text_of(f), static_cast<std::uint32_t>(f));
  if (memory_.report != nullptr) {
    __atomic_store_n(memory_.report + 1, static_cast<std::uint32_t>(dword), __ATOMIC_RELAXED);
    __atomic_store_n(memory_.report, static_cast<std::uint32_t>(f), __ATOMIC_RELEASE);
  }
  return outcome::stopped;
}

queue::outcome queue::refuse(const std::uint32_t* dw, verdict v) {
  if (!window_.empty()) return outcome::drain;
  return travelling_ ? outcome::complete_now : stop(v.what, next_dword() + v.dword, dw[v.dword]);
}

fault queue::whole(std::uint64_t dwords) const {
  const std::uint64_t bytes = dwords * 4;
  if ((next_ & (memory_.ring_bytes - 1)) + bytes > memory_.ring_bytes) return fault::straddle;
  if (bytes > announced_ - next_) return fault::cut_short;
  return fault::none;
}

queue::outcome queue::finish(std::uint64_t dwords) {
  next_ += dwords * 4;
  polls_ = 0;
  next_poll_ = {};
  return outcome::done;
}

queue::outcome queue::keep(move&& m, std::uint64_t dwords) {
  const std::uint64_t nth = moves_++;
  const auto is_late = [&](const move_faults::late& l) { return l.nth == nth; };
  if (const auto late = std::ranges::find_if(faults_.delayed, is_late); late != faults_.delayed.end())
    m.not_before = clock::now() + late->wait;
  if (std::ranges::find(faults_.lost, nth) == faults_.lost.end()) window_.push_back(std::move(m));
  return finish(dwords);
}

}  // namespace xio::model::sdma
