// SPDX-License-Identifier: MIT
#include "bootstrap/star_message.hpp"

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/bytes.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::size_t k_size_bytes = 4;
static_assert(k_data_max <= UINT32_MAX);

void store_head(std::byte* at, const exchange_head& head) {
  store_le64(at, head.number);
  store_le64(at + 8, head.count);
}

}  // namespace

std::vector<std::byte> make_message(const exchange_head& head, std::span<const std::byte> data) {
  std::vector<std::byte> m(exchange_head::k_bytes);
  store_head(m.data(), head);
  m.insert(m.end(), data.begin(), data.end());
  return m;
}

std::vector<std::byte> make_message(const exchange_head& head, const cells& all) {
  const std::size_t sizes_end = exchange_head::k_bytes + all.count() * k_size_bytes;
  std::vector<std::byte> m(sizes_end);
  m.reserve(sizes_end + all.bytes());
  store_head(m.data(), head);
  for (std::size_t r = 0; r < all.count(); ++r) {
    store_le32(m.data() + exchange_head::k_bytes + r * k_size_bytes, static_cast<std::uint32_t>(all[r].size()));
    m.insert(m.end(), all[r].begin(), all[r].end());
  }
  return m;
}

void outgoing::step() {
  to_->send_some();
  while (!to_->sending() && queued_ < message_.size()) {
    const auto piece = message_.subspan(queued_, std::min(k_frame_payload_max, message_.size() - queued_));
    to_->queue(kind_, piece);
    queued_ += piece.size();
    to_->send_some();
  }
}

incoming::incoming(sealed_link& from, const exchange_head& wanted, end receiver, std::size_t ranks)
    : from_(&from), head_(wanted), receiver_(receiver) {
  if (head_.kind == frame_kind::cells) {
    wanted_ = exchange_head::k_bytes + ranks * k_size_bytes;
    most_ = wanted_ + k_data_max;
  } else {
    wanted_ = most_ = exchange_head::k_bytes + head_.count * (receiver == end::root ? 1 : ranks);
  }
}

void incoming::step() {
  frame f;
  while (!done() && from_->receive(f)) {
    if (f.kind == frame_kind::abort) throw_abort(f, from_->who());
    take(f);
  }
}

void incoming::hear_abort() {
  frame f;
  if (from_->receive(f) && f.kind == frame_kind::abort) throw_abort(f, from_->who());
}

void incoming::check_kind(const frame& f) {
  const bool gathers = f.kind == frame_kind::gather || f.kind == frame_kind::same;
  if (!gathers && f.kind != frame_kind::cells) fail_malformed();
  if (gathers != (head_.kind == frame_kind::gather))
    fail(XIO_ERR_STATE,
         "{} is at another kind of exchange {} than this rank; every rank must make the same collective calls",
         from_->who(), head_.number);
  if (f.kind == frame_kind::same && receiver_ == end::peer && message_.empty()) {
    is_same_ = true;
    wanted_ = most_ = exchange_head::k_bytes + head_.count;
  }
  if ((f.kind == frame_kind::same) != is_same_) fail_malformed();
}

void incoming::take(const frame& f) {
  check_kind(f);
  if (f.payload.empty()) fail_malformed();  // such frames would keep this rank from its deadline
  const std::size_t before = gone_ + message_.size();
  message_.insert(message_.end(), f.payload.begin(), f.payload.end());
  const std::size_t now = before + f.payload.size();
  if (before < exchange_head::k_bytes && now >= exchange_head::k_bytes) check_head();
  if (head_.kind == frame_kind::cells && at_.empty() && now >= wanted_) learn_sizes();
  if (now > most_) fail_malformed();
}

void incoming::check_head() const {
  const std::uint64_t number = load_le64(message_.data()), count = load_le64(message_.data() + 8);
  if (number != head_.number)
    fail(XIO_ERR_STATE, "{} is at exchange {}, this rank at {}; every rank must make the same collective calls",
         from_->who(), number, head_.number);
  if (count != head_.count)
    fail(XIO_ERR_ARG, "{} gave {} {} to exchange {}, this rank {}; every rank must make the same collective calls",
         from_->who(), count, head_.kind == frame_kind::cells ? "cells" : "bytes", number, head_.count);
}

void incoming::learn_sizes() {
  std::size_t at = wanted_;
  at_.push_back(at);
  for (std::uint64_t r = 0; r < head_.count; ++r) {
    at += load_le32(message_.data() + exchange_head::k_bytes + r * k_size_bytes);
    at_.push_back(at);
  }
  if (at > most_)
    fail(XIO_ERR_PEER, "{} announces cells of {} bytes in exchange {}, and {} is the most", from_->who(),
         at - at_.front(), head_.number, k_data_max);
  most_ = at;
  if (receiver_ == end::peer) wanted_ = at;
}

void incoming::forget_cells(std::size_t end) {
  message_.erase(message_.begin(), message_.begin() + static_cast<std::ptrdiff_t>(at_[end] - gone_));
  gone_ = at_[end];
}

void incoming::fail_malformed() const {
  fail(XIO_ERR_PEER, "{} sent a malformed reply; do all ranks run the same version of XIO?", from_->who());
}

}  // namespace xio::bootstrap
