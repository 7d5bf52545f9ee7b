// SPDX-License-Identifier: MIT
// Admin commands (NVMe base 2.0, 5).
#include <algorithm>
#include <bit>
#include <cstring>

#include "model/nvme/controller.hpp"

namespace xio::model::nvme {

namespace w = wire::nvme;

namespace {

constexpr std::size_t k_event_requests = 4;

template <class T>
void put(std::byte* page, std::uint32_t offset, T value) {
  std::memcpy(page + offset, &value, sizeof value);
}

void put_text(std::byte* page, std::uint32_t offset, std::size_t width, const char* text) {
  std::memset(page + offset, ' ', width);
  std::memcpy(page + offset, text, std::min(width, std::strlen(text)));
}

std::uint32_t low16(std::uint32_t dw) { return dw & 0xffff; }
std::uint32_t high16(std::uint32_t dw) { return dw >> 16; }

}  // namespace

void controller::execute_admin(const sqe& command) {
  const std::uint16_t cid = w::cid_of(command);
  std::uint32_t status = w::k_ok;
  std::uint32_t result = 0;
  if (w::psdt_of(command) != 0 || w::fuse_of(command) != 0) {
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
    case w::admin::abort: result = 1; break;  // the command was not aborted; a drive may say so always
    case w::admin::async_event:
      if (event_requests_.size() >= k_event_requests) {
        status = w::k_event_limit_exceeded;
      } else if (events_.empty()) {
        event_requests_.push_back(cid);
        return;
      } else {
        result = events_.front();
        events_.pop_front();
      }
      break;
    default: status = w::k_invalid_opcode; break;
  }
  finish(0, cid, status == w::k_ok ? status : status | w::k_status_dnr, result);
}

std::uint32_t controller::to_memory(const sqe& command, const std::byte* page) {
  std::vector<segment> data;
  if (const std::uint32_t bad = follow_prps(command, w::k_identify_bytes, page_, dma_, data); bad != w::k_ok)
    return bad;
  for (const segment& s : data) {
    if (s.kind == dma_map::memory::host)
      std::memcpy(s.at, page, s.bytes);
    else
      payload_.copy(s.at, page, s.bytes);
    page += s.bytes;
  }
  return w::k_ok;
}

std::uint32_t controller::identify(const sqe& command) {
  std::byte page[w::k_identify_bytes] = {};
  const std::uint64_t blocks = file_.capacity() / file_.block_bytes();
  switch (static_cast<w::cns>(command.dw[10] & 0xff)) {
    case w::cns::controller:
      put_text(page, w::k_id_sn, 20, "XIO0001");
      put_text(page, w::k_id_mn, 40, "XIO software NVMe drive");
      put_text(page, w::k_id_fr, 8, "1");
      put<std::uint8_t>(page, w::k_id_mdts, static_cast<std::uint8_t>(std::bit_width(shape_.mdts_bytes / k_page) - 1));
      put<std::uint8_t>(page, w::k_id_aerl, k_event_requests - 1);
      put<std::uint8_t>(page, w::k_id_sqes, 0x66);
      put<std::uint8_t>(page, w::k_id_cqes, 0x44);
      put<std::uint32_t>(page, w::k_id_nn, 1);
      put<std::uint16_t>(page, w::k_id_oncs, w::k_oncs_write_zeroes);
      put<std::uint8_t>(page, w::k_id_vwc, 1);
      break;
    case w::cns::name_space: {
      if (w::nsid_of(command) != k_nsid) return w::k_invalid_namespace;
      put<std::uint64_t>(page, w::k_id_nsze, blocks);
      put<std::uint64_t>(page, w::k_id_ncap, blocks);
      put<std::uint64_t>(page, w::k_id_nuse, blocks);
      put<std::uint8_t>(page, w::k_id_nsattr, file_.read_only() ? 1 : 0);
      const std::uint32_t lbads = static_cast<std::uint32_t>(std::countr_zero(file_.block_bytes()));
      put<std::uint32_t>(page, w::k_id_lbaf, lbads << 16);
      break;
    }
    case w::cns::active_namespaces:
      if (w::nsid_of(command) >= 0xfffffffe) return w::k_invalid_namespace;
      if (w::nsid_of(command) < k_nsid) put<std::uint32_t>(page, 0, k_nsid);
      break;
    default: return w::k_invalid_field;
  }
  return to_memory(command, page);
}

std::uint32_t controller::create_cq(const sqe& command) {
  const std::uint32_t qid = low16(command.dw[10]);
  const std::uint32_t entries = high16(command.dw[10]) + 1;
  if (qid == 0 || qid > granted_cqs_ || cqs_.count(qid) != 0) return w::k_invalid_queue_id;
  if (entries < 2 || entries > shape_.max_entries) return w::k_invalid_queue_size;
  if ((command.dw[11] & 1) == 0) return w::k_invalid_field;  // CAP.CQR: contiguous queues only
  if ((command.dw[11] & 2) != 0) return w::k_invalid_interrupt_vector;
  const std::uint64_t bus = w::prp1_of(command);
  if (bus % page_ != 0) return w::k_invalid_prp_offset;
  std::byte* base = dma_.host(bus, std::uint64_t{entries} * sizeof(w::cqe));
  if (base == nullptr) return w::k_data_transfer_error;
  completion_queue& cq = cqs_[qid];
  cq.base = base;
  cq.entries = entries;
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + w::cq_head_doorbell(qid, shape_.doorbell_stride)), 0u,
                   __ATOMIC_RELEASE);
  return w::k_ok;
}

