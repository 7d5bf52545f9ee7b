// SPDX-License-Identifier: MIT
// I/O commands (NVM command set 1.0, 3.2).
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "model/nvme/controller.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

void controller::execute_io(std::uint32_t sqid, const sqe& command) {
  const std::uint16_t cid = w::cid_of(command);
  const std::uint8_t op = w::opcode_of(command);
  if (const std::uint32_t bad = check_common(command); bad != w::k_ok) {
    finish(sqid, cid, bad | w::k_status_dnr);
    return;
  }
  const bool whole = op == static_cast<std::uint8_t>(w::opcode::flush);
  const auto f = faults_.hit(op, whole ? 0 : w::slba_of(command), whole ? 1 : w::blocks_of(command));
  if (f && f->what == fault::kind::status)
    finish(sqid, cid, f->status);
  else if (f && f->what == fault::kind::delay)
    late_.push_back(late_command{sqid, command, clock::now() + f->delay});
  else
    perform(sqid, command, f && f->what == fault::kind::hold);
}

void controller::perform(std::uint32_t sqid, const sqe& command, bool hold) {
  std::uint32_t status = w::k_ok;
  switch (static_cast<w::opcode>(w::opcode_of(command))) {
    case w::opcode::read:
    case w::opcode::write:
      status = start_transfer(sqid, command, hold);
      if (status == w::k_ok) return;
      break;
    case w::opcode::flush: start_flush(sqid, command, hold); return;
    case w::opcode::write_zeroes: status = write_zeroes(command); break;
    default: status = w::k_invalid_opcode; break;
  }
  finish(sqid, w::cid_of(command), status == w::k_ok ? status : status | w::k_status_dnr);
}

bool controller::start_late() {
  if (late_.empty()) return false;
  const auto now = clock::now();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < late_.size(); ++i) {
    const late_command l = late_[i];
    if (l.when <= now && !engine_->full())
      perform(l.sqid, l.command, false);
    else
      late_[kept++] = l;
  }
  const bool some = kept != late_.size();
  late_.resize(kept);
  return some;
}

// Reserved bits must be 0: dw0 13:10, dw2, dw3. There is no metadata, so MPTR must be 0.
std::uint32_t controller::check_common(const sqe& command) const {
  if (w::fuse_of(command) != 0 || w::psdt_of(command) != 0 || (command.dw[0] >> 10 & 0xf) != 0)
    return w::k_invalid_field;
  if (command.dw[2] != 0 || command.dw[3] != 0 || w::mptr_of(command) != 0) return w::k_invalid_field;
  const bool flush = w::opcode_of(command) == static_cast<std::uint8_t>(w::opcode::flush);
  if (w::nsid_of(command) != k_nsid && !(flush && w::nsid_of(command) == w::k_broadcast_nsid))
    return w::k_invalid_namespace;
  return w::k_ok;
}

std::uint32_t controller::check_range(const sqe& command) const {
  const std::uint64_t blocks = file_.capacity() / file_.block_bytes();
  const std::uint64_t slba = w::slba_of(command);
  if (slba > blocks || w::blocks_of(command) > blocks - slba) return w::k_lba_out_of_range;
  const bool read = w::opcode_of(command) == static_cast<std::uint8_t>(w::opcode::read);
  return !read && file_.read_only() ? static_cast<std::uint32_t>(w::k_namespace_write_protected) : w::k_ok;
}

controller::work& controller::new_work(std::uint32_t sqid, const sqe& command, bool hold) {
  if (spare_.empty()) {
    works_.push_back(std::make_unique<work>());
    spare_.push_back(works_.back().get());
  }
  work& one = *spare_.back();
  spare_.pop_back();
  one.job.parts.clear();
  one.job.part = 0;
  one.job.error = 0;
  one.sqid = sqid;
  one.cid = w::cid_of(command);
  one.opcode = w::opcode_of(command);
  one.data.clear();
  one.bounce.clear();
  one.hold = hold;
  return one;
}

