// SPDX-License-Identifier: MIT
// Connecting the ranks, as every rank but the root does it.
#include <cerrno>

#include "base/connect_race.hpp"
#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/resolve.hpp"
#include "bootstrap/run_report.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

namespace {

constexpr int k_retry_first_ms = 5;
constexpr int k_retry_most_ms = 250;
constexpr std::uint64_t k_look_up_ms = 2000;  // between look-ups of a name where rank 0 does not listen

class joining {
 public:
  explicit joining(const tcp_settings& s)
      : s_(s), until_(deadline::in(s.timeout_ms)), accepted_until_(after_root(until_, s.timeout_ms)) {}

  sealed_link run() {
    auto race = std::make_unique<connect_race>(by_id() ? s_.addresses : resolve(s_.root, until_));
    auto look_up_at = deadline::in(k_look_up_ms);
    // Rank 0 may not be up yet, and a connection may be lost before anything was proven: both are tried again.
    for (int pause = k_retry_first_ms;; pause = std::min(2 * pause, k_retry_most_ms)) {
      if (auto l = connect_to_one(*race)) return await_welcome(std::move(*l));
      if (by_id() && race->refused()) fail_gone();
      log::debug("rank {} tries again to reach {} at {}: {}", s_.rank, s_.names.root, s_.place(), why_);
      if (until_.passed())
        fail(XIO_ERR_TIMEOUT,
             "rank {} could not reach {} at {} within {} ms (last: {}); check that it runs, that {} is right and that "
             "no firewall lies between, or raise XIO_TIMEOUT_MS",
             s_.rank, s_.names.root, by_id() ? "any of its addresses" : s_.place(), s_.timeout_ms, why_,
             s_.names.place);
      if (const auto end = report_.end_of(0); !end.empty())
        fail(XIO_ERR_PEER, "{}, and rank {} waits for it at {}:{}; see its output for the cause", end, s_.rank,
             s_.root.host, s_.root.port);
      poll(nullptr, 0, until_.poll_ms(pause));
      // A name may have meant another machine before.
      if (!by_id() && look_up_at.passed() && !is_numeric_host(s_.root.host)) {
        race = std::make_unique<connect_race>(resolve(s_.root, until_));
        look_up_at = deadline::in(k_look_up_ms);
      }
      race->begin_round();
    }
  }

 private:
  bool by_id() const { return !s_.addresses.empty(); }

  // One round. None with the reason in why_, which is that of each address unless one of them replied.
  std::optional<sealed_link> connect_to_one(connect_race& race) {
    bool replied = false;
    for (;;) {
      const auto state = race.step();
      if (state == connect_race::state::connected) {
        unique_fd fd = race.take();
        tune(fd.get());
        if (auto l = prove(byte_stream(std::move(fd)), race.addresses()[race.which()].text())) return l;
        replied = true;
      } else if (state == connect_race::state::over || until_.passed()) {
        if (!replied) why_ = race.errors();
        refuse_to_wait_for_descriptors(race);
        return {};
      } else {
        std::vector<pollfd> polled;
        race.add_to(polled);
        poll(polled.data(), polled.size(), until_.poll_ms(race.poll_ms(INT_MAX)));
      }
    }
  }

  // That the machine has none (ENFILE) may pass while ranks start.
  void refuse_to_wait_for_descriptors(const connect_race& race) const {
    for (std::size_t i = 0; i < race.addresses().size(); ++i)
      if (race.error_of(i) == EMFILE)
        fail(XIO_ERR_IO, "no file descriptor is left to connect to {} at {}: {}", s_.names.root,
             race.addresses()[i].text(), text_of_no_descriptor(EMFILE));
  }

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
    if (const auto why = crypto::why_not_trusted(stream.fd(), s_.trust_network); !why.empty())
      fail(XIO_ERR_AUTH, "rank {} does not join {} at {}: {}", s_.rank, s_.names.root, address, why);
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
