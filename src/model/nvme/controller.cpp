// SPDX-License-Identifier: MIT
// Registers, doorbells, fetching and completing (NVMe base 2.0, 3.1 to 3.3).
#include "model/nvme/controller.hpp"

#include <cstring>

#include "base/log.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

// Commands taken from one queue in one turn, so that no queue starves the others.
constexpr std::uint32_t k_fetch_at_once = 64;
constexpr std::size_t k_events_kept = 8;

}  // namespace

std::size_t controller::bar_bytes(const shape& s) {
  const std::size_t end = w::cq_head_doorbell(s.max_queues, s.doorbell_stride) + 4;
  return (end + k_page - 1) / k_page * k_page;
}

controller::controller(void* bar, const shape& s, file& backing, const payload_agent& payload)
    : bar_(static_cast<std::byte*>(bar)), shape_(s), file_(backing), payload_(payload) {
  engine_ = s.plain_io ? make_plain_engine(backing.fd()) : make_file_engine(backing.fd());
  const std::uint64_t cap = w::make_cap(s.max_entries - 1, true, 20, s.doorbell_stride, 0, 0);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(bar_ + w::k_reg_cap), cap, __ATOMIC_RELEASE);
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + w::k_reg_vs), 0x00020000u, __ATOMIC_RELEASE);
}

// The engine ends what is in flight before the jobs and their buffers go.
controller::~controller() { engine_.reset(); }

void controller::shuffle(std::uint64_t seed) { shuffle_seed_.store(seed, std::memory_order_relaxed); }

std::uint32_t controller::read32(std::uint32_t offset) const {
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(bar_ + offset), __ATOMIC_ACQUIRE);
}

std::uint64_t controller::read64(std::uint32_t offset) const {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(bar_ + offset), __ATOMIC_ACQUIRE);
}

void controller::write_csts(std::uint32_t value) {
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + w::k_reg_csts), value, __ATOMIC_RELEASE);
}

bool controller::poll() {
  bool worked = check_registers();
  worked |= reap_file();
  if (!enabled_ || dead_) return worked;
  for (const std::uint32_t qid : dead_queues_) sqs_.erase(qid);
  dead_queues_.clear();
  worked |= check_doorbells();
  for (auto& [qid, sq] : sqs_)
    if (enabled_ && !dead_) worked |= fetch(qid);
  worked |= start_late();
  engine_->kick();
  worked |= reap_file();
  worked |= post_answers();
  return worked;
}

// --- Registers ---------------------------------------------------------------------------------------

bool controller::check_registers() {
  const std::uint32_t cc = read32(w::k_reg_cc);
  const bool want = (cc & w::k_cc_en) != 0;
  if (want != enabled_) {
    if (want) {
      enable(cc);
    } else {
      // Reset: what is with the file ends first, its memory may be gone afterwards.
      if (in_file_ != 0) return false;
      forget_everything();
      write_csts(0);
    }
    return true;
  }
  if (enabled_ && !dead_ && w::cc_shn(cc) != 0 && !shut_down_ && in_file_ == 0) {
    shut_down_ = true;
    write_csts(read32(w::k_reg_csts) | w::k_csts_shst_complete);
    return true;
  }
  return false;
}

void controller::enable(std::uint32_t cc) {
  enabled_ = true;
  const std::uint32_t aqa = read32(w::k_reg_aqa);
  const std::uint32_t sq_entries = w::aqa_sq_entries(aqa);
  const std::uint32_t cq_entries = w::aqa_cq_entries(aqa);
  const std::uint64_t asq = read64(w::k_reg_asq);
  const std::uint64_t acq = read64(w::k_reg_acq);
  const std::byte* sq = dma_.host(asq, std::uint64_t{sq_entries} * sizeof(w::sqe));
  std::byte* cq = dma_.host(acq, std::uint64_t{cq_entries} * sizeof(w::cqe));
  const bool sound = w::cc_css(cc) == 0 && w::cc_mps(cc) == 0 && sq_entries >= 2 && cq_entries >= 2 &&
                     asq % k_page == 0 && acq % k_page == 0 && sq != nullptr && cq != nullptr;
  if (!sound) {
    log::warn("NVMe model: enabled with CC {:#x}, AQA {:#x}, ASQ {:#x}, ACQ {:#x}, which cannot be", cc, aqa, asq, acq);
    die();
    return;
  }
  cqs_[0].base = cq;
  cqs_[0].entries = cq_entries;
  cqs_[0].users = 1;
  sqs_[0].base = sq;
  sqs_[0].entries = sq_entries;
  write_csts(w::k_csts_rdy);
}

void controller::forget_everything() {
  enabled_ = dead_ = shut_down_ = false;
  granted_sqs_ = granted_cqs_ = 0;
  dead_queues_.clear();
  sqs_.clear();
  cqs_.clear();
  event_requests_.clear();
  events_.clear();
  answers_.clear();
  held_.clear();
  late_.clear();
  std::memset(bar_ + w::k_reg_doorbells, 0, bar_bytes(shape_) - w::k_reg_doorbells);
}

void controller::die() {
  dead_ = true;
  write_csts(read32(w::k_reg_csts) | w::k_csts_cfs);
}

// --- Doorbells ---------------------------------------------------------------------------------------

// Plain memory: a second write of the same value cannot be seen. Everything else that is forbidden is.
bool controller::check_doorbells() {
  bool changed = false;
  for (auto& [qid, sq] : sqs_) {
    const std::uint32_t value = read32(w::sq_tail_doorbell(qid, shape_.doorbell_stride));
    if (!sq.deleting && value != sq.tail) changed |= take_sq_tail(qid, value);
  }
  for (auto& [qid, cq] : cqs_) {
    const std::uint32_t value = read32(w::cq_head_doorbell(qid, shape_.doorbell_stride));
    if (value != cq.head) changed |= take_cq_head(qid, value);
  }
  return changed;
}

