// SPDX-License-Identifier: MIT
// Registers, fetching and completing (NVMe base 2.0, 3.1 to 3.3).
#include "model/nvme/controller.hpp"

#include "base/log.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

// Commands taken from one queue in one turn, so that no queue starves the others.
constexpr std::uint32_t k_fetch_at_once = 64;
// One thread does at most so many of them alone: a wave that posted 64 has the completions of the first half while the
// second half is done.
constexpr std::uint32_t k_alone_at_once = 32;
constexpr std::uint32_t k_version = 0x00020000;

}  // namespace

std::size_t controller::bar_bytes(const shape& s) {
  const std::size_t end = w::cq_head_doorbell(s.max_queues, s.doorbell_stride) + 4;
  return (end + k_page - 1) / k_page * k_page;
}

controller::controller(void* bar, const shape& s, file& backing, const payload_agent& payload,
                       std::unique_ptr<file_engine> engine)
    : regs_(bar), shape_(s), file_(backing), payload_(payload), engine_(std::move(engine)) {
  if (engine_ == nullptr) {
    engine_ = s.plain_io ? make_plain_engine(backing.fd()) : make_file_engine(backing.fd());
    if (!payload_.direct) engine_ = make_staged_engine(std::move(engine_), payload_);
  }
  cap_ = w::make_cap(s.max_entries - 1, s.contiguous, 20, s.doorbell_stride, 0, s.max_page_shift);
  regs_.write64(w::k_reg_cap, cap_);
  regs_.write32(w::k_reg_vs, k_version);
}

// The engine ends what is in flight before the jobs and their buffers go.
controller::~controller() { engine_.reset(); }

void controller::inject(const fault_plan& plan) {
  faults_.seed(plan.seed);
  for (const fault& f : plan.faults) faults_.add(f);
  if (plan.shuffle) shuffle(plan.seed == 0 ? 1 : plan.seed);
}

void controller::shuffle(std::uint64_t seed) { shuffle_seed_.store(seed, std::memory_order_relaxed); }

bool controller::poll() {
  bool worked = check_registers();
  worked |= reap_file();
  note_removals();
  if (!ready_ || dead_ || shut_down_) return worked;
  if (is_set(kill_)) die("it was told to");
  for (const std::uint32_t qid : dead_queues_) sqs_.erase(qid);
  dead_queues_.clear();
  if (dma_.removals() != removals_) {
    removals_ = dma_.removals();
    if (!has_its_memory()) {
      note_dma_fault("a queue or its shadows");
      die("memory of its queues was unmapped");
      return true;
    }
  }
  worked |= check_doorbells();
  const std::uint32_t before = std::exchange(alone_, 0);
  bool fetched = false;
  for (auto& [qid, sq] : sqs_)
    if (!dead_) fetched |= fetch(qid, sq);
  if (!fetched) alone_ = before;
  worked |= fetched;
  if (!dead_) worked |= start_late();
  engine_->kick();
  worked |= reap_file();
  if (!dead_) worked |= post_completions();
  return worked;
}

// A shadowed queue that looks at its value by itself is written without a doorbell.
bool controller::at_rest(sleeper::descriptors&) {
  if (enabled_ && !ready_ && !dead_) return false;
  const auto rests = [](const auto& queue) {
    return queue.second.shadow.value == nullptr || !queue.second.shadow.awake;
  };
  return in_file_ == 0 && completions_.empty() && held_.empty() && late_.empty() &&
         std::ranges::all_of(
             sqs_, [&](const auto& q) { return rests(q) && q.second.head == q.second.tail && !q.second.deleting; });
}

// --- Registers ---------------------------------------------------------------------------------------

void controller::write_csts(std::uint32_t value) {
  csts_ = value;
  regs_.write32(w::k_reg_csts, value);
}

// A driver's write to a register that it may only read does nothing.
void controller::publish_registers() {
  if (regs_.read32(w::k_reg_csts) != csts_) regs_.write32(w::k_reg_csts, csts_);
  if (regs_.read64(w::k_reg_cap) != cap_) regs_.write64(w::k_reg_cap, cap_);
  if (regs_.read32(w::k_reg_vs) != k_version) regs_.write32(w::k_reg_vs, k_version);
}