std::uint32_t controller::start_transfer(std::uint32_t sqid, const sqe& command, bool hold) {
  if (const std::uint32_t bad = check_range(command); bad != w::k_ok) return bad;
  const std::uint64_t bytes = std::uint64_t{w::blocks_of(command)} * file_.block_bytes();
  if (bytes > shape_.mdts_bytes) return w::k_invalid_field;
  work& one = new_work(sqid, command, hold);
  if (const std::uint32_t bad = follow_prps(command, bytes, page_, dma_, one.data); bad != w::k_ok) {
    spare_.push_back(&one);
    return bad;
  }
  const bool read = one.opcode == static_cast<std::uint8_t>(w::opcode::read);
  one.job.what = read ? file_job::kind::read : file_job::kind::write;
  one.job.offset = w::slba_of(command) * file_.block_bytes();
  one.job.end = file_.bytes();
  const bool direct = payload_.direct || std::all_of(one.data.begin(), one.data.end(),
                                                     [](const segment& s) { return s.kind == dma_map::memory::host; });
  if (direct) {
    for (const segment& s : one.data) one.job.parts.push_back(iovec{s.at, s.bytes});
  } else {
    one.bounce.resize(bytes);
    std::byte* at = one.bounce.data();
    for (const segment& s : one.data) {
      if (!read) payload_.copy(at, s.at, s.bytes);
      at += s.bytes;
    }
    one.job.parts.push_back(iovec{one.bounce.data(), bytes});
  }
  ++sqs_[sqid].file_jobs;
  ++in_file_;
  engine_->start(one.job);
  return w::k_ok;
}

void controller::start_flush(std::uint32_t sqid, const sqe& command, bool hold) {
  work& one = new_work(sqid, command, hold);
  one.job.what = file_job::kind::sync;
  ++sqs_[sqid].file_jobs;
  ++in_file_;
  engine_->start(one.job);
}

std::uint32_t controller::write_zeroes(const sqe& command) {
  if (const std::uint32_t bad = check_range(command); bad != w::k_ok) return bad;
  const off_t offset = static_cast<off_t>(w::slba_of(command) * file_.block_bytes());
  const off_t bytes = static_cast<off_t>(w::blocks_of(command)) * file_.block_bytes();
  if (fallocate(file_.fd(), FALLOC_FL_ZERO_RANGE, offset, bytes) == 0) return w::k_ok;
  const std::vector<std::byte> zeroes(file_.block_bytes());
  for (off_t at = 0; at < bytes; at += file_.block_bytes())
    if (pwrite(file_.fd(), zeroes.data(), zeroes.size(), offset + at) != static_cast<ssize_t>(zeroes.size()))
      return w::k_write_fault;
  return w::k_ok;
}

bool controller::reap_file() {
  if (in_file_ == 0) return false;
  done_.clear();
  engine_->reap(done_);
  // The job is the first member of its work.
  static_assert(offsetof(work, job) == 0);
  for (file_job* job : done_) end_work(*reinterpret_cast<work*>(job));
  return !done_.empty();
}

void controller::end_work(work& one) {
  --in_file_;
  std::uint32_t status = w::k_ok;
  if (one.job.error != 0) {
    const bool read = one.job.what == file_job::kind::read;
    status = read                                    ? w::k_unrecovered_read
             : one.job.what == file_job::kind::write ? w::k_write_fault
                                                     : w::k_internal_error;
    log::warn("NVMe model: {} {} at byte {}: {}", read ? "reading" : "writing", file_.path(), one.job.offset,
              errno_text(one.job.error));
  } else if (!one.bounce.empty() && one.job.what == file_job::kind::read) {
    const std::byte* at = one.bounce.data();
    for (const segment& s : one.data) {
      payload_.copy(s.at, at, s.bytes);
      at += s.bytes;
    }
    payload_.fence();
  }
  spare_.push_back(&one);
  submission_queue& sq = sqs_[one.sqid];
  --sq.file_jobs;
  if (sq.deleting) {
    if (sq.file_jobs == 0) end_deletion(one.sqid);
  } else if (one.hold) {
    held_.push_back(answer{one.sqid, one.cid, status, 0});
  } else {
    finish(one.sqid, one.cid, status);
  }
}

}  // namespace xio::model::nvme
