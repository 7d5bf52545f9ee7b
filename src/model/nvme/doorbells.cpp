// SPDX-License-Identifier: MIT
// Doorbells (NVMe base 2.0, 3.1.3.24 and 25) and their shadows (5.8, B.5). A wrong value is an event (5.2,
// Error Status): it is out of range, the same as before, more than there is room for, or of no queue.
#include "base/log.hpp"
#include "model/nvme/controller.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

// Turns from one poll of doorbells without a queue to the next.
constexpr std::uint32_t k_turns_for_strangers = 256;

std::uint32_t before(std::uint32_t index, std::uint32_t entries) { return index == 0 ? entries - 1 : index - 1; }

}  // namespace

bool controller::check_doorbells() {
  bool changed = false;
  for (auto& [qid, sq] : sqs_)
    if (!sq.deleting) changed |= check_tail(qid, sq);
  for (auto& [qid, cq] : cqs_) changed |= check_head(qid, cq);
  if (++turn_ % k_turns_for_strangers == 0) check_strangers();
  return changed;
}

bool controller::check_tail(std::uint32_t qid, submission_queue& sq) {
  const auto written = regs_.take(w::sq_tail_doorbell(qid, shape_.doorbell_stride));
  if (written) count(doorbells_);
  if (sq.shadow.value == nullptr) {
    if (written) set_tail(qid, sq, *written);
    return written.has_value();
  }
  // With a shadow the register only wakes: the drive may have seen this value there already, and a later one.
  if (written && *written >= sq.entries) refuse_doorbell(qid, *written, w::k_event_invalid_doorbell_value);
  if (written) sq.shadow.awake = true;
  return sq.shadow.awake &&
         poll_shadow(sq.shadow, sq.tail, sq.entries, [&](std::uint32_t value) { return set_tail(qid, sq, value); });
}

// Follows a queue's shadow: `set` takes a new value to `at`, or refuses it. True if it took one.
template <class Set>
bool controller::poll_shadow(shadow_words& s, const std::uint32_t& at, std::uint32_t entries, const Set& set) {
  std::uint32_t value = __atomic_load_n(s.value, __ATOMIC_ACQUIRE);
  if (value == at && ++s.idle > shape_.shadow_turns) {
    // To sleep: the driver that moves on from here shall ring. It may have moved before it could see that.
    __atomic_store_n(s.event_index, at, __ATOMIC_SEQ_CST);
    value = __atomic_load_n(s.value, __ATOMIC_SEQ_CST);
    s.awake = value != at;
    s.idle = 0;
  }
  if (value == at || value == s.refused) return false;
  s.idle = 0;
  const bool taken = set(value);
  s.refused = taken ? ~0u : value;
  // Behind `at`: the driver cannot pass it without room that it does not have, so it rings nothing.
  if (taken) __atomic_store_n(s.event_index, before(at, entries), __ATOMIC_RELEASE);
  return taken;
}

bool controller::check_head(std::uint32_t qid, completion_queue& cq) {
  const auto written = regs_.take(w::cq_head_doorbell(qid, shape_.doorbell_stride));
  if (!written) return false;
  count(doorbells_);
  if (cq.shadow.value == nullptr) {
    set_head(qid, cq, *written);
  } else {
    if (*written >= cq.entries) refuse_doorbell(qid, *written, w::k_event_invalid_doorbell_value);
    cq.shadow.awake = true;
  }
  return true;
}

// The queue is full as far as the drive knows. A shadow is only read now: true if there is room.
bool controller::make_room(std::uint32_t qid, completion_queue& cq) {
  return cq.shadow.value != nullptr && cq.shadow.awake &&
         poll_shadow(cq.shadow, cq.head, cq.entries, [&](std::uint32_t value) { return set_head(qid, cq, value); });
}

