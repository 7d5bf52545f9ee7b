// SPDX-License-Identifier: MIT
// The TCP channel: settings, and an allgather over the star of proven links.
#include "config.h"

#include "bootstrap/bootstrap.hpp"
#ifdef HAVE_SODIUM
#include <poll.h>
#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/log.hpp"
#include "bootstrap/bytes.hpp"
#include "bootstrap/launcher.hpp"
#include "bootstrap/run_report.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

namespace {

int parse_count(const std::string& text, const char* variable, int low, int high) {
  if (text.empty())
    fail(XIO_ERR_CONFIG,
         "{} is not set, which the TCP bootstrap needs; set it for every rank or start them with xiorun", variable);
  int value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || value < low || value > high)
    fail(XIO_ERR_CONFIG, "{}='{}' is not a whole number in {}..{}", variable, text, low, high);
  return value;
}

// An allgather message is this header and its data, cut into frames:
//   number of the allgather (8) | bytes per rank (8)
constexpr std::size_t k_header_bytes = 16;
constexpr std::size_t k_data_max = std::size_t{256} << 20;  // all ranks together

std::vector<std::byte> make_message(std::uint64_t number, std::uint64_t bytes_per_rank, std::size_t data_bytes) {
  std::vector<std::byte> m(k_header_bytes + data_bytes);
  store_le64(m.data(), number);
  store_le64(m.data() + 8, bytes_per_rank);
  return m;
}

// One message on its way out over a link, one frame queued at a time.
struct outgoing {
  sealed_link* to;
  std::span<const std::byte> message;
  std::size_t queued = 0;

  bool done() const { return queued == message.size() && !to->sending(); }
  void step() {
    to->send_some();
    while (!to->sending() && queued < message.size()) {
      const auto piece = message.subspan(queued, std::min(k_frame_payload_max, message.size() - queued));
      to->queue(frame_kind::gather, piece);
      queued += piece.size();
      to->send_some();
    }
  }
};

// One message on its way in.
struct incoming {
  sealed_link* from;
  std::uint64_t number, bytes_per_rank;
  std::size_t expected;
  std::vector<std::byte> message{};

  bool done() const { return message.size() == expected; }
  std::span<const std::byte> data() const { return std::span(message).subspan(k_header_bytes); }
  void step() {
    frame f;
    while (!done() && from->receive(f)) {
      if (f.kind == frame_kind::abort) throw_abort(f, from->who());
      // Empty frames would keep this rank from its deadline.
      if (f.kind != frame_kind::gather || f.payload.empty() ||
          f.payload.size() > k_data_max + k_header_bytes - message.size())
        fail(XIO_ERR_PEER, "{} sent a malformed reply; do all ranks run the same version of XIO?", from->who());
      message.insert(message.end(), f.payload.begin(), f.payload.end());
      check();
    }
  }
  void check() const {
    if (message.size() < k_header_bytes) return;
    if (load_le64(message.data()) != number)
      fail(XIO_ERR_STATE, "{} is at exchange {}, this rank at {}; every rank must make the same collective calls",
           from->who(), load_le64(message.data()), number);
    if (const auto theirs = load_le64(message.data() + 8); theirs != bytes_per_rank)
      fail(XIO_ERR_ARG, "{} gave {} bytes to exchange {}, this rank {}; every rank must make the same collective calls",
           from->who(), theirs, number, bytes_per_rank);
    if (message.size() > expected)
      fail(XIO_ERR_PEER, "{} sent a malformed reply; do all ranks run the same version of XIO?", from->who());
  }
};

