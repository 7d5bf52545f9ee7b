// SPDX-License-Identifier: MIT
#include <poll.h>

#include "base/error.hpp"
#include "base/peer_word.hpp"
#include "bootstrap/bytes.hpp"
#include "bootstrap/link.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::size_t k_length_bytes = 4;
constexpr std::size_t k_abort_sentence_max = 2048;
constexpr std::uint64_t k_abort_ms = 250;  // for sending it, and again for draining

static_assert(k_frame_tag_bytes == crypto::k_tag_bytes);

}  // namespace

sealed_link::sealed_link(byte_stream stream, const session_keys& keys, link_end us, std::string who)
    : stream_(std::move(stream)),
      seal_key_(us == link_end::root ? keys.from_root : keys.to_root),
      unseal_key_(us == link_end::root ? keys.to_root : keys.from_root),
      who_(std::move(who)) {}

void sealed_link::queue(frame_kind kind, std::span<const std::byte> payload) {
  if (payload.size() > k_frame_payload_max)
    fail(XIO_ERR_INTERNAL, "a bootstrap frame of {} bytes is too long; this is a bug of XIO, please report it",
         payload.size());
  std::vector<std::byte> plain(1 + payload.size());
  plain[0] = static_cast<std::byte>(kind);
  std::copy(payload.begin(), payload.end(), plain.begin() + 1);
  std::vector<std::byte> sealed(k_length_bytes + plain.size() + k_frame_tag_bytes);
  store_le32(sealed.data(), static_cast<std::uint32_t>(sealed.size() - k_length_bytes));
  auto* tag = reinterpret_cast<unsigned char*>(sealed.data() + sealed.size() - k_frame_tag_bytes);
  crypto::seal(seal_key_.view(), sealed_++, std::span(sealed).first(k_length_bytes), plain,
               sealed.data() + k_length_bytes, crypto::tag_room(tag, k_frame_tag_bytes));
  stream_.queue(sealed);
  moved_ += sealed.size();
}

void sealed_link::send_some() {
  if (stream_.send_some() == byte_stream::state::closed)
    fail(XIO_ERR_PEER, "{} is gone: its connection broke while being sent to; see its output for the cause", who_);
}

bool sealed_link::receive(frame& out) {
  auto got = stream_.receive_up_to(k_length_bytes);
  if (got == byte_stream::state::done) {
    const std::size_t body = load_le32(stream_.in().data());
    if (body < 1 + k_frame_tag_bytes || body > k_frame_body_max)
      fail(XIO_ERR_AUTH,
           "{} sent a frame of {} bytes where {} to {} are allowed; something meddles with the connection", who_, body,
           1 + k_frame_tag_bytes, k_frame_body_max);
    got = stream_.receive_up_to(k_length_bytes + body);
  }
  if (got == byte_stream::state::blocked) return false;
  if (got == byte_stream::state::closed)
    fail(XIO_ERR_PEER, "{} is gone: it closed its connection; see its output for the cause", who_);
  const auto in = stream_.in();
  std::vector<std::byte> plain(in.size() - k_length_bytes - k_frame_tag_bytes);
  const auto* tag = reinterpret_cast<const unsigned char*>(in.data() + in.size() - k_frame_tag_bytes);
  if (!crypto::unseal(unseal_key_.view(), unsealed_, in.first(k_length_bytes), in.subspan(k_length_bytes, plain.size()),
                      plain.data(), std::span<const unsigned char, k_frame_tag_bytes>(tag, k_frame_tag_bytes)))
    fail(XIO_ERR_AUTH, "frame {} from {} is not authentic: it was altered, repeated or moved on its way", unsealed_,
         who_);
  ++unsealed_;
  moved_ += in.size();
  stream_.clear_in();
  out.kind = static_cast<frame_kind>(plain[0]);
  out.payload.assign(plain.begin() + 1, plain.end());
  return true;
}

void sealed_link::queue_abort(xio_status_t status, std::string_view sentence) {
  sentence = sentence.substr(0, k_abort_sentence_max);
  std::vector<std::byte> payload(4 + sentence.size());
  store_le32(payload.data(), static_cast<std::uint32_t>(static_cast<std::int32_t>(status)));
  std::copy_n(reinterpret_cast<const std::byte*>(sentence.data()), sentence.size(), payload.begin() + 4);
  queue(frame_kind::abort, payload);
}

void throw_abort(const frame& f, const std::string& who) {
  if (f.payload.size() < 4) fail(XIO_ERR_PEER, "{} gave the world up without a reason", who);
  const auto number = static_cast<std::int32_t>(load_le32(f.payload.data()));
  const xio_status_t status = peer_status(number);
  const std::string sentence = printable(
      {reinterpret_cast<const char*>(f.payload.data()) + 4, std::min(f.payload.size() - 4, k_abort_sentence_max)});
  if (status != number) fail(XIO_ERR_PEER, "{} gave the world up: {}", who, sentence);
  throw error(status, sentence);
}

void abort_links(std::span<sealed_link* const> links, xio_status_t status, std::string_view sentence,
                 std::uint64_t timeout_ms) {
  // A rank that is silent does not hear it, and the call that ends here has waited for it already.
  const std::uint64_t most =
      timeout_ms == 0 ? k_abort_ms : std::min(k_abort_ms, std::max<std::uint64_t>(timeout_ms / 40, 25));
  std::vector<sealed_link*> left;
  for (sealed_link* l : links) {
    if (!l->is_open()) continue;
    l->queue_abort(status, sentence);
    left.push_back(l);
  }
  // First send, then read until the peer has closed: a close with unread input would reset the connection, and the
  // peer could lose the sentence.
  const auto walk = [&left, most](short events, auto&& finished) {
    const auto until = deadline::in(std::max<std::uint64_t>(most, 1));
    while (!left.empty()) {
      std::erase_if(left, finished);
      if (left.empty() || until.passed()) return;
      std::vector<pollfd> polled;
      for (sealed_link* l : left) polled.push_back({l->fd(), events, 0});
      poll(polled.data(), polled.size(), until.poll_ms());
    }
  };
  std::vector<sealed_link*> informed;
  walk(POLLOUT, [&informed](sealed_link* l) {
    const auto state = l->stream().send_some();
    if (state == byte_stream::state::blocked) return false;
    if (state == byte_stream::state::done) {
      l->stream().finish_sending();
      informed.push_back(l);
    }
    return true;
  });
  left = informed;
  walk(POLLIN, [](sealed_link* l) { return l->stream().drained(); });
  for (sealed_link* l : links) l->close();
}

}  // namespace xio::bootstrap
