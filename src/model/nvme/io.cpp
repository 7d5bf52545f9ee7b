// SPDX-License-Identifier: MIT
// I/O commands (NVM command set 1.0, 3.2).
#include <errno.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "model/nvme/controller.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

constexpr std::chrono::milliseconds k_look_at_file{1};
// A job of a file that cannot be read now, as on a dead server, may take for ever.
constexpr std::chrono::milliseconds k_job_patience{2000};
constexpr std::uint32_t k_most_complaints = 16;

w::opcode opcode(const w::sqe& command) { return static_cast<w::opcode>(w::opcode_of(command) & ~w::k_of_bytes); }

// Reserved bits of dw12 and dw13, by command. A write has no directives (dw12 23:20).
std::uint32_t check_reserved(const w::sqe& command) {
  if (w::is_of_bytes(command))
    return (command.dw[12] >> 24 | command.dw[13] | command.dw[14] | command.dw[15]) == 0 ? w::k_ok
                                                                                          : w::k_invalid_field;
  switch (opcode(command)) {
    case w::opcode::read:
    case w::opcode::write:
      return (command.dw[12] & 0x02ff0000) == 0 && (command.dw[13] & 0xff00) == 0 ? w::k_ok : w::k_invalid_field;
    case w::opcode::compare: return (command.dw[12] & 0x02ff0000) == 0 ? w::k_ok : w::k_invalid_field;
    case w::opcode::write_zeroes: return (command.dw[12] & 0x00ff0000) == 0 ? w::k_ok : w::k_invalid_field;
    default: return w::k_ok;
  }
}

w::sqe moved(w::sqe command, std::uint64_t lba, std::uint32_t block_bytes) {
  const std::uint64_t to = w::is_of_bytes(command) ? lba * block_bytes : lba;
  command.dw[10] = static_cast<std::uint32_t>(to);
  command.dw[11] = static_cast<std::uint32_t>(to >> 32);
  return command;
}

}  // namespace

std::uint64_t controller::namespace_bytes() const {
  return shape_.of_bytes ? file_.bytes() : blocks() * file_.block_bytes();
}

// Saturates where blocks are beyond 64 bits of bytes: such a place is out of range.
controller::extent controller::extent_of(const sqe& command) const {
  if (opcode(command) == w::opcode::flush) return {0, namespace_bytes()};
  if (w::is_of_bytes(command)) return {w::slba_of(command), std::uint64_t{command.dw[12]} + 1};
  const std::uint64_t block = file_.block_bytes();
  const std::uint64_t lba = std::min(w::slba_of(command), ~std::uint64_t{0} / block);
  return {lba * block, w::blocks_of(command) * block};
}

void controller::execute_io(std::uint32_t sqid, submission_queue& sq, const sqe& command) {
  const std::uint16_t cid = w::cid_of(command);
  const std::uint64_t nth = sq.fetched++;
  if (const std::uint32_t bad = check_common(command); bad != w::k_ok) {
    finish(sqid, cid, bad | w::k_status_dnr);
    return;
  }
  const extent place = extent_of(command);
  const std::uint64_t block = file_.block_bytes(), first = place.offset / block;
  const bool whole_drive = opcode(command) == w::opcode::flush;
  const auto f = faults_.hit(
      occasion{sqid - 1, nth, static_cast<std::uint8_t>(opcode(command)), first,
               whole_drive ? 1 : static_cast<std::uint32_t>((place.offset + place.bytes - 1) / block - first + 1)});
  if (!f) {
    perform(sqid, command, orders{});
    return;
  }
  switch (f->what) {
    case fault::kind::status:
      events_.add(sqid, cid, f->status, first, w::nsid_of(command));
      finish(sqid, cid, f->status);
      break;
    case fault::kind::delay: late_.push_back(late_command{sqid, command, clock::now() + f->delay}); break;
    case fault::kind::hold: perform(sqid, command, orders{true, 0}); break;
    case fault::kind::lose: lost_.push_back(completion{sqid, cid, 0, 0}); break;
    case fault::kind::die: die("a fault asked for it"); break;
    case fault::kind::file: perform(sqid, command, orders{false, f->error}); break;
    case fault::kind::skip: finish(sqid, cid, w::k_ok); break;
    case fault::kind::astray: perform(sqid, moved(command, f->lba, file_.block_bytes()), orders{}); break;
  }
}