std::uint32_t controller::create_sq(const sqe& command) {
  const std::uint32_t qid = low16(command.dw[10]);
  const std::uint32_t entries = high16(command.dw[10]) + 1;
  const std::uint32_t cqid = high16(command.dw[11]);
  if (qid == 0 || qid > granted_sqs_ || sqs_.count(qid) != 0) return w::k_invalid_queue_id;
  if (entries < 2 || entries > shape_.max_entries) return w::k_invalid_queue_size;
  if ((command.dw[11] & 1) == 0) return w::k_invalid_field;
  if (cqid == 0 || cqs_.count(cqid) == 0) return w::k_cq_invalid;
  const std::uint64_t bus = w::prp1_of(command);
  if (bus % page_ != 0) return w::k_invalid_prp_offset;
  const std::byte* base = dma_.host(bus, std::uint64_t{entries} * sizeof(w::sqe));
  if (base == nullptr) return w::k_data_transfer_error;
  submission_queue& sq = sqs_[qid];
  sq.base = base;
  sq.entries = entries;
  sq.cqid = cqid;
  ++cqs_[cqid].users;
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + w::sq_tail_doorbell(qid, shape_.doorbell_stride)), 0u,
                   __ATOMIC_RELEASE);
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

// False: the answer comes when the queue's last command has left the file.
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
  const auto of_queue = [&](const answer& a) { return a.sqid == qid; };
  std::erase_if(answers_, of_queue);
  std::erase_if(held_, of_queue);
  std::erase_if(late_, [&](const late_command& l) { return l.sqid == qid; });
  const submission_queue& sq = sqs_[qid];
  --cqs_[sq.cqid].users;
  const std::uint16_t cid = sq.delete_cid;
  // Called while sqs_ is walked, and poll() walks on: the queue stays as an empty shell until the next turn.
  dead_queues_.push_back(qid);
  finish(0, cid, w::k_ok);
}

std::uint32_t controller::set_features(const sqe& command, std::uint32_t* result) {
  switch (static_cast<w::feature>(command.dw[10] & 0xff)) {
    case w::feature::number_of_queues: {
      if (sqs_.size() > 1 || cqs_.size() > 1) return w::k_command_sequence_error;
      if (low16(command.dw[11]) == 0xffff || high16(command.dw[11]) == 0xffff) return w::k_invalid_field;
      granted_sqs_ = std::min(w::queue_counts_sqs(command.dw[11]), shape_.max_queues);
      granted_cqs_ = std::min(w::queue_counts_cqs(command.dw[11]), shape_.max_queues);
      *result = w::make_queue_counts(granted_sqs_, granted_cqs_);
      return w::k_ok;
    }
    case w::feature::volatile_write_cache: write_cache_ = (command.dw[11] & 1) != 0; return w::k_ok;
    case w::feature::arbitration: return w::k_ok;
    default: return w::k_invalid_field;
  }
}

std::uint32_t controller::get_features(const sqe& command, std::uint32_t* result) {
  switch (static_cast<w::feature>(command.dw[10] & 0xff)) {
    case w::feature::number_of_queues:
      *result = w::make_queue_counts(std::max(1u, granted_sqs_), std::max(1u, granted_cqs_));
      return w::k_ok;
    case w::feature::volatile_write_cache: *result = write_cache_ ? 1 : 0; return w::k_ok;
    case w::feature::arbitration: return w::k_ok;
    default: return w::k_invalid_field;
  }
}

}  // namespace xio::model::nvme