bool controller::check_registers() {
  publish_registers();
  const std::uint32_t cc = regs_.read32(w::k_reg_cc);
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
  if (!enabled_ || dead_) return false;
  if (!ready_) return become_ready();
  // AMS, MPS and CSS stay as they are while the drive is enabled (3.1.3.5).
  if (((cc ^ cc_) & w::k_cc_fixed_mask) != 0) {
    die("CC was changed while it is enabled");
    return true;
  }
  if (w::cc_shn(cc) != 0 && !shut_down_ && in_file_ == 0) {
    shut_down_ = true;
    write_csts(csts_ | w::k_csts_shst_complete);
    return true;
  }
  return false;
}

void controller::enable(std::uint32_t cc) {
  enabled_ = true;
  cc_ = cc;
  page_ = k_page << w::cc_mps(cc);
  const std::uint32_t aqa = regs_.read32(w::k_reg_aqa);
  const std::uint32_t sq_entries = w::aqa_sq_entries(aqa);
  const std::uint32_t cq_entries = w::aqa_cq_entries(aqa);
  const std::uint64_t asq = regs_.read64(w::k_reg_asq);
  const std::uint64_t acq = regs_.read64(w::k_reg_acq);
  std::byte* sq = dma_.host(asq, std::uint64_t{sq_entries} * sizeof(w::sqe));
  std::byte* cq = dma_.host(acq, std::uint64_t{cq_entries} * sizeof(w::cqe));
  const bool sound = (cc & w::k_cc_reserved) == 0 && w::cc_css(cc) == 0 && w::cc_ams(cc) == 0 && w::cc_shn(cc) == 0 &&
                     w::cc_mps(cc) <= shape_.max_page_shift && (aqa & w::k_aqa_reserved) == 0 && sq_entries >= 2 &&
                     cq_entries >= 2 && asq % page_ == 0 && acq % page_ == 0 && sq != nullptr && cq != nullptr;
  if (!sound) {
    log::warn("NVMe model: enabled with CC {:#x}, AQA {:#x}, ASQ {:#x}, ACQ {:#x}, which cannot be", cc, aqa, asq, acq);
    die("it was enabled wrongly");
    return;
  }
  cqs_[0].memory = queue_memory(cq);
  cqs_[0].entries = cq_entries;
  cqs_[0].users = 1;
  sqs_[0].memory = queue_memory(sq);
  sqs_[0].entries = sq_entries;
  for (std::uint32_t qid = 0; qid <= shape_.max_queues; ++qid) {
    regs_.forget(w::sq_tail_doorbell(qid, shape_.doorbell_stride));
    regs_.forget(w::cq_head_doorbell(qid, shape_.doorbell_stride));
  }
  ready_at_ = clock::now() + shape_.enabling;
  if (shape_.enabling.count() == 0) become_ready();
}

bool controller::become_ready() {
  if (clock::now() < ready_at_) return false;
  ready_ = true;
  write_csts(w::k_csts_rdy);
  return true;
}

// A reset leaves the file, the error log and the shape as they are.
void controller::forget_everything() {
  enabled_ = ready_ = dead_ = shut_down_ = false;
  granted_sqs_ = granted_cqs_ = 0;
  settings_.clear();
  shadow_ = event_index_ = nullptr;
  dead_queues_.clear();
  sqs_.clear();
  cqs_.clear();
  events_.reset();
  completions_.clear();
  held_.clear();
  lost_.clear();
  late_.clear();
  kill_.store(false, std::memory_order_release);
}

void controller::die(const char* why) {
  log::warn("NVMe model: the controller reports a fatal error (CSTS.CFS): {}", why);
  dead_ = true;
  write_csts(csts_ | w::k_csts_cfs);
}