class tcp_channel final : public channel {
 public:
  tcp_channel(const tcp_settings& s, std::vector<sealed_link> links)
      : rank_(s.rank),
        size_(s.size),
        is_root_(s.is_root),
        timeout_ms_(s.timeout_ms),
        report_(s.root),
        links_(std::move(links)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "tcp"; }
  bool sealed() const override { return true; }
  std::string end_of(int rank) const override { return report_.end_of(rank); }

  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    if (broken_) fail(broken_->status(), "the TCP bootstrap of rank {} broke before: {}", rank_, broken_->what());
    if (mine.size() > k_data_max / static_cast<std::size_t>(size_))
      fail(XIO_ERR_ARG, "an exchange of {} bytes from each of {} ranks is more than {} bytes in all", mine.size(),
           size_, k_data_max);
    try {
      ++number_;
      return is_root_ ? gather_as_root(mine) : gather_as_peer(mine);
    } catch (const error& e) {
      give_up(e);
      throw;
    }
  }

 private:
  std::vector<std::byte> gather_as_root(std::span<const std::byte> mine) {
    const auto until = end_of_exchange(timeout_ms_);
    std::vector<incoming> in;
    for (auto& l : links_)
      if (l.is_open()) in.push_back({&l, number_, mine.size(), k_header_bytes + mine.size()});
    run(in, POLLIN, until);

    auto message = make_message(number_, mine.size(), mine.size() * static_cast<std::size_t>(size_));
    auto at = message.begin() + k_header_bytes;
    auto from = in.begin();
    for (std::size_t rank = 0; rank < links_.size(); ++rank) {
      const auto data = links_[rank].is_open() ? (from++)->data() : mine;
      at = std::copy(data.begin(), data.end(), at);
    }
    std::vector<outgoing> out;
    for (auto& l : links_)
      if (l.is_open()) out.push_back({&l, message});
    run(out, POLLOUT, until);
    return {message.begin() + k_header_bytes, message.end()};
  }

  // Steps every one of `parts` until it is done.
  template <class Part>
  void run(std::vector<Part>& parts, short events, const deadline& until) {
    std::vector<Part*> left;
    for (auto& p : parts) left.push_back(&p);
    for (;;) {
      std::erase_if(left, [](Part* p) {
        p->step();
        return p->done();
      });
      if (left.empty()) return;
      if (until.passed()) fail_silent(left);
      std::vector<pollfd> polled;
      for (const Part* p : left) polled.push_back({fd_of(*p), events, 0});
      poll(polled.data(), polled.size(), until.poll_ms());
    }
  }
  static int fd_of(const incoming& i) { return i.from->fd(); }
  static int fd_of(const outgoing& o) { return o.to->fd(); }
  static const std::string& who(const incoming& i) { return i.from->who(); }
  static const std::string& who(const outgoing& o) { return o.to->who(); }

  template <class Part>
  [[noreturn]] void fail_silent(const std::vector<Part*>& left) const {
    std::string names;
    for (std::size_t i = 0; i < left.size() && i < 8; ++i) names += (i == 0 ? "" : ", ") + who(*left[i]);
    if (left.size() > 8) names += ", ...";
    fail(XIO_ERR_TIMEOUT,
         "{} of {} ranks did not take part in exchange {} within {} ms: {}; check that they run and make the same "
         "collective calls, or raise XIO_TIMEOUT_MS",
         left.size(), size_, number_, timeout_ms_, names);
  }

  std::vector<std::byte> gather_as_peer(std::span<const std::byte> mine) {
    const auto until = after_root(end_of_exchange(timeout_ms_), timeout_ms_);
    sealed_link& root = links_.front();
    auto message = make_message(number_, mine.size(), mine.size());
    std::copy(mine.begin(), mine.end(), message.begin() + k_header_bytes);
    outgoing out{&root, message};
    incoming in{&root, number_, mine.size(), k_header_bytes + mine.size() * static_cast<std::size_t>(size_)};
    for (;;) {
      // Read first: the reason why rank 0 gave up may be there when sending to it fails.
      in.step();
      if (in.done()) break;
      if (!out.done()) send_or_hear_why(out, in);
      if (until.passed())
        fail(XIO_ERR_TIMEOUT,
             "{} did not complete exchange {} within {} ms: it, or a rank that it waits for, is silent; check that "
             "every "
             "rank runs and makes the same collective calls, or raise XIO_TIMEOUT_MS",
             root.who(), number_, timeout_ms_);
      pollfd p{root.fd(), static_cast<short>(POLLIN | (out.done() ? 0 : POLLOUT)), 0};
      poll(&p, 1, until.poll_ms());
    }
    return {in.data().begin(), in.data().end()};
  }

  // When rank 0 has gone, the reason it gave may still lie unread.
  static void send_or_hear_why(outgoing& out, incoming& in) {
    try {
      out.step();
    } catch (const error&) {
      in.step();
      throw;
    }
  }

  void give_up(const error& e) {
    broken_ = e;
    std::vector<sealed_link*> all;
    for (auto& l : links_) all.push_back(&l);
    abort_links(all, e.status(), e.what(), timeout_ms_);
  }

  const int rank_, size_;
  const bool is_root_;
  const std::uint64_t timeout_ms_;
  const run_report report_;
  std::vector<sealed_link> links_;  // the root: by rank, its own never open; others: [0] leads to the root
  std::uint64_t number_ = 0;
  std::optional<error> broken_;
};

}  // namespace

tcp_settings tcp_settings::from(const bootstrap_options& o) {
  tcp_settings s;
  const auto place = place_for_tcp(o);
  if (place.root.empty())
    fail(XIO_ERR_CONFIG,
         "XIO_TCP_ROOT is not set, which the TCP bootstrap needs; set it to host:port of rank 0 or start with xiorun");
  s.root = endpoint::parse(place.root, place.variable);
  s.names.place = place.variable;
  const auto given = numbers_for_tcp(o);
  s.size = parse_count(given.size, "XIO_TCP_SIZE", 1, k_tcp_ranks_max);
  s.rank = parse_count(given.rank, "XIO_TCP_RANK", 0, s.size - 1);
  s.timeout_ms = o.timeout_ms;
  s.key = load_key(o);
  s.is_root = s.rank == 0;
  return s;
}

std::string tcp_settings::place() const {
  if (addresses.empty()) return fmt::format("{}:{}", root.host, root.port);
  std::string all;
  for (const auto& a : addresses) all += (all.empty() ? "" : ", ") + a.text();
  return all;
}

std::unique_ptr<channel> connect_star(tcp_settings s) {
  std::vector<sealed_link> links;
  if (s.is_root)
    links = assemble_world(s);
  else
    links.push_back(join_world(s));
  return std::make_unique<tcp_channel>(s, std::move(links));
}

std::unique_ptr<channel> connect_tcp(const bootstrap_options& o) {
  if (sodium_init() < 0) fail(XIO_ERR_UNSUPPORTED, "libsodium found no source of random numbers on this machine");
  return connect_star(tcp_settings::from(o));
}

}  // namespace xio::bootstrap

#else  // HAVE_SODIUM

namespace xio::bootstrap {
std::unique_ptr<channel> connect_tcp(const bootstrap_options&) {
  fail(XIO_ERR_UNSUPPORTED,
       "this libxio has no TCP bootstrap because it was built without libsodium; install libsodium-dev and configure "
       "again, or start with mpirun");
}
}  // namespace xio::bootstrap

#endif