void controller::perform(std::uint32_t sqid, const sqe& command, orders o) {
  std::uint32_t status = w::k_invalid_opcode;
  switch (opcode(command)) {
    case w::opcode::read:
    case w::opcode::write: status = start_transfer(sqid, command, o); break;
    case w::opcode::compare:
      if (shape_.compare) status = start_transfer(sqid, command, o);
      break;
    case w::opcode::write_zeroes:
      if (shape_.write_zeroes) status = start_zeroing(sqid, command, o);
      break;
    case w::opcode::flush: start_flush(sqid, command, o); return;
    default: break;
  }
  if (status != w::k_ok) finish(sqid, w::cid_of(command), status | w::k_status_dnr);
}

bool controller::start_late() {
  if (late_.empty()) return false;
  const auto now = clock::now();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < late_.size(); ++i) {
    const late_command l = late_[i];
    if (l.when <= now && !engine_->full())
      perform(l.sqid, l.command, orders{});
    else
      late_[kept++] = l;
  }
  const bool some = kept != late_.size();
  late_.resize(kept);
  return some;
}

// Reserved bits must be 0: dw0 13:10, dw2, dw3. There is no metadata, so MPTR must be 0.
std::uint32_t controller::check_common(const sqe& command) const {
  const std::uint32_t psdt = w::psdt_of(command);
  if (w::fuse_of(command) != 0 || (command.dw[0] >> 10 & 0xf) != 0) return w::k_invalid_field;
  if (psdt == 3 || (psdt != 0 && shape_.sgls == 0)) return w::k_invalid_field;
  if (command.dw[2] != 0 || command.dw[3] != 0 || w::mptr_of(command) != 0) return w::k_invalid_field;
  if (w::is_of_bytes(command) && (!shape_.of_bytes || opcode(command) == w::opcode::flush)) return w::k_invalid_opcode;
  const std::uint32_t nsid = w::nsid_of(command);
  const bool all = opcode(command) == w::opcode::flush && nsid == w::k_broadcast_nsid;
  if (!all && (nsid == 0 || nsid > shape_.namespaces)) return w::k_invalid_namespace;
  return check_reserved(command);
}

std::uint32_t controller::check_range(const sqe& command, extent place) const {
  const std::uint64_t all = namespace_bytes();
  if (place.offset > all || place.bytes > all - place.offset) return w::k_lba_out_of_range;
  if (shape_.metadata_bytes != 0) return w::k_namespace_not_ready;
  const bool changes = opcode(command) == w::opcode::write || opcode(command) == w::opcode::write_zeroes;
  return changes && file_.read_only() ? static_cast<std::uint32_t>(w::k_namespace_write_protected) : w::k_ok;
}

std::uint32_t controller::gather(const sqe& command, std::uint64_t bytes, std::vector<segment>& out) const {
  return w::psdt_of(command) == 0 ? follow_prps(command, bytes, page_, dma_, out)
                                  : follow_sgl(command, bytes, w::sgls_dwords_only(shape_.sgls), dma_, out);
}

controller::work& controller::new_work(std::uint32_t sqid, const sqe& command, extent place, orders o) {
  if (spare_.empty()) {
    works_.push_back(std::make_unique<work>());
    spare_.push_back(works_.back().get());
  }
  work& one = *spare_.back();
  spare_.pop_back();
  one.job.parts.clear();
  one.job.part = 0;
  one.job.error = 0;
  one.job.durable = false;
  one.job.by = file_job::way::cache;
  one.job.unmapped = false;
  one.sqid = sqid;
  one.cid = w::cid_of(command);
  one.nsid = w::nsid_of(command);
  one.lba = place.offset / file_.block_bytes();
  one.opcode = opcode(command);
  one.data.clear();
  one.bounce.clear();
  one.hold = o.hold;
  const char* const name = one.opcode == w::opcode::read    ? "read"
                           : one.opcode == w::opcode::write ? "write"
                                                            : "command";
  const auto what = one.opcode == w::opcode::read    ? trace::carried::read
                    : one.opcode == w::opcode::write ? trace::carried::write
                                                     : trace::carried::command;
  one.traced = {"drive",
                name,
                trace::begin(),
                place.bytes,
                trace::k_none,
                sqid,
                trace::show(what, place.bytes, trace::k_none, sqid)};
  // A flush may name all namespaces.
  one.job.offset = one.opcode == w::opcode::flush ? 0 : (one.nsid - 1) * namespace_bytes() + place.offset;
  return one;
}