bool controller::has_its_memory() const {
  const auto holds = [&](const std::byte* at, std::uint64_t bytes) { return dma_.holds(at, bytes); };
  for (const auto& [qid, sq] : sqs_)
    if (!sq.deleting && !sq.memory.all(std::uint64_t{sq.entries} * sizeof(w::sqe), holds)) return false;
  for (const auto& [qid, cq] : cqs_)
    if (!cq.memory.all(std::uint64_t{cq.entries} * sizeof(w::cqe), holds)) return false;
  return shadow_ == nullptr || (holds(shadow_, page_) && holds(event_index_, page_));
}

// --- Commands in, completions out --------------------------------------------------------------------

bool controller::fetch(std::uint32_t qid, submission_queue& sq) {
  std::uint32_t n = 0;
  const std::uint32_t alone_end = alone_ + k_alone_at_once;
  while (sq.head != sq.tail && n < k_fetch_at_once && alone_ < alone_end && !engine_->full() && !sq.deleting &&
         !dead_) {
    sqe command;
    std::memcpy(&command, sq.memory.entry(sq.head, sizeof command), sizeof command);
    sq.head = sq.head + 1 == sq.entries ? 0 : sq.head + 1;
    ++n;
    count(commands_);
    const std::uint16_t cid = w::cid_of(command);
    if (sq.taken[cid]) {
      // Completed at once and not counted as in flight: the id belongs to the other command.
      completions_.push_back(completion{qid, cid, w::k_cid_conflict | w::k_status_dnr, 0, false});
      continue;
    }
    sq.taken[cid] = true;
    if (qid == 0)
      execute_admin(command);
    else
      execute_io(qid, sq, command);
  }
  return n != 0;
}

void controller::finish(std::uint32_t sqid, std::uint16_t cid, std::uint32_t status, std::uint32_t result) {
  completions_.push_back(completion{sqid, cid, status, result});
}

bool controller::post_completions() {
  if (is_set(release_)) {
    completions_.insert(completions_.end(), held_.begin(), held_.end());
    held_.clear();
  }
  if (completions_.empty()) return false;
  const std::uint64_t seed = shuffle_seed_.load(std::memory_order_relaxed);
  if (seed != shuffle_now_) {
    shuffle_now_ = seed;
    random_.seed(seed);
  }
  // A shuffled drive keeps some back for a later turn: they mix with younger ones.
  std::size_t most = completions_.size();
  if (seed != 0) {
    for (std::size_t i = completions_.size() - 1; i > 0; --i)
      std::swap(completions_[i], completions_[random_() % (i + 1)]);
    most = random_() % (completions_.size() + 1);
  }
  bool posted = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < completions_.size(); ++i) {
    const completion a = completions_[i];
    if (i < most && post(a)) {
      posted = true;
      continue;
    }
    completions_[kept++] = a;
  }
  completions_.resize(kept);
  return posted || seed != 0;
}

// False: the completion queue is full.
bool controller::post(const completion& a) {
  submission_queue& sq = sqs_[a.sqid];
  completion_queue& cq = cqs_[sq.cqid];
  const std::uint32_t next = cq.tail + 1 == cq.entries ? 0 : cq.tail + 1;
  if (next == cq.head && !make_room(sq.cqid, cq)) return false;
  const w::cqe e = w::make_cqe(a.result, sq.head, a.sqid, a.cid, cq.phase, a.status);
  // Before the driver can see the completion and take the id again.
  if (a.frees) sq.taken[a.cid] = false;
  sq.reported = sq.head;
  auto* out = reinterpret_cast<std::uint32_t*>(cq.memory.entry(cq.tail, sizeof e));
  for (int i = 0; i < 3; ++i) __atomic_store_n(&out[i], e.dw[i], __ATOMIC_RELAXED);
  // The phase tag last; everything before it, data included, is visible with it.
  __atomic_store_n(&out[3], e.dw[3], __ATOMIC_RELEASE);
  cq.tail = next;
  if (next == 0) cq.phase ^= 1;
  return true;
}

}  // namespace xio::model::nvme
