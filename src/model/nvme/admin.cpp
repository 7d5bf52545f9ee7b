// SPDX-License-Identifier: MIT
// Admin commands (NVMe base 2.0, 5).
#include "model/nvme/controller.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

constexpr std::uint64_t k_longest_log = 1 << 20;
constexpr std::size_t k_health_bytes = 512;

std::uint32_t low16(std::uint32_t dw) { return dw & 0xffff; }
std::uint32_t high16(std::uint32_t dw) { return dw >> 16; }

}  // namespace

void controller::execute_admin(const sqe& command) {
  const std::uint16_t cid = w::cid_of(command);
  std::uint32_t status = w::k_ok, result = 0;
  // By PCIe, admin commands have PRPs only (4.1.2).
  if (w::psdt_of(command) != 0 || w::fuse_of(command) != 0 || (command.dw[0] >> 10 & 0xf) != 0) {
    finish(0, cid, w::k_invalid_field | w::k_status_dnr);
    return;
  }
  switch (static_cast<w::admin>(w::opcode_of(command))) {
    case w::admin::identify: status = identify(command); break;
    case w::admin::create_cq: status = create_cq(command); break;
    case w::admin::create_sq: status = create_sq(command); break;
    case w::admin::delete_cq: status = delete_cq(command); break;
    case w::admin::delete_sq:
      if (!delete_sq(command, &status)) return;
      break;
    case w::admin::set_features: status = set_features(command, &result); break;
    case w::admin::get_features: status = get_features(command, &result); break;
    case w::admin::get_log_page: status = get_log_page(command); break;
    case w::admin::doorbell_buffer_config: status = configure_doorbell_buffers(command); break;
    case w::admin::abort:
      // Bit 0: the command was not aborted.
      result = abort(low16(command.dw[10]), static_cast<std::uint16_t>(high16(command.dw[10]))) ? 0 : 1;
      break;
    case w::admin::async_event:
      if (events_.ask(cid)) {
        post_events();
        return;
      }
      status = w::k_event_limit_exceeded;
      break;
    default: status = w::k_invalid_opcode; break;
  }
  finish(0, cid, status == w::k_ok ? status : status | w::k_status_dnr, result);
}

std::uint32_t controller::to_memory(const sqe& command, const std::byte* page, std::uint64_t bytes) {
  std::vector<segment> data;
  if (const std::uint32_t bad = follow_prps(command, bytes, page_, dma_, data); bad != w::k_ok) return bad;
  for (const segment& s : data) {
    if (s.kind == dma_map::memory::host)
      std::memcpy(s.at, page, s.bytes);
    else
      payload_.copy(s.at, page, s.bytes);
    page += s.bytes;
  }
  return w::k_ok;
}

// --- Queues ------------------------------------------------------------------------------------------

// PC (dw11 bit 0): PRP1 is the queue, else a list of its pages, which a drive with CAP.CQR does not take.
std::uint32_t controller::find_queue_memory(const sqe& command, std::uint64_t bytes, queue_memory* out) const {
  const std::uint64_t bus = w::prp1_of(command);
  if (bus % page_ != 0) return w::k_invalid_prp_offset;
  if ((command.dw[11] & 1) != 0) {
    std::byte* base = dma_.host(bus, bytes);
    if (base == nullptr) return w::k_data_transfer_error;
    *out = queue_memory(base);
    return w::k_ok;
  }
  if (shape_.contiguous) return w::k_invalid_field;
  std::vector<segment> pages;
  const std::uint64_t whole = (bytes + page_ - 1) / page_ * page_;
  if (const std::uint32_t bad = follow_prp_list(bus, whole, page_, dma_, pages); bad != w::k_ok) return bad;
  if (std::ranges::any_of(pages, [](const segment& s) { return s.kind != dma_map::memory::host; }))
    return w::k_data_transfer_error;
  *out = queue_memory(pages, page_);
  return w::k_ok;
}

std::uint32_t controller::create_cq(const sqe& command) {
  const std::uint32_t qid = low16(command.dw[10]);
  const std::uint32_t entries = high16(command.dw[10]) + 1;
  if (qid == 0 || qid > granted_cqs_ || cqs_.count(qid) != 0) return w::k_invalid_queue_id;
  // Also when CC.IOCQES was not set (5.4).
  if (entries < 2 || entries > shape_.max_entries || w::cc_iocqes(regs_.read32(w::k_reg_cc)) != 4)
    return w::k_invalid_queue_size;
  if ((command.dw[11] & 2) != 0) return w::k_invalid_interrupt_vector;
  queue_memory memory;
  if (const std::uint32_t bad = find_queue_memory(command, std::uint64_t{entries} * sizeof(w::cqe), &memory);
      bad != w::k_ok)
    return bad;
  completion_queue& cq = cqs_[qid];
  cq.memory = std::move(memory);
  cq.entries = entries;
  regs_.forget(w::cq_head_doorbell(qid, shape_.doorbell_stride));
  shadow_queue(qid, cq);
  return w::k_ok;
}

