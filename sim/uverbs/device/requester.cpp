// SPDX-License-Identifier: MIT
#include "uverbs/device/requester.hpp"

#include <cstring>

#include "proxy/memory_ops.hpp"

namespace uverbs {

using namespace xio::proxy;

namespace {

// 4.096 us * 2^timeout for each try (InfiniBand specification, 9.7.6.1.3), and at least what a busy host needs for one.
std::chrono::nanoseconds patience_of(const firmware::queue_pair& q) {
  if (q.timeout == 0) return std::chrono::nanoseconds(0);
  const auto one = std::chrono::nanoseconds(4096ull << q.timeout);
  return std::max<std::chrono::nanoseconds>(one * (q.retries + 1), std::chrono::seconds(3));
}

// The last byte of ::ffff:10.0.0.HOST.
std::uint32_t host_of(const firmware::queue_pair& q) { return q.remote_gid[15]; }

}  // namespace

requester::requester(const settings& s, std::uint32_t qpn, const firmware::queue_pair& q,
                     const xio::payload_agent& payload, const key_table& keys)
    : host_(s.host),
      qpn_(qpn),
      remote_qpn_(q.remote_qpn),
      payload_(payload),
      keys_(keys),
      patience_(patience_of(q)),
      sender_(s.session, host_of(q)),
      out_(std::make_unique<request_message>()),
      in_(std::make_unique<response_message>()),
      psn_(q.send_psn),
      most_held_up_(q.rnr_retries) {}

bool requester::begin(const op& o) {
  if (stage_ != stage::idle) return false;
  copy_used(op_, o);
  moved_ = 0;
  how_ = {};
  since_ = clock::now();
  if (op_.what == verb::nop) {
    stage_ = stage::over;
  } else if (const op_error f = check_local(keys_, op_)) {
    end(f);
  } else if (op_.what == verb::atomic && (op_.remote & (op_.change.width - 1u)) != 0) {
    end({outcome::remote_invalid_request, rule::atomic_alignment});
  } else {
    compose();
  }
  return true;
}

void requester::end(op_error how) {
  how_ = how;
  stage_ = stage::over;
}

// The next piece, which lies in one span.
void requester::compose() {
  std::uint64_t into = moved_;
  std::uint32_t i = 0;
  while (!op_.is_inline && i < op_.span_count && into >= op_.spans[i].bytes) into -= op_.spans[i++].bytes;
  const bool spans = !op_.is_inline && i < op_.span_count;
  std::uint64_t bytes = op_.is_inline ? op_.bytes
                        : spans       ? std::min<std::uint64_t>(op_.spans[i].bytes - into, k_piece)
                                      : 0;
  if (op_.what == verb::atomic) bytes = op_.change.width;
  out_->head = {host_,
                qpn_,
                remote_qpn_,
                psn_,
                op_.what,
                op_.has_immediate && moved_ + bytes == op_.bytes,
                op_.immediate,
                op_.remote_key,
                static_cast<std::uint32_t>(bytes),
                op_.remote + moved_,
                op_.change};
  if (op_.what == verb::write && op_.is_inline) {
    std::memcpy(out_->data, op_.inlined.data(), bytes);
  } else if (op_.what == verb::write && spans) {
    unsigned char* from;
    if (const op_error f = find_local(keys_, op_.spans[i], local_read, &from)) return end(f);
    payload_.copy(out_->data, from + into, bytes);
  }
  stage_ = stage::sending;
}

// Puts what came back into its span.
void requester::take() {
  if (in_->head.is_not_ready) {
    stage_ = stage::held_up;
    // InfiniBand specification 9.7.5.2.8: 7 is for ever.
    if (++held_up_ > most_held_up_ && most_held_up_ != 7) end({outcome::rnr_retry_exceeded, rule::link_lost});
    return;
  }
  held_up_ = 0;
  ++psn_;
  if (in_->head.how) return end(in_->head.how);
  std::uint64_t into = moved_;
  std::uint32_t i = 0;
  while (i < op_.span_count && op_.what != verb::write && into >= op_.spans[i].bytes) into -= op_.spans[i++].bytes;
  if (op_.what != verb::write && i < op_.span_count) {
    unsigned char* to;
    if (const op_error f = find_local(keys_, op_.spans[i], local_write, &to)) return end(f);
    if (op_.what == verb::atomic)
      store_result(payload_, to, op_.change, in_->head.old);
    else
      store_bytes(payload_, to + into, in_->data, in_->head.bytes);
  }
  moved_ += out_->head.bytes;
  if (moved_ >= op_.bytes)
    end({});
  else
    compose();
}

std::uint64_t requester::advance(std::uint64_t) {
  const std::uint64_t before = moved_;
  if (stage_ == stage::sending && sender_.send(*out_)) {
    stage_ = stage::waiting;
    return 1;
  }
  if (stage_ == stage::waiting && sender_.receive(*in_)) {
    since_ = clock::now();
    take();
    return std::max<std::uint64_t>(moved_ - before, 1);
  }
  // The time of the receiver's code 12.
  if (stage_ == stage::held_up && clock::now() - since_ > std::chrono::microseconds(640)) stage_ = stage::sending;
  const bool under_way = stage_ == stage::sending || stage_ == stage::waiting;
  if (under_way && patience_.count() != 0 && clock::now() - since_ > patience_)
    end({outcome::retry_exceeded, rule::link_lost});
  return 0;
}

bool requester::ended(op_error* how) {
  if (stage_ != stage::over) return false;
  *how = how_;
  stage_ = stage::idle;
  return true;
}

}  // namespace uverbs
