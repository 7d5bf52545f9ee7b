// SPDX-License-Identifier: MIT
#include "proxy/ofi_executor.hpp"

#include <rdma/fi_errno.h>

#include <cstring>

#include "base/log.hpp"
#include "proxy/memory_ops.hpp"

namespace xio::proxy::ofi {

namespace {

// A read of how many immediates the peer has room for is no message of an op.
constexpr std::uint64_t k_no_number = ~std::uint64_t{0};
constexpr std::chrono::microseconds k_rnr_timer{640};  // as verbs_queue.cpp asks of devices
constexpr unsigned k_rnr_for_ever = 7;
// One queue pair takes at most this share of an endpoint, so that a dead peer does not stand in the way of the living.
constexpr std::size_t k_share = 4;
constexpr std::size_t k_least_share = k_max_spans + 1;

constexpr int k_no_translation = 36;  // of cxi's NIC

constexpr std::size_t index_of(kind k) { return static_cast<std::size_t>(k); }

std::uint64_t mask_of(unsigned width) { return width == 4 ? 0xffffffffu : ~std::uint64_t{0}; }

// The provider's op for a change; false: there is none.
bool translate(const atomic_change& c, atomic_form& m) {
  const std::uint64_t all = mask_of(c.width);
  m.type = c.width == 4 ? FI_UINT32 : FI_UINT64;
  m.operand = c.operand & all;
  if (c.is_add) {
    m.change = (c.boundary & all) == all ? FI_BXOR : FI_SUM;
    return (c.boundary & all) == 0 || (c.boundary & all) == all;
  }
  const std::uint64_t swap = c.swap_mask & all, compare = c.compare_mask & all;
  if (compare == 0 && swap == all) {
    m.change = FI_ATOMIC_WRITE;
    return true;
  }
  m.compares = true;
  m.change = compare == 0 ? FI_MSWAP : FI_CSWAP;
  m.compare = compare == 0 ? swap : c.compare & all;
  return compare == 0 || (compare == all && swap == all);
}

// Numbers of the provider's own tell more than the library's, where they are known: those of cxi are its NIC's (C_RC in
// its cassini headers).
op_error error_of(const failure& f, const std::string& provider) {
  if (provider == "cxi") switch (f.code) {
      case 5:   // PERM_VIOLATION
      case 18:  // ENTRY_NOT_FOUND
      case 52:  // ADDR_OUT_OF_RANGE
        return {outcome::remote_access, rule::peer_refused};
      case 41: return {outcome::remote_invalid_request, rule::atomic_alignment};  // AMO_ALIGN
      case k_no_translation: return {outcome::remote_operation, rule::peer_refused};
      default: break;
    }
  switch (f.err) {
    case FI_EACCES:
    case FI_EPERM:
    case FI_ENOKEY: return {outcome::remote_access, rule::peer_refused};
    case FI_ENOMEM: return {outcome::remote_operation, rule::peer_refused};
    default: return {outcome::retry_exceeded, rule::link_lost};
  }
}

}  // namespace

void* local_memory::local_key(std::uint32_t lkey) const {
  const auto found = registrations.find(lkey);
  return found == registrations.end() || found->second == nullptr ? nullptr : fi_mr_desc(found->second.get());
}

// --- Taking ops ----------------------------------------------------------------------------------------

// Before anything is posted. The requester looks at its own memory first, as in hardware.
op_error executor::check(const op& o) const {
  if (const op_error f = check_local(w_.memory->keys, o)) return f;
  if (o.what == verb::atomic) {
    if (atomic_form form; !translate(o.change, form)) return {outcome::remote_operation, rule::entry_modifier};
    if ((o.remote & (o.change.width - 1u)) != 0) return {outcome::remote_invalid_request, rule::atomic_alignment};
    if (o.span_count != 1 || o.spans[0].bytes != o.change.width) return {outcome::local_length, rule::data_length};
  }
  if (o.has_immediate && w_.ring.key == 0) return {outcome::rnr_retry_exceeded, rule::not_connected};
  if (messages_of(o) > std::max(k_least_share, w_.by->by().what().under_way / k_share))
    return {outcome::local_length, rule::entry_segments};
  remote_place place;
  return o.bytes == 0 ? op_error{} : locate(place, o);
}

// Where the op's remote bytes are, as the provider addresses them.
op_error executor::locate(remote_place& to, const op& o) const {
  const auto found = std::ranges::find_if(*w_.theirs, [&](const remote_memory& r) { return r.rkey == o.remote_key; });
  if (found == w_.theirs->end()) return {outcome::remote_access, rule::remote_key};
  const std::uint64_t at = o.remote - found->base;
  if (o.remote < found->base || at > found->bytes || o.bytes > found->bytes - at)
    return {outcome::remote_access, rule::remote_range};
  if ((found->allowed & remote_right(o.what)) == 0) return {outcome::remote_access, rule::remote_rights};
  to.key = found->key;
  to.remote = w_.by->by().what().virtual_addresses ? o.remote : o.remote - found->base;
  return {};
}

std::size_t executor::messages_of(const op& o) const {
  std::size_t n = o.has_immediate ? 1 : 0;
  if (o.bytes == 0 || o.what == verb::nop) return n;
  if (o.is_inline || o.what == verb::atomic) return n + 1;
  return n + static_cast<std::size_t>(std::count_if(o.spans.begin(), o.spans.begin() + o.span_count,
                                                    [](const span_ref& s) { return s.bytes != 0; }));
}

bool executor::begin(const op& o) {
  if (failed_ || (!ops_.empty() && ops_.back().refused)) return false;
  const op_error refused = check(o);
  if (!refused) {
    const std::size_t wanted = messages_of(o), most = w_.by->by().what().under_way;
    const std::size_t mine = completed_.size();
    if (wanted > w_.by->room() || (mine != 0 && mine + wanted > std::max(k_least_share, most / k_share))) return false;
    if (o.what == verb::atomic)
      add_atomic(o);
    else if (o.bytes != 0 && o.what != verb::nop)
      add_copies(o);
    if (o.has_immediate) add_immediate(o);
  }
  if (staged_.size() == next_ - done_) progress_ = clock::now();
  ops_.push_back({next_, refused});
  return true;
}

message& executor::add(kind what, const op& o) {
  message& m = w_.by->take(this);
  m.number = next_++;
  m.what = what;
  m.to = w_.to;
  m.bytes = o.bytes;
  staged_.push_back(&m);
  completed_.push_back(false);
  return m;
}

void executor::add_copies(const op& o) {
  const kind what = o.what == verb::read ? kind::read : kind::write;
  if (o.is_inline) {
    if (!w_.words_whole && (o.bytes == 4 || o.bytes == 8) && o.remote % o.bytes == 0) return add_word(o);
    message& m = add(what, o);
    std::copy_n(o.inlined.data(), o.bytes, m.inlined.data());
    m.local = m.inlined.data();
    locate(m, o);
    return;
  }
  std::uint64_t skipped = 0;
  for (std::uint32_t i = 0; i < o.span_count; ++i) {
    const span_ref& s = o.spans[i];
    if (s.bytes == 0) continue;
    message& m = add(what, o);
    unsigned char* place = nullptr;
    find_local(w_.memory->keys, s, local_right(o.what), &place);
    locate(m, o);
    m.remote += skipped;
    m.bytes = s.bytes;
    m.local = place;
    m.local_key = w_.memory->local_key(s.key);
    skipped += s.bytes;
  }
}

// Somebody may poll it as a flag, and providers that copy by the CPU may store it in parts.
void executor::add_word(const op& o) {
  message& m = add(kind::atomic, o);
  locate(m, o);
  m.is_word = true;
  m.change = FI_ATOMIC_WRITE;
  m.type = o.bytes == 4 ? FI_UINT32 : FI_UINT64;
  m.operand = 0;
  std::memcpy(&m.operand, o.inlined.data(), o.bytes);
}

void executor::add_atomic(const op& o) {
  message& m = add(kind::atomic, o);
  locate(m, o);
  translate(o.change, m);
  m.result_at = o.spans[0];
  m.big_endian_result = o.change.big_endian_result;
}

void executor::add_immediate(const op& o) {
  message& m = add(kind::write, o);
  const std::uint64_t word = immediate_word(immediates_, o.immediate);
  std::memcpy(m.inlined.data(), &word, sizeof word);
  m.local = m.inlined.data();
  m.bytes = sizeof word;
  m.remote = w_.ring.at + immediates_ % k_immediates * sizeof word;
  m.key = w_.ring.key;
  m.is_immediate = true;
  ++immediates_;
}

// --- Posting -------------------------------------------------------------------------------------------

bool executor::may_follow(const message& m) const {
  if (long_writes_ != 0) return false;
  const order_table& follows = w_.by->by().what().follows;
  for (std::size_t k = 0; k < k_kinds; ++k)
    if (under_way_[k] != 0 && !follows[k][index_of(m.what)]) return false;
  return true;
}

// Of the peer's inbox, for an immediate, which has been accepted when it is there. The peer takes no part: its word is
// read before the room that is known is used up.
bool executor::has_room_there(const message& m) {
  if (!m.is_immediate) return true;
  const std::uint64_t left = immediates_most_ - immediates_posted_;
  if (left < k_immediates / 2) ask_for_room();
  if (left != 0) {
    full_since_ = {};
    return true;
  }
  if (full_since_ != clock::time_point{} && w_.rnr_retries != k_rnr_for_ever &&
      clock::now() - full_since_ > w_.rnr_retries * k_rnr_timer)
    stop(m.number, {outcome::rnr_retry_exceeded, rule::none}, "the peer takes no immediates", 0);
  return false;
}

void executor::ask_for_room() {
  if (asks_ || w_.by->room() == 0) return;
  message& m = w_.by->take(this);
  m.number = k_no_number;
  m.what = kind::read;
  m.to = w_.to;
  m.local = &m.result;
  m.bytes = sizeof m.result;
  m.remote = w_.ring.at + k_immediates * sizeof m.result;
  m.key = w_.ring.key;
  asks_ = w_.by->post(m) == 0;
  if (!asks_) w_.by->give_back(m);
}

// Posts what may be posted, in order. True if anything was.
bool executor::post() {
  bool any = false;
  while (!failed_ && !staged_.empty()) {
    message& m = *staged_.front();
    if (!may_follow(m) || !has_room_there(m)) break;
    const long err = w_.by->post(m);
    if (err == -FI_EAGAIN) break;
    if (err != 0) {
      stop(m.number, {outcome::local_qp_operation, rule::none}, w_.by->by().lib().text_of(err).c_str(),
           static_cast<int>(err));
      break;
    }
    staged_.pop_front();
    ++under_way_[index_of(m.what)];
    if (m.what == kind::write && m.bytes > w_.by->by().what().most_ordered_write) ++long_writes_;
    if (m.is_immediate) ++immediates_posted_;
    any = true;
  }
  return any;
}

std::uint64_t executor::advance(std::uint64_t) {
  bool any = post();
  if (any) progress_ = clock::now();
  any |= w_.by->poll();
  check_time();
  return any ? 1 : 0;
}

// A provider may reply "later" for ever while it connects anew to a peer that is dead.
void executor::check_time() {
  if (failed_ || staged_.empty() || w_.patience.count() == 0 || full_since_ != clock::time_point{}) return;
  if (clock::now() - progress_ > w_.patience)
    stop(staged_.front()->number, {outcome::retry_exceeded, rule::link_lost}, "nothing is taken or completed", 0);
}

// --- Completions ---------------------------------------------------------------------------------------

void executor::completed(message& m, const failure* why) {
  if (m.number == k_no_number) {
    asks_ = false;
    // The peer's word is checked: its ring has no more room than this.
    if (why == nullptr && m.result <= immediates_posted_ + k_immediates)
      immediates_most_ = std::max(immediates_most_, m.result);
    // Only the peer's word says so: the first one may take as long as a connection does.
    if (why == nullptr && immediates_most_ == immediates_posted_ && full_since_ == clock::time_point{} &&
        !staged_.empty() && staged_.front()->is_immediate)
      full_since_ = clock::now();
    return;
  }
  --under_way_[index_of(m.what)];
  progress_ = clock::now();
  if (m.what == kind::write && m.bytes > w_.by->by().what().most_ordered_write) --long_writes_;
  op_error f = why != nullptr ? error_of(*why, w_.by->by().what().provider) : op_error{};
  if (!f && m.what == kind::atomic && !m.is_word) {
    unsigned char* place;
    f = find_local(w_.memory->keys, m.result_at, local_write, &place);
    atomic_change form{};
    form.width = m.type == FI_UINT32 ? 4 : 8;
    form.big_endian_result = m.big_endian_result;
    if (!f) store_result(w_.memory->payload, place, form, m.result);
  }
  if (f) return stop(m.number, f, why != nullptr ? why->text.c_str() : "its result has no place", why ? why->code : 0);
  completed_[m.number - done_] = true;
  while (!completed_.empty() && completed_.front()) {
    completed_.pop_front();
    ++done_;
  }
  if (m.what != kind::write) w_.memory->payload.fence();
}

// The first failure counts. Messages that are not posted never will be.
void executor::stop(std::uint64_t number, op_error f, const char* text, int code) {
  if (failed_ && number >= failed_at_) return;
  log::info("{}: message {}: {} (the provider's code {})", w_.ends, number, text, code);
  if (code == k_no_translation && w_.by->by().what().provider == "cxi")
    log::warn(
        "{}: the NIC has lost memory that was registered with it, as it does with GPU memory that amdgpu has moved; "
        "with AMD's driver package set FI_HMEM_ROCR_USE_DMABUF=0, else XIO_HEAP_KIND=host",
        w_.ends);
  failed_ = f;
  failed_at_ = number;
  for (message* m : staged_) w_.by->give_back(*m);
  staged_.clear();
}

// A failed op is reported when the provider has let go of all memory that it was given for this peer.
bool executor::ended(op_error* how) {
  if (ops_.empty()) return false;
  const begun& oldest = ops_.front();
  if (oldest.end <= done_) {
    *how = oldest.refused;
  } else {
    if (!failed_ || std::ranges::any_of(under_way_, [](auto n) { return n != 0; })) return false;
    *how = failed_;
  }
  if (oldest.refused) {
    failed_ = oldest.refused;
    failed_at_ = done_;
  }
  ops_.pop_front();
  return true;
}

}  // namespace xio::proxy::ofi