std::uint32_t controller::start_transfer(std::uint32_t sqid, const sqe& command, orders o) {
  const extent place = extent_of(command);
  if (const std::uint32_t bad = check_range(command, place); bad != w::k_ok) return bad;
  if (shape_.mdts_bytes != 0 && place.bytes > shape_.mdts_bytes) return w::k_invalid_field;
  work& one = new_work(sqid, command, place, o);
  one.removals = dma_.removals();
  std::uint32_t bad = gather(command, place.bytes, one.data);
  if (bad == w::k_data_transfer_error) note_dma_fault("a command");
  if (bad == w::k_ok && one.opcode == w::opcode::write && !whole()) bad = w::k_write_fault;
  if (bad != w::k_ok) {
    put_by(one);
    return bad;
  }
  aim(one, place.bytes);
  one.job.durable =
      one.opcode == w::opcode::write && ((command.dw[12] & w::k_force_unit_access) != 0 || !write_cache_on());
  start(one, o);
  return w::k_ok;
}

// Where the file's data come from or go to.
void controller::aim(work& one, std::uint64_t bytes) {
  one.job.what = one.opcode == w::opcode::write ? file_job::kind::write : file_job::kind::read;
  if (one.opcode == w::opcode::compare) {
    one.bounce.resize((bytes + sizeof(work::page) - 1) / sizeof(work::page));
    one.job.parts.push_back(iovec{one.bounce.data(), bytes});
    return;
  }
  const auto on_gpu = static_cast<std::size_t>(
      std::ranges::count_if(one.data, [](const segment& s) { return s.kind == dma_map::memory::payload; }));
  for (const segment& s : one.data) one.job.parts.push_back(iovec{s.at, s.bytes});
  const bool may = payload_.direct || on_gpu == one.data.size();
  const bool again = std::exchange(one.job.by, file_job::way::cache) == file_job::way::declined;
  if (may && !again && engine_->takes(one.job))
    one.job.by = file_job::way::library;
  else if (!payload_.direct && on_gpu != 0)
    one.job.by = file_job::way::staged;
}

void controller::start_flush(std::uint32_t sqid, const sqe& command, orders o) {
  work& one = new_work(sqid, command, {0, 0}, o);
  one.job.what = file_job::kind::sync;
  looked_at_file_ = {};  // a write behind the end of a file that was cut is reported here at the latest
  start(one, whole() ? o : orders{o.hold, EIO});
}

std::uint32_t controller::start_zeroing(std::uint32_t sqid, const sqe& command, orders o) {
  const extent place = extent_of(command);
  if (const std::uint32_t bad = check_range(command, place); bad != w::k_ok) return bad;
  if (!whole()) return w::k_write_fault;
  work& one = new_work(sqid, command, place, o);
  one.job.what = file_job::kind::zero;
  one.job.bytes = place.bytes;
  one.job.durable = (command.dw[12] & w::k_force_unit_access) != 0 || !write_cache_on();
  start(one, o);
  return w::k_ok;
}

void controller::start(work& one, orders o) {
  ++sqs_[one.sqid].file_jobs;
  ++in_file_;
  if (one.job.what != file_job::kind::read) ++alone_;
  if (o.error == 0) {
    engine_->start(one.job);
    return;
  }
  one.job.error = o.error;
  refused_.push_back(&one);
}

// Not asked for every command: a call each would cost more than the rest of the turn.
bool controller::whole() {
  const auto now = clock::now();
  if (now - looked_at_file_ < k_look_at_file) return file_whole_;
  looked_at_file_ = now;
  file_whole_ = file_.whole();
  return file_whole_;
}

