// SPDX-License-Identifier: MIT
#include "proxy/tcp_requester.hpp"

#include "base/log.hpp"
#include "proxy/memory_ops.hpp"

namespace xio::proxy::tcp {

namespace {

constexpr std::size_t k_slots = 256, k_first_slots = 8;
// Frames under way: 8 MiB of writes, 2 MiB of reads. The responder keeps as many atomics' replies.
constexpr std::uint64_t k_window = 128, k_read_window = 32;
constexpr std::chrono::milliseconds k_rnr_wait{1};

std::uint32_t frames_of(const op& o) {
  if (o.what == verb::nop) return 0;
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>((o.bytes + k_segment - 1) / k_segment));
}

std::uint32_t bytes_of(const op& o, std::uint32_t frame) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(k_segment, o.bytes - std::uint64_t{frame} * k_segment));
}

// Calls use(place in memory, offset, bytes) for each span's share of [from, from + bytes).
template <class Use>
op_error over_spans(const key_table& keys, const op& o, std::uint64_t from, std::uint32_t bytes, std::uint32_t wanted,
                    Use&& use) {
  std::uint32_t moved = 0;
  for (std::uint32_t i = 0; i < o.span_count && moved < bytes; ++i) {
    const span_ref& s = o.spans[i];
    if (from >= s.bytes) {
      from -= s.bytes;
      continue;
    }
    unsigned char* mine;
    if (const op_error f = find_local(keys, s, wanted, &mine)) return f;
    const auto piece = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - moved, s.bytes - from));
    use(mine + from, moved, piece);
    moved += piece;
    from = 0;
  }
  return {};
}

}  // namespace

requester::requester(const payload_agent& payload, const key_table& keys, const tcp_settings& settings,
                     std::uint32_t number, std::uint32_t remote_number, std::shared_ptr<link> way)
    : payload_(payload),
      keys_(keys),
      settings_(settings),
      number_(number),
      remote_number_(remote_number),
      link_(std::move(way)),
      slots_(k_first_slots) {}

// --- Ops ---------------------------------------------------------------------------------------------

// A NIC has queue pairs to all PEs, most of them idle.
bool requester::find_slot() {
  if (tail_ - head_ < slots_.size()) return true;
  if (slots_.size() == k_slots) return false;
  std::vector<slot> more(2 * slots_.size());
  for (std::uint64_t i = head_; i != tail_; ++i) more[i % more.size()] = at(i);
  slots_ = std::move(more);
  return true;
}

bool requester::begin(const op& o) {
  if (!find_slot()) return false;
  slot& s = at(tail_);
  copy_used(s.o, o);
  s.first_psn = next_psn_;
  s.frames = frames_of(o);
  s.replied = 0;
  next_psn_ += s.frames;
  if (const op_error f = check_local(keys_, o)) stop(tail_, f);
  if (o.what == verb::read || o.what == verb::atomic) awaiting_reply_.push_back(tail_);
  // An idle queue pair's clock stands still.
  if (tail_ == head_) progress_ = clock::now();
  ++tail_;
  return true;
}

bool requester::done(const slot& s) const {
  if (s.o.what == verb::read || s.o.what == verb::atomic) return s.replied == s.frames;
  return acked_ >= s.first_psn + s.frames;
}

bool requester::ended(op_error* how) {
  if (head_ == tail_) return false;
  if (head_ >= stop_at_) {
    *how = stop_why_;
  } else if (done(at(head_))) {
    *how = {};
  } else {
    return false;
  }
  if (!awaiting_reply_.empty() && awaiting_reply_.front() == head_) awaiting_reply_.pop_front();
  if (++head_ == tail_) link_->leave_line(this);
  if (send_op_ < head_) {
    send_op_ = head_;
    send_frame_ = 0;
  }
  return true;
}

void requester::stop(std::uint64_t index, op_error f) {
  if (index >= stop_at_) return;
  stop_at_ = index;
  stop_why_ = f;
  link_->leave_line(this);
}

// --- Sending -----------------------------------------------------------------------------------------

std::uint64_t requester::awaited() const {
  for (const std::uint64_t index : awaiting_reply_)
    if (const slot& s = at(index); s.replied != s.frames) return s.first_psn + s.replied;
  return ~std::uint64_t{0};
}

std::uint64_t requester::missing() const { return std::min(acked_, awaited()); }

void requester::poll_link() {
  if (!link_->lost()) return;
  std::uint64_t index = head_;
  while (index != tail_ && done(at(index))) ++index;
  if (index < stop_at_)
    log::warn("queue pair {} fails: the link to PE {} is lost: {}", number_, link_->pe(), link_->why());
  stop(index, {outcome::retry_exceeded, rule::link_lost});
}

