// SPDX-License-Identifier: MIT
// The root's side of connecting the ranks: one loop over poll(2) that accepts, checks proofs, and knows when to give
// up.
//
// A connection that does not prove the key is a stranger's: it is dropped with a warning, and the world forms without
// it. A connection that proves the key and then sends a wrong value (another world size, a rank that is taken) comes
// from a rank of this world with a wrong setting: the world is given up at once, and rank 0 sends every rank the
// reason.
#include <poll.h>

#include <cerrno>
#include <deque>
#include <map>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/run_report.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::size_t k_pending_max = 256;   // connections that have not proven the key yet
constexpr std::uint64_t k_hello_ms = 5000;   // what such a connection has to do it; honest ranks take one round trip
constexpr std::uint64_t k_crowded_ms = 500;  // the same while others wait for its descriptor
constexpr int k_full_ms = 10;                // between looks whether a descriptor has become free
constexpr int k_report_ms = 100;             // between looks at what xiorun reports
constexpr int k_warnings_max = 16;
constexpr int k_ranks_listed_max = 16;

struct pending {
  byte_stream stream;
  std::string address;
  deadline until, crowded_until;
  banner_bytes banner;
  std::string doubt;  // crypto::why_not_trusted
};

class assembly {
 public:
  explicit assembly(tcp_settings& s)
      : s_(s),
        until_(deadline::in(s.timeout_ms)),
        listeners_(std::move(s.listeners)),
        proven_(static_cast<std::size_t>(s.size)) {}

  std::vector<sealed_link> run() {
    try {
      open_listeners();
      while (present_ < s_.size - 1) {
        if (until_.passed()) fail_missing();
        step();
        if (report_.known()) look_for_ended();
      }
      pending_.clear();
      // Closed before anybody is welcomed: a rank that goes on to its next world must not enter this one's backlog.
      listeners_.clear();
      welcome();
      return std::move(proven_);
    } catch (const error& e) {
      give_up(e.status(), e.what());
      throw;
    }
  }

 private:
  void open_listeners() {
    if (s_.size == 1 || !listeners_.empty()) return;
    listeners_ = listen_at(s_.root, until_);
  }

  void step() {
    std::vector<pollfd> polled;
    // While no descriptor is free, connections stay in a listener's backlog. The listener is then not polled, for it
    // would be ready all the time.
    const bool full = std::exchange(full_, false);
    int wait = until_.poll_ms(full ? k_full_ms : report_.known() ? k_report_ms : INT_MAX);
    for (const auto& fd : listeners_) polled.push_back({full ? -1 : fd.get(), POLLIN, 0});
    for (const auto& p : pending_) {
      polled.push_back({p.stream.fd(), static_cast<short>(POLLIN | (p.stream.sending() ? POLLOUT : 0)), 0});
      wait = p.until.poll_ms(wait);
    }
    for (auto& l : proven_)
      if (l.is_open()) polled.push_back({l.fd(), static_cast<short>(POLLIN | (l.sending() ? POLLOUT : 0)), 0});
    poll(polled.data(), polled.size(), wait);

    // Walked in the order in which they were added; step_pending and accept_all may shorten or lengthen pending_ only
    // after every result was looked at.
    std::size_t i = listeners_.size();
    for (auto& p : pending_) step_pending(p, polled[i++].revents);
    for (std::size_t rank = 0; rank < proven_.size() && i < polled.size(); ++rank)
      if (proven_[rank].is_open() && proven_[rank].fd() == polled[i].fd)
        step_proven(proven_[rank], polled[i++].revents);
    std::erase_if(pending_, [](const pending& p) { return p.stream.fd() < 0; });
    for (std::size_t n = 0; n < listeners_.size(); ++n)
      if (full || polled[n].revents != 0) accept_all(listeners_[n].get());
  }

  void accept_all(int listener) {
    for (std::size_t n = 0; n < k_pending_max; ++n) {
      socket_address from;
      unique_fd fd = accept_one(listener, from);
      if (!fd) {
        if (no_descriptor(errno)) out_of_descriptors(listener, errno);
        return;
      }
      if (pending_.size() >= k_pending_max) drop_oldest("too many connections wait to prove the key");
      pending p{{},
                from.text(),
                deadline::in(k_hello_ms),
                deadline::in(k_crowded_ms),
                make_banner(ephemeral_),
                crypto::why_not_trusted(fd.get(), s_.trust_network)};
      p.stream = byte_stream(std::move(fd));
      p.stream.queue(p.banner);  // the caller has a doubt, too, and says so
      pending_.push_back(std::move(p));
      step_pending(pending_.back(), 0);
      if (pending_.back().stream.fd() < 0) pending_.pop_back();  // its hello was there already
    }
  }