// Doorbells of queues that are not there.
void controller::check_strangers() {
  for (std::uint32_t qid = 0; qid <= shape_.max_queues; ++qid) {
    if (sqs_.count(qid) == 0)
      if (const auto value = regs_.take(w::sq_tail_doorbell(qid, shape_.doorbell_stride)))
        refuse_doorbell(qid, *value, w::k_event_invalid_doorbell_register);
    if (cqs_.count(qid) == 0)
      if (const auto value = regs_.take(w::cq_head_doorbell(qid, shape_.doorbell_stride)))
        refuse_doorbell(qid, *value, w::k_event_invalid_doorbell_register);
  }
}

// A value that is refused changes nothing.
bool controller::set_tail(std::uint32_t qid, submission_queue& sq, std::uint32_t value) {
  // Free are the entries that the driver can know to be fetched: SQHD of the completions posted so far.
  const std::uint32_t used = (sq.tail + sq.entries - sq.reported) % sq.entries;
  const std::uint32_t added = value >= sq.entries ? 0 : (value + sq.entries - sq.tail) % sq.entries;
  if (added == 0 || used + added > sq.entries - 1) {
    refuse_doorbell(qid, value, w::k_event_invalid_doorbell_value);
    return false;
  }
  sq.tail = value;
  return true;
}

bool controller::set_head(std::uint32_t qid, completion_queue& cq, std::uint32_t value) {
  const std::uint32_t posted = (cq.tail + cq.entries - cq.head) % cq.entries;
  const std::uint32_t consumed = value >= cq.entries ? 0 : (value + cq.entries - cq.head) % cq.entries;
  if (consumed == 0 || consumed > posted) {
    refuse_doorbell(qid, value, w::k_event_invalid_doorbell_value);
    return false;
  }
  cq.head = value;
  return true;
}

void controller::refuse_doorbell(std::uint32_t qid, std::uint32_t value, std::uint32_t dw0) {
  invalid_doorbells_.fetch_add(1, std::memory_order_relaxed);
  if (complaints_++ < 16)
    log::warn("NVMe model: a doorbell of queue {} was written with {:#x}, which cannot be{}", qid, value,
              dw0 == w::k_event_invalid_doorbell_register ? ": there is no such queue" : "");
  events_.add(qid, 0xffff, w::k_ok, 0, 0);
  events_.happen(dw0);
  post_events();
}

// --- Shadows -----------------------------------------------------------------------------------------

void controller::shadow_queue(std::uint32_t qid, submission_queue& sq) const {
  find_shadow(qid, sq.shadow, w::shadow_sq_tail(qid, shape_.doorbell_stride), before(sq.tail, sq.entries));
}

void controller::shadow_queue(std::uint32_t qid, completion_queue& cq) const {
  find_shadow(qid, cq.shadow, w::shadow_cq_head(qid, shape_.doorbell_stride), before(cq.head, cq.entries));
}

// Admin queues have none.
void controller::find_shadow(std::uint32_t qid, shadow_words& s, std::uint32_t at, std::uint32_t event_index) const {
  if (shadow_ == nullptr || qid == 0 || at + 4 > page_) return;
  s.value = reinterpret_cast<const std::uint32_t*>(shadow_ + at);
  s.event_index = reinterpret_cast<std::uint32_t*>(event_index_ + at);
  s.awake = true;
  __atomic_store_n(s.event_index, event_index, __ATOMIC_RELEASE);
}

std::uint32_t controller::configure_doorbell_buffers(const sqe& command) {
  if (!shape_.doorbell_buffers) return w::k_invalid_opcode;
  const std::uint64_t shadow = w::prp1_of(command);
  const std::uint64_t event_index = w::prp2_of(command);
  if (shadow % page_ != 0 || event_index % page_ != 0 || shadow == event_index) return w::k_invalid_field;
  std::byte* values = dma_.host(shadow, page_);
  std::byte* indices = dma_.host(event_index, page_);
  if (values == nullptr || indices == nullptr) return w::k_data_transfer_error;
  shadow_ = values;
  event_index_ = indices;
  for (auto& [qid, sq] : sqs_) shadow_queue(qid, sq);
  for (auto& [qid, cq] : cqs_) shadow_queue(qid, cq);
  return w::k_ok;
}

}  // namespace xio::model::nvme