void requester::give_up(const std::string& what) {
  log::warn("queue pair {} to PE {}: {}", number_, link_->pe(), what);
  stop(index_of(missing()), {outcome::retry_exceeded, rule::link_lost});
}

void requester::check_time(clock::time_point now) {
  if (settings_.ack_timeout.count() == 0) return;
  if (!link_->up() || now < not_before_ || (missing() >= sent_ && !link_->stands_in_line(this))) {
    progress_ = now;
    return;
  }
  if (settings_.faults == nullptr) {
    // The frame may lie behind the bytes that the peer is taking.
    progress_ = std::max(progress_, link_->moved_at(now));
    if (const auto silence = settings_.ack_timeout * (settings_.retries + 1); now - progress_ >= silence)
      give_up(fmt::format("frame {} was never acknowledged, and the link stood still for {} ms", missing(),
                          std::chrono::duration_cast<std::chrono::milliseconds>(silence).count()));
    return;
  }
  if (now - progress_ < settings_.ack_timeout) return;
  progress_ = now;
  if (++tries_ > settings_.retries) {
    give_up(fmt::format("frame {} was sent {} times and never acknowledged", missing(), tries_));
  } else {
    went_back_ = ~std::uint64_t{0};
    go_back(missing());
  }
}

bool requester::may_send() const {
  if (send_op_ >= std::min(tail_, stop_at_)) return false;
  const slot& s = at(send_op_);
  const std::uint64_t psn = s.first_psn + send_frame_;
  const std::uint64_t first = missing();
  return psn < first + (s.o.what == verb::read ? k_read_window : k_window);
}

std::uint64_t requester::advance(std::uint64_t budget) {
  if (head_ == tail_) return 0;
  poll_link();
  const auto now = clock::now();
  check_time(now);
  const bool may_begin = link_->up() && now >= not_before_;
  std::uint64_t moved = 0;
  while (moved < budget) {
    if (!may_begin || !may_send()) {
      link_->leave_line(this);
      break;
    }
    if (!link_->has_turn(this)) break;
    moved += send_one();
  }
  return moved;
}

// One frame. At least 1.
std::uint32_t requester::send_one() {
  slot& s = at(send_op_);
  if (s.frames == 0) {
    ++send_op_;
    return 1;
  }
  const op& o = s.o;
  const std::uint32_t bytes = bytes_of(o, send_frame_);
  const std::uint64_t from = std::uint64_t{send_frame_} * k_segment;
  frame_head h{};
  h.kind = o.what == verb::write ? frame_kind::write : o.what == verb::read ? frame_kind::read : frame_kind::atomic;
  h.bytes = o.what == verb::atomic ? static_cast<std::uint32_t>(sizeof(atomic_body)) : bytes;
  h.to = remote_number_;
  h.from = number_;
  h.psn = s.first_psn + send_frame_;
  h.address = o.remote + from;
  h.key = o.remote_key;
  if (send_frame_ + 1 == s.frames) h.flags = last_of_op | (o.has_immediate ? with_immediate : 0);
  h.immediate = o.immediate;
  h.op_bytes = o.bytes;
  unsigned char* room = link_->begin(h);
  if (room == nullptr) return 0;
  if (o.what == verb::write) {
    // On failure the frame is not put, and the next one takes its place.
    if (const op_error f = gather(o, from, bytes, room)) {
      stop(send_op_, f);
      return 1;
    }
  } else if (o.what == verb::atomic) {
    const atomic_change& c = o.change;
    const atomic_body body{c.is_add, c.width, c.operand, c.boundary, c.compare, c.swap_mask, c.compare_mask};
    std::memcpy(room, &body, sizeof body);
  }
  link_->put();
  sent_ = std::max(sent_, h.psn + 1);
  if (++send_frame_ == s.frames) {
    send_frame_ = 0;
    ++send_op_;
  }
  return std::max<std::uint32_t>(bytes, 1);
}

op_error requester::gather(const op& o, std::uint64_t from, std::uint32_t bytes, unsigned char* to) const {
  if (o.is_inline) {
    std::memcpy(to, o.inlined.data() + from, bytes);
    return {};
  }
  return over_spans(
      keys_, o, from, bytes, local_read,
      [&](const unsigned char* mine, std::uint32_t at, std::uint32_t piece) { payload_.copy(to + at, mine, piece); });
}

