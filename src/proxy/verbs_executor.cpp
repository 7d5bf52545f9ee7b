// SPDX-License-Identifier: MIT
#include "proxy/verbs_executor.hpp"

#include <arpa/inet.h>

#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::proxy {

namespace {

// One ibv_post_send: at least one op with spans that the device takes one by one.
constexpr std::uint32_t k_chain = 32;
static_assert(k_chain >= k_max_spans);
// A completion at least this often, or a full queue would wait for its last request.
constexpr std::uint32_t k_ask_every = 16;
constexpr int k_poll = 16;

std::uint32_t used_spans(const op& o) {
  return static_cast<std::uint32_t>(
      std::count_if(o.spans.begin(), o.spans.begin() + o.span_count, [](const span_ref& s) { return s.bytes != 0; }));
}

// The verbs know 8 bytes without masks, told in the host's byte order (InfiniBand specification, 9.4.5).
bool is_plain(const atomic_change& c) {
  if (c.width != 8 || c.big_endian_result) return false;
  return c.is_add ? c.boundary == 0 : c.swap_mask == ~std::uint64_t{0} && c.compare_mask == ~std::uint64_t{0};
}

// Before the device is asked: some drivers' libraries refuse to post what a device would complete with an error.
op_error refusal_of(const op& atomic) {
  if (!is_plain(atomic.change)) return {outcome::remote_operation, rule::entry_modifier};
  if ((atomic.remote & 7) != 0) return {outcome::remote_invalid_request, rule::atomic_alignment};
  if (atomic.span_count != 1 || atomic.spans[0].bytes != 8) return {outcome::local_length, rule::data_length};
  return {};
}

}  // namespace

op_error error_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return {};
    case IBV_WC_LOC_LEN_ERR: return {outcome::local_length, rule::none};
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR: return {outcome::local_protection, rule::none};
    case IBV_WC_WR_FLUSH_ERR: return {outcome::flushed, rule::none};
    case IBV_WC_BAD_RESP_ERR: return {outcome::bad_response, rule::none};
    case IBV_WC_REM_INV_REQ_ERR: return {outcome::remote_invalid_request, rule::peer_refused};
    case IBV_WC_REM_ACCESS_ERR: return {outcome::remote_access, rule::peer_refused};
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR: return {outcome::remote_operation, rule::peer_refused};
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR: return {outcome::retry_exceeded, rule::none};
    case IBV_WC_RNR_RETRY_EXC_ERR: return {outcome::rnr_retry_exceeded, rule::none};
    default: return {outcome::local_qp_operation, rule::none};
  }
}

verbs_executor::verbs_executor(verbs_sender s)
    : s_(std::move(s)),
      chain_(k_chain),
      asked_(k_chain),
      spans_(std::size_t{k_chain} * s_.max_sge),
      small_(std::size_t{k_chain} * s_.max_inline) {}

// --- Taking ops --------------------------------------------------------------------------------------

bool verbs_executor::has_room(const op& o, std::uint32_t requests) const {
  if (staged_ + requests > k_chain || posted_ - done_ + staged_ + requests > s_.depth) return false;
  return !o.is_inline || o.bytes <= s_.max_inline || bounced_.size() < s_.bounce_slots;
}

bool verbs_executor::begin(const op& o) {
  if (failed_ || (!ops_.empty() && ops_.back().refused)) return false;
  std::uint32_t requests = o.what == verb::nop ? 0 : 1;
  if (!o.is_inline && o.what != verb::atomic)
    requests = std::max(requests, (used_spans(o) + s_.max_sge - 1) / s_.max_sge);
  op_error refused;
  if (requests > std::min(k_chain, s_.depth)) refused = {outcome::local_length, rule::entry_segments};
  if (o.what == verb::atomic) refused = refusal_of(o);
  if (!refused && !has_room(o, requests)) return false;
  if (!refused && o.what != verb::nop) {
    if (o.what == verb::atomic)
      stage_atomic(o);
    else if (o.is_inline)
      stage_inline(o);
    else
      stage_spans(o, requests);
    asked_[staged_ - 1] = o.signalled;
    staged_bytes_ += o.bytes;
  }
  ops_.push_back({posted_ + staged_, refused});
  return true;
}

// The next work request of the chain, for the part of `o` behind `skip` bytes.
ibv_send_wr& verbs_executor::stage(const op& o, std::uint64_t skip) {
  ibv_send_wr& wr = chain_[staged_];
  wr = {};
  wr.wr_id = posted_ + staged_;
  wr.sg_list = spans_of(staged_);
  wr.opcode = o.what == verb::read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = o.remote + skip;
  wr.wr.rdma.rkey = o.remote_key;
  asked_[staged_] = false;
  ++staged_;
  return wr;
}

void verbs_executor::stage_inline(const op& o) {
  const std::size_t place = staged_;
  ibv_send_wr& wr = stage(o, 0);
  if (o.has_immediate) wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, wr.imm_data = htonl(o.immediate);
  if (o.bytes == 0) return;
  ibv_sge& span = spans_of(place)[0];
  wr.num_sge = 1;
  span.length = static_cast<std::uint32_t>(o.bytes);
  unsigned char* at;
  if (o.bytes <= s_.max_inline) {
    at = small_.data() + place * s_.max_inline;
    wr.send_flags = IBV_SEND_INLINE;
    span.lkey = 0;
  } else {
    at = s_.bounce + (bounce_next_++ % s_.bounce_slots) * s_.bounce_bytes;
    span.lkey = s_.bounce_lkey;
    bounced_.push_back(wr.wr_id);
  }
  std::memcpy(at, o.inlined.data(), o.bytes);
  span.addr = reinterpret_cast<std::uint64_t>(at);
}