bool controller::reap_file() {
  if (in_file_ == 0) return false;
  done_.clear();
  if (const std::uint64_t now = dma_.removals(); std::exchange(looked_at_memory_, now) != now)
    for (const auto& one : works_) one->job.unmapped = one->removals != k_no_data && !still_mapped(*one);
  engine_->reap(done_);
  // The job is the first member of its work.
  static_assert(offsetof(work, job) == 0);
  for (file_job* job : done_) end_work(*reinterpret_cast<work*>(job));
  const bool some = !done_.empty() || !refused_.empty();
  for (work* one : refused_) end_work(*one);
  refused_.clear();
  return some;
}

void controller::end_work(work& one) {
  if (one.job.by == file_job::way::declined && (dead_ || !still_mapped(one))) {
    one.job.error = EIO;  // nobody starts anything for a drive that is gone
  } else if (one.job.by == file_job::way::declined) {
    std::uint64_t bytes = 0;
    for (const iovec& v : std::exchange(one.job.parts, {})) bytes += v.iov_len;
    aim(one, bytes);
    engine_->start(one.job);
    engine_->kick();
    return;
  }
  --in_file_;
  trace::end(one.traced);
  const std::uint32_t status = outcome(one);
  if (status != w::k_ok) events_.add(one.sqid, one.cid, status, one.lba, one.nsid);
  put_by(one);
  submission_queue& sq = sqs_[one.sqid];
  --sq.file_jobs;
  if (sq.deleting) {
    if (sq.file_jobs == 0) end_deletion(one.sqid);
  } else if (one.hold) {
    held_.push_back(completion{one.sqid, one.cid, status, 0});
  } else {
    finish(one.sqid, one.cid, status);
  }
}

std::uint32_t controller::outcome(work& one) {
  const bool reads = one.opcode == w::opcode::read || one.opcode == w::opcode::compare;
  if (!still_mapped(one)) {
    note_dma_fault("a command's data");
    return w::k_data_transfer_error;
  }
  if (one.job.error != 0) {
    if (complaints_++ < k_most_complaints)
      log::warn("NVMe model: {} {} at byte {}: {}",
                reads                            ? "reading"
                : one.opcode == w::opcode::flush ? "flushing"
                                                 : "writing",
                file_.path(), one.job.offset, errno_text(one.job.error));
    return reads ? w::k_unrecovered_read : w::k_write_fault;
  }
  return one.opcode != w::opcode::compare || same(one) ? w::k_ok : w::k_compare_failure;
}

// The memory that the file was read into, or written from, may have been unmapped meanwhile.
bool controller::still_mapped(const work& one) const {
  return one.removals == dma_.removals() ||
         std::ranges::all_of(one.data, [&](const segment& s) { return dma_.holds(s.at, s.bytes); });
}

void controller::put_by(work& one) {
  one.removals = k_no_data;
  spare_.push_back(&one);
}

// Between two turns' jobs: what was found in the map after a removal has nothing of what was removed.
void controller::note_removals() {
  std::uint64_t past = dma_.removals();
  if (let_go_.load(std::memory_order_relaxed) == past) return;
  for (const auto& one : works_) past = std::min(past, one->removals);
  let_go_.store(past, std::memory_order_release);
}

bool controller::take_away(const void* base) {
  dma_.remove(base);
  wake_sleepers();
  const std::uint64_t wanted = dma_.removals();
  const auto until = clock::now() + k_job_patience;
  while (let_go_.load(std::memory_order_acquire) < wanted) {
    if (clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

void controller::note_dma_fault(const char* what) {
  dma_faults_.fetch_add(1, std::memory_order_relaxed);
  if (complaints_++ < k_most_complaints)
    log::warn("NVMe model: {} is in memory that is not mapped for the drive", what);
}

bool controller::same(const work& one) {
  std::vector<std::byte> theirs;
  const auto* at = reinterpret_cast<const std::byte*>(one.bounce.data());
  for (const segment& s : one.data) {
    const std::byte* data = s.at;
    if (!payload_.direct && s.kind == dma_map::memory::payload) {
      theirs.resize(s.bytes);
      payload_.copy(theirs.data(), s.at, s.bytes);
      data = theirs.data();
    }
    if (std::memcmp(at, data, s.bytes) != 0) return false;
    at += s.bytes;
  }
  return true;
}

}  // namespace xio::model::nvme