bool controller::take_sq_tail(std::uint32_t qid, std::uint32_t value) {
  submission_queue& sq = sqs_[qid];
  // Free are the entries that the driver can know to be fetched: SQHD of the completions posted so far.
  const std::uint32_t used = (sq.tail + sq.entries - sq.reported) % sq.entries;
  const std::uint32_t added = (value % sq.entries + sq.entries - sq.tail) % sq.entries;
  if (value >= sq.entries || used + added > sq.entries - 1) {
    // Put back what was valid, so that one wrong value is one event, and do it first: who has seen the event may write
    // again.
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + w::sq_tail_doorbell(qid, shape_.doorbell_stride)), sq.tail,
                     __ATOMIC_RELEASE);
    event(w::k_event_invalid_doorbell_value);
    return true;
  }
  sq.tail = value;
  return true;
}

bool controller::take_cq_head(std::uint32_t qid, std::uint32_t value) {
  completion_queue& cq = cqs_[qid];
  const std::uint32_t posted = (cq.tail + cq.entries - cq.head) % cq.entries;
  const std::uint32_t consumed = (value + cq.entries - cq.head) % cq.entries;
  if (value >= cq.entries || consumed > posted) {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + w::cq_head_doorbell(qid, shape_.doorbell_stride)), cq.head,
                     __ATOMIC_RELEASE);
    event(w::k_event_invalid_doorbell_value);
    return true;
  }
  cq.head = value;
  return true;
}

void controller::event(std::uint32_t dw0) {
  invalid_doorbells_.fetch_add(1, std::memory_order_relaxed);
  log::warn("NVMe model: a doorbell was written with a value that cannot be");
  if (events_.size() < k_events_kept) events_.push_back(dw0);
  if (event_requests_.empty()) return;
  const std::uint16_t cid = event_requests_.front();
  event_requests_.pop_front();
  finish(0, cid, w::k_ok, events_.front());
  events_.pop_front();
}

// --- Commands in, completions out --------------------------------------------------------------------

bool controller::fetch(std::uint32_t qid) {
  submission_queue& sq = sqs_[qid];
  std::uint32_t n = 0;
  while (sq.head != sq.tail && n < k_fetch_at_once && !engine_->full() && !sq.deleting) {
    sqe command;
    std::memcpy(&command, sq.base + std::size_t{sq.head} * sizeof command, sizeof command);
    sq.head = sq.head + 1 == sq.entries ? 0 : sq.head + 1;
    ++n;
    commands_.fetch_add(1, std::memory_order_relaxed);
    const std::uint16_t cid = w::cid_of(command);
    if (sq.taken[cid]) {
      // Answered at once and not counted as in flight: the id belongs to the other command.
      answers_.push_back(answer{qid, cid, w::k_cid_conflict | w::k_status_dnr, 0});
      continue;
    }
    sq.taken[cid] = true;
    if (qid == 0)
      execute_admin(command);
    else
      execute_io(qid, command);
  }
  return n != 0;
}

void controller::finish(std::uint32_t sqid, std::uint16_t cid, std::uint32_t status, std::uint32_t result) {
  answers_.push_back(answer{sqid, cid, status, result});
}

bool controller::post_answers() {
  if (release_.exchange(false, std::memory_order_acq_rel)) {
    answers_.insert(answers_.end(), held_.begin(), held_.end());
    held_.clear();
  }
  if (answers_.empty()) return false;
  const std::uint64_t seed = shuffle_seed_.load(std::memory_order_relaxed);
  if (seed != shuffle_now_) {
    shuffle_now_ = seed;
    random_.seed(seed);
  }
  // A shuffled drive keeps some back for a later turn: they meet younger ones.
  std::size_t most = answers_.size();
  if (seed != 0) {
    for (std::size_t i = answers_.size() - 1; i > 0; --i) std::swap(answers_[i], answers_[random_() % (i + 1)]);
    most = random_() % (answers_.size() + 1);
  }
  bool posted = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    const answer a = answers_[i];
    if (i < most && post(a)) {
      posted = true;
      continue;
    }
    answers_[kept++] = a;
  }
  answers_.resize(kept);
  return posted || seed != 0;
}

// False: the completion queue is full.
bool controller::post(const answer& a) {
  submission_queue& sq = sqs_[a.sqid];
  completion_queue& cq = cqs_[sq.cqid];
  const std::uint32_t next = cq.tail + 1 == cq.entries ? 0 : cq.tail + 1;
  if (next == cq.head) return false;
  const w::cqe e = w::make_cqe(a.result, sq.head, a.sqid, a.cid, cq.phase, a.status);
  // Before the driver can see the completion and take the id again.
  if (w::status_code(a.status) != w::k_cid_conflict) sq.taken[a.cid] = false;
  sq.reported = sq.head;
  auto* out = reinterpret_cast<std::uint32_t*>(cq.base + std::size_t{cq.tail} * sizeof e);
  for (int i = 0; i < 3; ++i) __atomic_store_n(&out[i], e.dw[i], __ATOMIC_RELAXED);
  // The phase tag last; everything before it, data included, is visible with it.
  __atomic_store_n(&out[3], e.dw[3], __ATOMIC_RELEASE);
  cq.tail = next;
  if (next == 0) cq.phase ^= 1;
  return true;
}

}  // namespace xio::model::nvme