op_error requester::scatter(const op& o, std::uint64_t from, std::uint32_t bytes, const unsigned char* data) const {
  return over_spans(keys_, o, from, bytes, local_write,
                    [&](unsigned char* mine, std::uint32_t at, std::uint32_t piece) {
                      store_bytes(payload_, mine, data + at, piece);
                    });
}

// --- What comes back -----------------------------------------------------------------------------------

std::uint64_t requester::index_of(std::uint64_t psn) const {
  std::uint64_t index = head_;
  while (index != tail_ && psn >= at(index).first_psn + at(index).frames) ++index;
  return index;
}

void requester::go_back(std::uint64_t psn) {
  const std::uint64_t index = index_of(psn);
  if (index > send_op_ || index == tail_) return;
  const slot& s = at(index);
  const std::uint32_t frame = psn > s.first_psn ? static_cast<std::uint32_t>(psn - s.first_psn) : 0;
  if (index == send_op_ && frame >= send_frame_) return;
  send_op_ = index;
  send_frame_ = frame;
}

void requester::progress() {
  progress_ = clock::now();
  tries_ = rnr_tries_ = 0;
}

void requester::acknowledge(std::uint64_t below) {
  if (below <= acked_) return;
  acked_ = below;
  progress();
}

// A frame that came shows that the reply to `psn` was lost. It is requested again once; then the timeout decides.
void requester::reply_lost(std::uint64_t psn) {
  if (went_back_ == psn) return;
  went_back_ = psn;
  go_back(psn);
}

bool requester::handle_reply(const frame_head& h, const unsigned char* payload) {
  acknowledge(h.psn + 1);
  const std::uint64_t wanted = awaited();
  if (h.psn < wanted && wanted != ~std::uint64_t{0}) return true;  // once more
  if (wanted == ~std::uint64_t{0}) return true;
  if (h.psn > wanted) {
    reply_lost(wanted);
    return true;
  }
  const std::uint64_t index = index_of(wanted);
  slot& s = at(index);
  if (index >= stop_at_) return true;
  if ((s.o.what == verb::atomic) != (h.kind == frame_kind::atomic_data)) return false;
  if (s.o.what == verb::atomic) {
    unsigned char* place;
    std::uint64_t old;
    if (h.bytes != sizeof old) return false;
    std::memcpy(&old, payload, sizeof old);
    if (const op_error f = find_local(keys_, s.o.spans[0], local_write, &place))
      stop(index, f);
    else
      store_result(payload_, place, s.o.change, old);
  } else {
    if (h.bytes != bytes_of(s.o, s.replied)) return false;
    if (const op_error f = scatter(s.o, std::uint64_t{s.replied} * k_segment, h.bytes, payload)) stop(index, f);
  }
  if (++s.replied == s.frames) payload_.fence();
  progress();
  return true;
}

bool requester::handle_refusal(const frame_head& h) {
  if (h.what != outcome::remote_access && h.what != outcome::remote_invalid_request &&
      h.what != outcome::remote_operation)
    return false;
  if (h.why > rule::peer_refused) return false;
  if (h.psn < acked_) return true;  // an old one, overtaken
  acknowledge(h.psn);
  if (const std::uint64_t wanted = awaited(); wanted < h.psn)
    reply_lost(wanted);
  else
    stop(index_of(h.psn), {h.what, h.why});
  return true;
}

bool requester::handle(const frame_head& h, const unsigned char* payload) {
  const bool names_one = h.kind != frame_kind::ack && h.kind != frame_kind::again;
  if (h.psn > sent_ || (names_one && h.psn == sent_)) return false;
  switch (h.kind) {
    case frame_kind::ack:
      acknowledge(h.psn);
      if (const std::uint64_t wanted = awaited(); wanted < h.psn) reply_lost(wanted);
      return true;
    case frame_kind::again:
      acknowledge(h.psn);
      go_back(std::max(h.psn, missing()));
      return true;
    case frame_kind::not_ready:
      if (h.psn < acked_) return true;
      acknowledge(h.psn);
      if (settings_.rnr_retries < 7 && ++rnr_tries_ > settings_.rnr_retries) {
        stop(index_of(h.psn), {outcome::rnr_retry_exceeded, rule::not_connected});
      } else {
        not_before_ = clock::now() + k_rnr_wait;
        go_back(h.psn);
      }
      return true;
    case frame_kind::refused: return handle_refusal(h);
    case frame_kind::read_data:
    case frame_kind::atomic_data: return handle_reply(h, payload);
    default: return false;
  }
}

}  // namespace xio::proxy::tcp
