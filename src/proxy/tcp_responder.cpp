// SPDX-License-Identifier: MIT
#include "proxy/tcp_responder.hpp"

#include "proxy/memory_ops.hpp"

namespace xio::proxy::tcp {

namespace {

// A requester of this protocol has far fewer frames under way.
constexpr std::uint64_t k_ahead = 1024;
// Reads are dropped when so much of their data waits to be sent, and asked for again behind it.
constexpr std::uint64_t k_backlog = 32 << 20;

bool is_sound(const frame_head& h) {
  switch (h.kind) {
    case frame_kind::atomic: return h.bytes == sizeof(atomic_body);
    case frame_kind::write:
    case frame_kind::read: return h.address + h.bytes >= h.address;
    default: return false;
  }
}

}  // namespace

frame_head responder::reply(frame_kind kind, std::uint64_t psn) const {
  frame_head h{};
  h.kind = kind;
  h.to = remote_number_;
  h.from = number_;
  h.psn = psn;
  return h;
}

void responder::acknowledge(link& way) {
  owes_ = false;
  way.put(reply(frame_kind::ack, expected_));
}

void responder::send_refusal(link& way) {
  frame_head h = reply(frame_kind::refused, expected_);
  h.what = refused_.what;
  h.why = refused_.why;
  way.put(h);
}

bool responder::handle(const frame_head& h, const unsigned char* payload, link& way) {
  if (!is_sound(h) || h.psn > expected_ + k_ahead) return false;
  if (h.psn < expected_) {
    repeat(h, way);
    return true;
  }
  if (h.psn > expected_) {
    // Said once per gap: what is under way behind it is going to come again anyway.
    if (!asked_again_ && !refused_) way.put(reply(frame_kind::again, expected_));
    asked_again_ = true;
    return true;
  }
  asked_again_ = false;
  switch (refused_ ? end::refused : carry_out(h, payload, way)) {
    case end::done:
      ++expected_;
      owes_ = owes_ || h.kind == frame_kind::write;
      break;
    case end::not_ready: way.put(reply(frame_kind::not_ready, expected_)); break;
    case end::refused: send_refusal(way); break;
    case end::later:
      way.put(reply(frame_kind::again, expected_));
      asked_again_ = true;
      break;
  }
  return true;
}

// Done already: what the requester missed is said again. Reads are carried out again, as in InfiniBand.
void responder::repeat(const frame_head& h, link& way) {
  if (h.kind == frame_kind::write) {
    owes_ = true;
  } else if (h.kind == frame_kind::read) {
    const op_error before = refused_;
    (void)read(h, way);
    refused_ = before;
  } else if (const kept& k = kept_[h.psn % k_kept]; k.psn == h.psn) {
    frame_head back = reply(frame_kind::atomic_data, h.psn);
    back.bytes = sizeof k.old;
    if (unsigned char* room = way.begin(back)) {
      std::memcpy(room, &k.old, sizeof k.old);
      way.put();
    }
  }
}

responder::end responder::refuse(op_error f) {
  refused_ = f;
  return end::refused;
}

responder::end responder::carry_out(const frame_head& h, const unsigned char* payload, link& way) {
  switch (h.kind) {
    case frame_kind::write: return write(h, payload);
    case frame_kind::read: return read(h, way);
    default: return change(h, payload, way);
  }
}

responder::end responder::write(const frame_head& h, const unsigned char* payload) {
  unsigned char* place;
  // An op without bytes names no memory.
  if (h.bytes != 0) {
    if (const op_error f = find_remote(keys_, h.key, h.address, h.bytes, remote_write, &place)) return refuse(f);
    store_bytes(payload_, place, payload, h.bytes);
  }
  if ((h.flags & last_of_op) != 0) payload_.fence();
  if ((h.flags & with_immediate) != 0 &&
      (!settings_.on_immediate || !settings_.on_immediate(number_, h.immediate, h.op_bytes)))
    return end::not_ready;
  return end::done;
}

responder::end responder::read(const frame_head& h, link& way) {
  unsigned char* place = nullptr;
  if (h.bytes != 0)
    if (const op_error f = find_remote(keys_, h.key, h.address, h.bytes, remote_read, &place)) return refuse(f);
  if (way.backlog() > k_backlog) return end::later;
  frame_head back = reply(frame_kind::read_data, h.psn);
  back.bytes = h.bytes;
  unsigned char* room = way.begin(back);
  if (room == nullptr) return end::later;
  if (h.bytes != 0) payload_.copy(room, place, h.bytes);
  way.put();
  return end::done;
}

responder::end responder::change(const frame_head& h, const unsigned char* payload, link& way) {
  atomic_body b;
  std::memcpy(&b, payload, sizeof b);
  if ((b.width != 4 && b.width != 8) || b.is_add > 1 || (h.address & (b.width - 1)) != 0)
    return refuse({outcome::remote_invalid_request, rule::atomic_alignment});
  unsigned char* place;
  if (const op_error f = find_remote(keys_, h.key, h.address, b.width, remote_atomic, &place)) return refuse(f);
  const atomic_change c{
      b.is_add != 0, static_cast<std::uint8_t>(b.width), b.operand, b.boundary, b.compare, b.swap_mask, b.compare_mask,
      false};
  kept_[h.psn % k_kept] = {h.psn, change_word(payload_, place, c)};
  repeat(h, way);
  return end::done;
}

}  // namespace xio::proxy::tcp
