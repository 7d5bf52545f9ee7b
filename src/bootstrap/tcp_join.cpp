// SPDX-License-Identifier: MIT
// Connecting the ranks, as every rank but the root does it.
#include "config.h"
#ifdef HAVE_SODIUM
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/resolve.hpp"
#include "bootstrap/run_report.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

namespace {

constexpr int k_retry_first_ms = 5;
constexpr int k_retry_most_ms = 250;
constexpr std::uint64_t k_connect_ms = 5000;  // one attempt at one address, so that the next address gets its turn

constexpr std::uint64_t k_look_up_ms = 2000;  // between look-ups of a name where rank 0 does not listen

class joining {
 public:
  explicit joining(const tcp_settings& s)
      : s_(s), until_(deadline::in(s.timeout_ms)), accepted_until_(after_root(until_, s.timeout_ms)) {}

  sealed_link run() {
    auto addresses = s_.addresses.empty() ? resolve(s_.root, until_) : s_.addresses;
    auto look_up_at = deadline::in(k_look_up_ms);
    // Rank 0 may not be up yet, and a connection may be lost before anything was proven: both are tried again.
    for (int pause = k_retry_first_ms;; pause = std::min(2 * pause, k_retry_most_ms)) {
      bool all_refuse = true;
      for (const auto& a : addresses) {
        auto fd = connect_once(a, until_.earlier(deadline::in(k_connect_ms)), why_);
        all_refuse = all_refuse && !fd && errno == ECONNREFUSED;
        if (!fd) continue;
        if (auto l = prove(byte_stream(std::move(fd)), a.text())) return await_welcome(std::move(*l));
      }
      if (all_refuse && !s_.addresses.empty()) fail_gone();
      log::debug("rank {} tries again to reach {} at {}: {}", s_.rank, s_.names.root, s_.place(), why_);
      if (until_.passed())
        fail(XIO_ERR_TIMEOUT,
             "rank {} could not reach {} at {} within {} ms (last: {}); check that it runs, that {} is right and that "
             "no firewall lies between, or raise XIO_TIMEOUT_MS",
             s_.rank, s_.names.root, s_.place(), s_.timeout_ms, why_, s_.names.place);
      if (const auto end = report_.end_of(0); !end.empty())
        fail(XIO_ERR_PEER, "{}, and rank {} waits for it at {}:{}; see its output for the cause", end, s_.rank,
             s_.root.host, s_.root.port);
      poll(nullptr, 0, until_.poll_ms(pause));
      // A name may have meant another machine before.
      if (look_up_at.passed() && !is_numeric_host(s_.root.host)) {
        addresses = resolve(s_.root, until_);
        look_up_at = deadline::in(k_look_up_ms);
      }
    }
  }

 private:
  // The root of a unique id listens before anybody has the id, so here nobody has to be waited for.
  [[noreturn]] void fail_gone() const {
    fail(XIO_ERR_PEER,
         "rank {} of {} cannot join: nobody listens for this unique id at {} any more, so a world was made of it, or "
         "the process that made the id has given up or ended; call xio_get_unique_id for each world, and give each PE "
         "a rank of its own below one size",
         s_.rank, s_.size, s_.place());
  }

  template <std::size_t N>
  bool read_message(byte_stream& stream, const std::string& address, std::array<std::byte, N>& out) {
    for (;;) {
      const auto got = stream.receive_up_to(N);
      if (opening_of(stream.in()) == opening::other_version)
        fail(XIO_ERR_PEER, "{} at {} speaks {}", s_.names.root, address, text_of_other_version(stream.in()));
      if (opening_of(stream.in()) == opening::foreign && s_.addresses.size() > 1) {
        why_ = address + " is something else's";  // an address that another machine has, too
        return false;
      }
      if (opening_of(stream.in()) == opening::foreign)
        fail(XIO_ERR_PEER, "what listens at {} is not {} of an XIO world; check {}={}", address, s_.names.root,
             s_.names.place, s_.place());
      if (got == byte_stream::state::closed) {
        why_ = "connection closed before the key was proven";
        return false;
      }
      if (got == byte_stream::state::done) break;
      wait_for(stream, POLLIN, address);
    }
    std::copy(stream.in().begin(), stream.in().end(), out.begin());
    stream.clear_in();
    return true;
  }

  void wait_for(const byte_stream& stream, short events, const std::string& address) {
    if (until_.passed())
      fail(
          XIO_ERR_TIMEOUT,
          "{} at {} took the connection of rank {} but was silent for {} ms; check that it has not stopped and that {} "
          "is right, or raise XIO_TIMEOUT_MS",
          s_.names.root, address, s_.rank, s_.timeout_ms, s_.names.place);
    pollfd p{stream.fd(), events, 0};
    poll(&p, 1, until_.poll_ms());
  }

  std::optional<sealed_link> prove(byte_stream stream, const std::string& address) {
    banner_bytes banner;
    if (!read_message(stream, address, banner)) return {};
    const ephemeral_key ephemeral;
    const auto hello =
        make_hello(s_.key, banner, static_cast<std::uint32_t>(s_.rank), static_cast<std::uint32_t>(s_.size), ephemeral);
    stream.queue(hello);
    for (;;) {
      const auto sent = stream.send_some();
      if (sent == byte_stream::state::done) break;
      if (sent == byte_stream::state::closed) {
        why_ = "connection closed before the key was proven";
        return {};
      }
      wait_for(stream, POLLOUT, address);
    }
    reply_bytes reply;
    if (!read_message(stream, address, reply)) return {};
    if (!reply_accepts(s_.key, banner, hello, reply))
      fail(XIO_ERR_AUTH, "{} at {} and rank {} do not hold the same key; give every rank the same {}", s_.names.root,
           address, s_.rank, s_.names.key);
    const auto keys = derive_keys(s_.key, banner, hello, ephemeral, link_end::peer);
    if (!keys)
      fail(XIO_ERR_AUTH, "{} at {} sent an open key that is none; do all ranks run the same XIO?", s_.names.root,
           address);
    return sealed_link(std::move(stream), *keys, link_end::peer, fmt::format("{} ({})", s_.names.root, address));
  }

  sealed_link await_welcome(sealed_link l) {
    frame f;
    while (!l.receive(f)) {
      if (accepted_until_.passed())
        fail(XIO_ERR_TIMEOUT,
             "{} accepted rank {} but did not complete the world of {} ranks within {} ms; check that every rank runs, "
             "or raise XIO_TIMEOUT_MS",
             l.who(), s_.rank, s_.size, s_.timeout_ms);
      pollfd p{l.fd(), POLLIN, 0};
      poll(&p, 1, accepted_until_.poll_ms());
    }
    if (f.kind == frame_kind::abort) throw_abort(f, l.who());
    if (f.kind != frame_kind::welcome)
      fail(XIO_ERR_PEER, "{} sent a malformed reply; do all ranks run the same version of XIO?", l.who());
    return l;
  }

  const tcp_settings& s_;
  const deadline until_, accepted_until_;
  const run_report report_{s_.root};
  std::string why_ = "no address";
};

}  // namespace

sealed_link join_world(const tcp_settings& s) { return joining(s).run(); }

}  // namespace xio::bootstrap
#endif  // HAVE_SODIUM