void verbs_executor::stage_spans(const op& o, std::uint32_t requests) {
  std::uint64_t moved = 0;
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < requests; ++i) {
    ibv_sge* spans = spans_of(staged_);
    ibv_send_wr& wr = stage(o, moved);
    if (o.has_immediate && i + 1 == requests) wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, wr.imm_data = htonl(o.immediate);
    for (; next < o.span_count && wr.num_sge < static_cast<int>(s_.max_sge); ++next) {
      const span_ref& s = o.spans[next];
      // To some devices a length of 0 means 2 GiB (rdma-core providers/mlx5/qp.c).
      if (s.bytes == 0) continue;
      spans[wr.num_sge++] = {s.address, s.bytes, s.key};
      moved += s.bytes;
    }
  }
}

void verbs_executor::stage_atomic(const op& o) {
  ibv_sge* spans = spans_of(staged_);
  ibv_send_wr& wr = stage(o, 0);
  wr.opcode = o.change.is_add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.remote_addr = o.remote;
  wr.wr.atomic.rkey = o.remote_key;
  wr.wr.atomic.compare_add = o.change.is_add ? o.change.operand : o.change.compare;
  wr.wr.atomic.swap = o.change.is_add ? 0 : o.change.operand;
  wr.num_sge = 1;
  spans[0] = {o.spans[0].address, o.spans[0].bytes, o.spans[0].key};
}

// --- Going on ----------------------------------------------------------------------------------------

void verbs_executor::post() {
  for (std::uint32_t i = 0; i < staged_; ++i) {
    ++unasked_;
    if (asked_[i] || unasked_ >= k_ask_every || i + 1 == staged_) {
      chain_[i].send_flags |= IBV_SEND_SIGNALED;
      unasked_ = 0;
    }
    chain_[i].next = i + 1 == staged_ ? nullptr : &chain_[i + 1];
  }
  ibv_send_wr* bad = nullptr;
  const int err = ibv_post_send(s_.qp, chain_.data(), &bad);
  posted_ += staged_;
  staged_ = 0;
  staged_bytes_ = 0;
  // Ops posted before the refused one may never complete by themselves, so all of them count as failed.
  if (err != 0) give_up(static_cast<std::uint32_t>(err), "not posted");
}

std::uint64_t verbs_executor::advance(std::uint64_t) {
  if (failed_) return 0;
  std::uint64_t moved = 0;
  if (staged_ != 0) {
    moved = std::max<std::uint64_t>(staged_bytes_, 1);
    post();
  }
  ibv_wc wcs[k_poll];
  int n = k_poll;
  while (n == k_poll && !failed_) {
    n = ibv_poll_cq(s_.cq, k_poll, wcs);
    if (n < 0) {
      give_up(static_cast<std::uint32_t>(-n), "completions cannot be read");
      break;
    }
    for (int i = 0; i < n && !failed_; ++i) collect(wcs[i]);
    if (n > 0) moved = std::max<std::uint64_t>(moved, 1);
  }
  return moved;
}

void verbs_executor::collect(const ibv_wc& wc) {
  // Completions of the device are checked like messages of a peer.
  if (wc.wr_id < done_ || wc.wr_id >= posted_) {
    give_up(wc.vendor_err, "a completion of no request under way");
    return;
  }
  if (wc.status != IBV_WC_SUCCESS) {
    stop(wc.wr_id, error_of(wc.status), wc.vendor_err, ibv_wc_status_str(wc.status));
    return;
  }
  done_ = wc.wr_id + 1;
  while (!bounced_.empty() && bounced_.front() < done_) bounced_.pop_front();
}

// Requests below `at` have completed; nothing behind it will.
void verbs_executor::stop(std::uint64_t at, op_error f, std::uint32_t vendor, const char* text) {
  done_ = at;
  failed_at_ = at;
  failed_ = f;
  vendor_ = vendor;
  log::info("{}: request {}: {} (vendor's code {:#x})", s_.ends, at, text, vendor);
}

// For failures that the device knows nothing of: it would go on with what it has, while its memory may be used anew.
void verbs_executor::give_up(std::uint32_t vendor, const char* text) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  if (const int err = ibv_modify_qp(s_.qp, &a, IBV_QP_STATE); err != 0)
    log::warn("{}: failed, and does not go to ERR: {}", s_.ends, errno_text(err));
  stop(done_, {outcome::local_qp_operation, rule::none}, vendor, text);
}

bool verbs_executor::ended(op_error* how) {
  if (ops_.empty()) return false;
  const begun& oldest = ops_.front();
  if (failed_ && oldest.end > failed_at_)
    *how = failed_;
  else if (oldest.end <= done_)
    *how = oldest.refused;
  else
    return false;
  if (oldest.refused) {
    failed_ = oldest.refused;
    failed_at_ = done_;
  }
  ops_.pop_front();
  return true;
}

}  // namespace xio::proxy