std::uint32_t controller::create_sq(const sqe& command) {
  const std::uint32_t qid = low16(command.dw[10]);
  const std::uint32_t entries = high16(command.dw[10]) + 1;
  const std::uint32_t cqid = high16(command.dw[11]);
  if (qid == 0 || qid > granted_sqs_ || sqs_.count(qid) != 0) return w::k_invalid_queue_id;
  if (entries < 2 || entries > shape_.max_entries || w::cc_iosqes(regs_.read32(w::k_reg_cc)) != 6)
    return w::k_invalid_queue_size;
  if (cqid == 0 || cqs_.count(cqid) == 0) return w::k_cq_invalid;
  queue_memory memory;
  if (const std::uint32_t bad = find_queue_memory(command, std::uint64_t{entries} * sizeof(w::sqe), &memory);
      bad != w::k_ok)
    return bad;
  submission_queue& sq = sqs_[qid];
  sq.memory = std::move(memory);
  sq.entries = entries;
  sq.cqid = cqid;
  ++cqs_[cqid].users;
  regs_.forget(w::sq_tail_doorbell(qid, shape_.doorbell_stride));
  shadow_queue(qid, sq);
  return w::k_ok;
}

std::uint32_t controller::delete_cq(const sqe& command) {
  const std::uint32_t qid = low16(command.dw[10]);
  const auto it = cqs_.find(qid);
  if (qid == 0 || it == cqs_.end()) return w::k_invalid_queue_id;
  if (it->second.users != 0) return w::k_invalid_queue_deletion;
  cqs_.erase(it);
  return w::k_ok;
}

// Returns false where the completion is posted later, when the queue's last command has left the file.
bool controller::delete_sq(const sqe& command, std::uint32_t* status) {
  const std::uint32_t qid = low16(command.dw[10]);
  const auto it = sqs_.find(qid);
  if (qid == 0 || it == sqs_.end() || it->second.deleting) {
    *status = w::k_invalid_queue_id;
    return true;
  }
  submission_queue& sq = it->second;
  sq.deleting = true;
  sq.delete_cid = w::cid_of(command);
  if (sq.file_jobs == 0) end_deletion(qid);
  return false;
}

// Commands without a completion die with their queue.
void controller::end_deletion(std::uint32_t qid) {
  const auto of_queue = [&](const completion& a) { return a.sqid == qid; };
  std::erase_if(completions_, of_queue);
  std::erase_if(held_, of_queue);
  std::erase_if(lost_, of_queue);
  std::erase_if(late_, [&](const late_command& l) { return l.sqid == qid; });
  const submission_queue& sq = sqs_[qid];
  --cqs_[sq.cqid].users;
  const std::uint16_t cid = sq.delete_cid;
  // Called while sqs_ is walked, and poll() walks on: the queue stays as an empty shell until the next turn.
  dead_queues_.push_back(qid);
  finish(0, cid, w::k_ok);
}

// Only a command that waits here can be aborted; one that is with the file runs to its end.
bool controller::abort(std::uint32_t sqid, std::uint16_t cid) {
  const auto it = sqs_.find(sqid);
  if (it == sqs_.end() || it->second.deleting) return false;
  const auto wanted = [&](const completion& a) { return a.sqid == sqid && a.cid == cid; };
  const bool found =
      std::erase_if(held_, wanted) + std::erase_if(lost_, wanted) +
          std::erase_if(late_, [&](const auto& l) { return l.sqid == sqid && w::cid_of(l.command) == cid; }) !=
      0;
  if (!found && !(sqid == 0 && events_.withdraw(cid))) return false;
  finish(sqid, cid, w::k_aborted);
  return true;
}

// --- Events and logs ---------------------------------------------------------------------------------

void controller::post_events() {
  while (const auto t = events_.next()) finish(0, t->cid, w::k_ok, t->dw0);
}

std::uint32_t controller::get_log_page(const sqe& command) {
  const std::uint64_t dwords = (std::uint64_t{low16(command.dw[11])} << 16 | high16(command.dw[10])) + 1;
  const std::uint64_t offset = command.dw[12] | std::uint64_t{command.dw[13]} << 32;
  const std::uint64_t bytes = dwords * 4;
  std::vector<std::byte> log;
  const auto which = static_cast<w::log_page>(command.dw[10] & 0xff);
  switch (which) {
    case w::log_page::error_information:
      log.resize(event_desk::k_log_bytes);
      events_.fill_log(log.data());
      break;
    case w::log_page::health: {
      // 5.16.1.3: temperature in kelvin at 1, spare and its threshold at 3 and 4, error log entries at 176.
      log.resize(k_health_bytes);
      log[1] = std::byte{300 & 0xff};
      log[2] = std::byte{300 >> 8};
      log[3] = std::byte{100};
      log[4] = std::byte{10};
      const std::uint64_t errors = events_.recorded();
      std::memcpy(log.data() + 176, &errors, sizeof errors);
      break;
    }
    case w::log_page::firmware_slot:
      log.resize(512);
      log[0] = std::byte{1};  // slot 1 is active
      log[8] = std::byte{'2'};
      for (std::size_t i = 9; i < 16; ++i) log[i] = std::byte{' '};
      break;
    default: return w::k_invalid_log_page;
  }
  if (offset % 4 != 0 || offset > log.size() || bytes > k_longest_log) return w::k_invalid_field;
  log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(offset));
  log.resize(bytes);
  const std::uint32_t status = to_memory(command, log.data(), bytes);
  const bool retain = (command.dw[10] & w::k_log_retain) != 0;
  if (status == w::k_ok && which == w::log_page::error_information && !retain) {
    events_.log_was_read();
    post_events();
  }
  return status;
}

}  // namespace xio::model::nvme