  // Strangers leave after a while, and honest ranks among those pending prove themselves within a round trip. With
  // neither, no descriptor will become free.
  void out_of_descriptors(int listener, int err) {
    pollfd p{listener, POLLIN, 0};
    // accept4 takes a descriptor before it looks whether anybody waits.
    if (missing() == 0 || poll(&p, 1, 0) <= 0) return;
    if (err == EMFILE && raise_descriptor_limit(fmt::format("{} ranks are still to come", missing()), missing()))
      return;
    if (pending_.empty()) fail_full(err);
    full_ = true;
    if (pending_.front().crowded_until.passed()) drop_oldest("this process has no file descriptor left");
  }

  // An honest rank connects again if it was the one.
  void drop_oldest(const char* why) {
    drop(pending_.front(), why);
    pending_.pop_front();
  }

  void drop(pending& p, std::string_view why) {
    p.stream.close();
    ++dropped_;
    if (dropped_ <= k_warnings_max)
      log::warn("dropped the connection from {}: {}{}", p.address, p.doubt.empty() ? why : p.doubt,
                dropped_ == k_warnings_max ? "; more of them will be dropped without a word" : "");
  }

  void step_pending(pending& p, short events) {
    if (p.until.passed() && events == 0) return drop(p, "it connected and said nothing that proves the key");
    if (p.stream.send_some() == byte_stream::state::closed) return drop(p, "it went away before it proved the key");
    const auto got = p.stream.receive_up_to(k_hello_bytes);
    const auto in = p.stream.in();
    if (opening_of(in) == opening::foreign) return drop(p, "it does not speak XIO's protocol");
    if (opening_of(in) == opening::other_version) return drop(p, "it speaks " + text_of_other_version(in));
    if (got == byte_stream::state::closed) return drop(p, "it went away before it proved the key");
    if (got == byte_stream::state::done) return judge(p);
    if (p.until.passed()) drop(p, "it did not prove the key in time");
  }

  void judge(pending& p) {
    hello_bytes hello;
    std::copy(p.stream.in().begin(), p.stream.in().end(), hello.begin());
    p.stream.clear_in();
    if (!p.doubt.empty()) return drop(p, p.doubt);
    const auto rank = hello_rank(hello), size = hello_size(hello);
    if (!hello_proves_key(s_.key, p.banner, hello)) {
      p.stream.queue(make_reply(s_.key, p.banner, hello, verdict::refused));
      p.stream.send_some();
      p.stream.finish_sending();
      if (rank < proven_.size()) refused_[rank] = p.address;  // a stranger may claim any number
      return drop(p, fmt::format("it claims to be rank {} but holds another key", rank));
    }
    const auto keys = derive_keys(s_.key, p.banner, hello, ephemeral_, link_end::root);
    if (!keys) return drop(p, fmt::format("rank {} sent an open key that is none", rank));
    p.stream.queue(make_reply(s_.key, p.banner, hello, verdict::accepted));
    sealed_link l(std::move(p.stream), *keys, link_end::root, fmt::format("rank {} ({})", rank, p.address));
    admit(std::move(l), rank, size);
  }

  void admit(sealed_link l, std::uint32_t rank, std::uint32_t size) {
    const auto refuse = [&](std::string sentence) {
      misled_.push_back(std::move(l));
      throw error(XIO_ERR_CONFIG, std::move(sentence));
    };
    if (size != static_cast<std::uint32_t>(s_.size))
      refuse(fmt::format("{} says that the world has {} ranks, {} says {}; give every rank the same {}", l.who(), size,
                         s_.names.root, s_.size, s_.names.size));
    if (rank >= size || is_me(rank))
      refuse(fmt::format("{} is outside {}..{}; give every rank its own {}", l.who(), first_other(), size - 1,
                         s_.names.rank));
    if (proven_[rank].is_open())
      refuse(fmt::format("rank {} is there twice: as {} and as {}; give every rank its own {}", rank,
                         proven_[rank].who(), l.who(), s_.names.rank));
    log::debug("{} has proven the key", l.who());
    l.send_some();
    proven_[rank] = std::move(l);
    ++present_;
  }

