// SPDX-License-Identifier: MIT
// The TCP channel: settings, and exchanges over the star of proven links.
#include <poll.h>

#include <charconv>
#include <numeric>

#include "base/log.hpp"
#include "bootstrap/launcher.hpp"
#include "bootstrap/run_report.hpp"
#include "bootstrap/star_message.hpp"
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

// The root keeps the cells of about so many bytes at a time, and those for one rank at least.
constexpr std::size_t k_block_bytes = std::size_t{16} << 20;

class tcp_channel final : public star_channel {
  // A channel that has failed stays so.
  template <class Exchange>
  auto guarded(Exchange&& exchange) {
    if (broken_) fail(broken_->status(), "the TCP bootstrap of rank {} broke before: {}", rank_, broken_->what());
    try {
      ++number_;
      return exchange();
    } catch (const error& e) {
      give_up(e);
      throw;
    }
  }

 public:
  tcp_channel(const tcp_settings& s, const pe_set& members, std::vector<sealed_link> links)
      : rank_(s.rank),
        size_(s.size),
        is_root_(s.is_root),
        timeout_ms_(s.timeout_ms),
        report_(s.root),
        members_(members),
        links_(std::move(links)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "tcp"; }
  bool takes_part(int rank) const override { return members_.has(rank); }
  bool sealed() const override { return true; }
  std::vector<sealed_link> release() override { return std::move(links_); }
  std::string end_of(int rank) const override { return report_.end_of(rank); }
  std::uint64_t bytes_moved() const override {
    return std::accumulate(links_.begin(), links_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const sealed_link& l) { return sum + l.bytes_moved(); });
  }

  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    check_allgather_size(mine.size());
    return guarded([&] {
      auto all = is_root_ ? gather_as_root(mine) : gather_as_peer(mine);
      for (int r = 0; r < size_; ++r)
        if (!takes_part(r)) std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * r);
      return all;
    });
  }

  cells all_to_all(const cells& mine) override {
    check_cells(mine);
    return guarded([&] {
      const cells got = is_root_ ? forward_cells(mine) : cells_by_root(mine);
      cells all;
      for (std::size_t r = 0; r < ranks(); ++r) all.add(takes_part(static_cast<int>(r)) ? got[r] : mine[r]);
      return all;
    });
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }
  exchange_head head_of_gather(std::size_t bytes) const { return {frame_kind::gather, number_, bytes}; }
  exchange_head head_of_cells() const { return {frame_kind::cells, number_, ranks()}; }

  // Links that are open, in the order of ranks: all but the root's own.
  std::vector<incoming> from_all(const exchange_head& head) {
    std::vector<incoming> in;
    for (auto& l : links_)
      if (l.is_open()) in.emplace_back(l, head, incoming::end::root, ranks());
    return in;
  }

  std::vector<std::byte> gather_as_root(std::span<const std::byte> mine) {
    const auto until = end_of_exchange(timeout_ms_);
    exchange_head head = head_of_gather(mine.size());
    auto in = from_all(head);
    run(in, POLLIN, until);

    std::vector<std::byte> all;
    auto from = in.begin();
    for (const auto& l : links_) {
      const auto data = l.is_open() ? (from++)->data() : mine;
      all.insert(all.end(), data.begin(), data.end());
    }
    // Where all gave the same, as in most votes and barriers, each rank gets one part, and not those of all.
    const bool same =
        std::all_of(in.begin(), in.end(), [&](const incoming& i) { return std::ranges::equal(i.data(), mine); });
    if (same) head.kind = frame_kind::same;
    const auto message = make_message(head, same ? mine : std::span<const std::byte>(all));
    std::vector<outgoing> out;
    for (auto& l : links_)
      if (l.is_open()) out.emplace_back(l, head.kind, message);
    run(out, POLLOUT, until);
    return all;
  }

  std::vector<std::byte> gather_as_peer(std::span<const std::byte> mine) {
    const exchange_head head = head_of_gather(mine.size());
    incoming in(links_.front(), head, incoming::end::peer, ranks());
    talk_to_root(make_message(head, mine), head.kind, in);
    const auto data = in.data();
    std::vector<std::byte> all;
    for (std::size_t copies = in.is_same() ? ranks() : 1; copies != 0; --copies)
      all.insert(all.end(), data.begin(), data.end());
    return all;
  }

  // The cells that the ranks have given, by the rank that gave them; the root's own are no message.
  struct given_cells {
    given_cells(const std::vector<sealed_link>& links, std::vector<incoming>& messages, const cells& own) : mine(own) {
      auto next = messages.begin();
      for (const auto& l : links) by_rank.push_back(l.is_open() ? &*next++ : nullptr);
    }
    std::size_t size(std::size_t from, std::size_t to) const {
      return by_rank[from] != nullptr ? by_rank[from]->size_of(to) : mine[to].size();
    }
    cells column(std::size_t to) const {
      cells out;
      for (const incoming* i : by_rank) out.add(i != nullptr ? i->cell(to) : mine[to]);
      return out;
    }
    std::vector<const incoming*> by_rank;
    const cells& mine;
  };

  // The first rank behind those whose cells the root takes next.
  std::size_t end_of_block(const given_cells& given, std::size_t first) const {
    std::size_t bytes = 0, end = first;
    for (; end < ranks(); ++end) {
      std::size_t column = 0;
      for (std::size_t from = 0; from < ranks(); ++from) column += given.size(from, end);
      if (column > k_data_max)
        fail(XIO_ERR_ARG, "rank {} is to get {} bytes in exchange {}, and {} is the most", end, column, number_,
             k_data_max);
      if (end != first && bytes + column > k_block_bytes) break;
      bytes += column;
    }
    return end;
  }

  // Ranks send their cells in the order of those that get them, so the root need not keep all at once.
  cells forward_cells(const cells& mine) {
    const auto until = end_of_exchange(timeout_ms_);
    auto in = from_all(head_of_cells());
    run(in, POLLIN, until);  // sizes
    const given_cells given(links_, in, mine);
    cells own;
    for (std::size_t first = 0, end = 0; first < ranks(); first = end) {
      end = end_of_block(given, first);
      for (auto& i : in) i.wait_for_cells(end);
      run(in, POLLIN, until);
      std::vector<std::vector<std::byte>> messages;
      messages.reserve(end - first);
      std::vector<outgoing> out;
      for (std::size_t to = first; to < end; ++to) {
        cells column = given.column(to);
        if (links_[to].is_open())
          out.emplace_back(links_[to], frame_kind::cells, messages.emplace_back(make_message(head_of_cells(), column)));
        else if (static_cast<int>(to) == rank_)
          own = std::move(column);
      }
      for (auto& i : in) i.forget_cells(end);
      run(out, POLLOUT, until);
    }
    return own;
  }

  cells cells_by_root(const cells& mine) {
    incoming in(links_.front(), head_of_cells(), incoming::end::peer, ranks());
    talk_to_root(make_message(head_of_cells(), mine), frame_kind::cells, in);
    cells out;
    for (std::size_t r = 0; r < ranks(); ++r) out.add(in.cell(r));
    return out;
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
      for (const Part* p : left) polled.push_back({p->link().fd(), events, 0});
      poll(polled.data(), polled.size(), until.poll_ms());
    }
  }

  template <class Part>
  [[noreturn]] void fail_silent(const std::vector<Part*>& left) const {
    std::string names;
    for (std::size_t i = 0; i < left.size() && i < 8; ++i) names += (i == 0 ? "" : ", ") + left[i]->link().who();
    if (left.size() > 8) names += ", ...";
    fail(XIO_ERR_TIMEOUT,
         "{} of {} ranks did not take part in exchange {} within {} ms: {}; check that they run and make the same "
         "collective calls, or raise XIO_TIMEOUT_MS",
         left.size(), members_.count(), number_, timeout_ms_, names);
  }

  void talk_to_root(std::span<const std::byte> message, frame_kind kind, incoming& in) {
    const auto until = after_root(end_of_exchange(timeout_ms_), timeout_ms_);
    sealed_link& root = links_.front();
    outgoing out(root, kind, message);
    for (;;) {
      // Read first: the reason why rank 0 gave up may be there when sending to it fails.
      in.step();
      if (!out.done()) send_or_hear_why(out, in);
      if (in.done() && out.done()) return;
      if (until.passed())
        fail(XIO_ERR_TIMEOUT,
             "{} did not complete exchange {} within {} ms: it, or a rank that it waits for, is silent; check that "
             "every rank runs and makes the same collective calls, or raise XIO_TIMEOUT_MS",
             root.who(), number_, timeout_ms_);
      pollfd p{root.fd(), static_cast<short>((in.done() ? 0 : POLLIN) | (out.done() ? 0 : POLLOUT)), 0};
      poll(&p, 1, until.poll_ms());
    }
  }

  // When rank 0 has gone, the reason it gave may still lie unread.
  static void send_or_hear_why(outgoing& out, incoming& in) {
    try {
      out.step();
    } catch (const error&) {
      in.step();
      in.hear_abort();
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
  const pe_set members_;
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
  s.trust_network = o.tcp_trust_network != 0;
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
  return make_star(s, pe_set::all(s.size), std::move(links));
}

std::unique_ptr<star_channel> make_star(const tcp_settings& s, const pe_set& members, std::vector<sealed_link> links) {
  return std::make_unique<tcp_channel>(s, members, std::move(links));
}

std::unique_ptr<channel> connect_tcp(const bootstrap_options& o) {
  crypto::start();
  return connect_star(tcp_settings::from(o));
}

}  // namespace xio::bootstrap