  void step_proven(sealed_link& l, short events) {
    if (l.sending()) l.send_some();
    if (events == 0) return;
    frame f;
    if (!l.receive(f)) return;
    if (f.kind == frame_kind::abort) throw_abort(f, l.who());
    fail(XIO_ERR_PEER, "{} spoke before the world was complete; do all ranks run the same version of XIO?", l.who());
  }

  void welcome() {
    for (auto& l : proven_)
      if (l.is_open()) l.queue(frame_kind::welcome, {});
    for (auto& l : proven_) {
      while (l.is_open() && l.sending()) {
        pollfd p{l.fd(), POLLOUT, 0};
        poll(&p, 1, until_.poll_ms());
        l.send_some();
        if (l.sending() && until_.passed())
          fail(XIO_ERR_TIMEOUT, "{} does not read; the world was not complete within {} ms", l.who(), s_.timeout_ms);
      }
    }
  }

  void look_for_ended() const {
    for (int rank = 0; rank < s_.size; ++rank) {
      if (is_me(rank) || proven_[static_cast<std::size_t>(rank)].is_open()) continue;
      if (const auto end = report_.end_of(rank); !end.empty())
        fail(XIO_ERR_PEER, "{} before the world of {} ranks was complete; see its output for the cause", end, s_.size);
    }
  }

  int missing() const { return s_.size - 1 - present_; }
  bool is_me(auto rank) const { return static_cast<int>(rank) == s_.rank; }
  int first_other() const { return s_.rank == 0 ? 1 : 0; }

  [[noreturn]] void fail_full(int err) const {
    fail(XIO_ERR_IO, "{} has no file descriptor left for {} more of the world's {} ranks, one for each: {}",
         s_.names.root, missing(), s_.size, text_of_no_descriptor(err));
  }

  [[noreturn]] void fail_missing() const {
    std::string ranks, wrong_key;
    int missing = 0;
    for (std::size_t rank = 0; rank < proven_.size(); ++rank) {
      if (is_me(static_cast<int>(rank)) || proven_[rank].is_open()) continue;
      if (++missing <= k_ranks_listed_max) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
      const auto refused = refused_.find(static_cast<std::uint32_t>(rank));
      if (refused != refused_.end() && wrong_key.empty())
        wrong_key = fmt::format("{} claims to be rank {} but holds another key", refused->second, rank);
    }
    if (missing > k_ranks_listed_max) ranks += ", ...";
    const auto head = fmt::format("the world of {} ranks at {} was not complete within {} ms: {} missing (rank {})",
                                  s_.size, s_.place(), s_.timeout_ms, missing, ranks);
    if (!wrong_key.empty()) fail(XIO_ERR_AUTH, "{}; {}: give every rank the same {}", head, wrong_key, s_.names.key);
    fail(XIO_ERR_TIMEOUT,
         "{}{}; check that they run and have the same {}, that no firewall lies between, or raise XIO_TIMEOUT_MS", head,
         dropped_ == 0 ? "" : fmt::format(", {} connection(s) did not prove the key", dropped_), s_.names.place);
  }

  void give_up(xio_status_t status, std::string_view sentence) {
    std::vector<sealed_link*> all;
    for (auto& l : proven_) all.push_back(&l);
    for (auto& l : misled_) all.push_back(&l);
    pending_.clear();
    listeners_.clear();
    abort_links(all, status, sentence, s_.timeout_ms);
  }

  const tcp_settings& s_;
  const deadline until_;
  const ephemeral_key ephemeral_;  // of this world: strangers shall not make rank 0 compute one for each of them
  const run_report report_{s_.root};
  std::vector<unique_fd> listeners_;
  std::deque<pending> pending_;
  std::vector<sealed_link> proven_;  // by rank
  std::vector<sealed_link> misled_;  // proven the key, but cannot be admitted
  std::map<std::uint32_t, std::string> refused_;
  int present_ = 0;
  int dropped_ = 0;
  bool full_ = false;  // somebody waits at a listener, and there is no descriptor for him
};

}  // namespace

std::vector<sealed_link> assemble_world(tcp_settings& s) { return assembly(s).run(); }

}  // namespace xio::bootstrap
