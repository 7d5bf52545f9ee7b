// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/member_links.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::uint64_t k_opening_ms = 5000;  // what a connection has to prove itself, once both ends are at it
constexpr std::size_t k_openings_most = 256;  // that have connected to this member
constexpr std::size_t k_parted_most = 64;
constexpr std::chrono::milliseconds k_pause{50};  // between two attempts

}  // namespace

secret member_links::key_with(int pe) const {
  const auto mine = at(places_, me_.rank).incarnation, theirs = at(places_, pe).incarnation;
  const bool lower = me_.rank < pe;
  return me_.keys->with(pe, fmt::format("xio member link {} {}", lower ? mine : theirs, lower ? theirs : mine));
}

void member_links::open(int pe) {
  attempt& a = at(attempts_, pe);
  if (has(pe) || a.race != nullptr || a.has_opening || a.refused || clock::now() < a.again) return;
  a.race = std::make_unique<connect_race>(at(places_, pe).addresses);
  live_.insert(pe);
  if (!a.is_failing) a.first = clock::now();
  a.is_failing = true;
}

std::chrono::milliseconds member_links::unreached_for(int pe) const {
  const attempt& a = at(attempts_, pe);
  if (!a.is_failing) return std::chrono::milliseconds(0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - a.first);
}

void member_links::step_attempt(int pe) {
  attempt& a = at(attempts_, pe);
  if (a.race == nullptr) return;
  const auto state = a.race->step();
  if (state == connect_race::state::running) return;
  if (state == connect_race::state::connected) {
    unique_fd fd = a.race->take();
    tune(fd.get());
    a.is_failing = false;
    a.has_opening = true;
    a.why.clear();
    // The other end may be busy for long: the member waits for it, and this is no bound of that.
    openings_.push_back({byte_stream(std::move(fd)), pe, deadline::in(0)});
  } else {
    a.refused = a.race->refused();
    a.why = a.race->errors();
    a.again = clock::now() + k_pause;
  }
  a.race.reset();
}

void member_links::accept_all() {
  for (const auto& listener : me_.listeners) {
    for (std::size_t n = 0; n < k_openings_most; ++n) {
      socket_address from;
      unique_fd fd = accept_one(listener.get(), from);
      if (!fd) break;
      if (openings_.size() >= k_openings_most + places_.size()) continue;
      opening_link o{byte_stream(std::move(fd)), -1, deadline::in(k_opening_ms)};
      o.banner = make_banner(own_);
      o.stream.queue(o.banner);
      openings_.push_back(std::move(o));
    }
  }
}

void member_links::give_up(opening_link& o) {
  o.over = true;
  if (o.pe < 0) return;
  at(attempts_, o.pe).has_opening = false;
  at(attempts_, o.pe).again = clock::now() + k_pause;
}

template <std::size_t N>
bool member_links::read_whole(opening_link& o, std::array<std::byte, N>& out) {
  const auto got = o.stream.receive_up_to(N);
  if (got == byte_stream::state::closed || opening_of(o.stream.in()) != opening::ours) o.over = true;
  if (o.over || got != byte_stream::state::done) return false;
  std::copy(o.stream.in().begin(), o.stream.in().end(), out.begin());
  o.stream.clear_in();
  return true;
}

bool member_links::is_trusted(opening_link& o) {
  const auto why = crypto::why_not_trusted(o.stream.fd(), me_.trust_network);
  if (why.empty()) return true;
  log::warn("dropped a connection between PEs: {}", why);
  o.over = true;
  return false;
}

void member_links::become_link(opening_link& o, int pe, const session_keys& keys, link_end end) {
  o.over = true;
  if (o.pe >= 0) at(attempts_, pe).has_opening = false;
  ++at(attempts_, pe).links;
  at(attempts_, pe).is_used = true;
  // Of two the later one: the other end may have given the first one up.
  part(std::move(at(links_, pe)));
  at(links_, pe) = sealed_link(std::move(o.stream), keys, end, fmt::format("PE {}", pe));
  live_.insert(pe);
}

void member_links::step_caller(opening_link& o) {
  if (!o.has_banner) {
    if (!read_whole(o, o.banner) || !is_trusted(o)) return;
    o.has_banner = true;
    o.own = std::make_unique<ephemeral_key>();
    o.hello = make_hello(key_with(o.pe), o.banner, static_cast<std::uint32_t>(me_.rank),
                         static_cast<std::uint32_t>(places_.size()), *o.own);
    o.stream.queue(o.hello);
    if (o.stream.send_some() == byte_stream::state::closed) o.over = true;
  }
  reply_bytes reply;
  if (o.over || !read_whole(o, reply)) return;
  const secret key = key_with(o.pe);
  const auto keys = reply_accepts(key, o.banner, o.hello, reply)
                        ? derive_keys(key, o.banner, o.hello, *o.own, link_end::peer)
                        : std::nullopt;
  if (!keys) {
    log::warn("what listens for PE {} does not have its key", o.pe);
    o.over = true;
    return;
  }
  become_link(o, o.pe, *keys, link_end::peer);
}

void member_links::step_callee(opening_link& o) {
  if (!read_whole(o, o.hello) || !is_trusted(o)) return;
  const auto rank = hello_rank(o.hello);
  o.over = true;
  if (rank >= places_.size() || static_cast<int>(rank) == me_.rank || hello_size(o.hello) != places_.size()) return;
  const int pe = static_cast<int>(rank);
  const secret key = key_with(pe);
  if (!hello_proves_key(key, o.banner, o.hello)) {
    log::warn("dropped a connection that claims to be of PE {} and does not have its key", pe);
    return;
  }
  const auto keys = derive_keys(key, o.banner, o.hello, own_, link_end::root);
  if (!keys) return;
  o.stream.queue(make_reply(key, o.banner, o.hello, verdict::accepted));
  become_link(o, pe, *keys, link_end::root);
}

void member_links::step(opening_link& o) {
  if (o.stream.send_some() == byte_stream::state::closed || o.until.passed()) o.over = true;
  if (!o.over) o.pe >= 0 ? step_caller(o) : step_callee(o);
  if (o.over && o.stream.fd() >= 0) give_up(o);
}

void member_links::send(int pe, frame_kind kind, std::span<const std::byte> payload) {
  sealed_link& l = at(links_, pe);
  if (!l.is_open()) return;
  at(attempts_, pe).is_used = true;
  l.queue(kind, payload);
  try {
    l.send_some();
  } catch (const error&) {
    l.close();
  }
}

std::string member_links::where(int pe) const {
  const auto& all = at(places_, pe).addresses;
  const std::string& why = at(attempts_, pe).why;
  return fmt::format("PE {} at {}{}", pe, all.empty() ? "no address" : all[0].text(),
                     why.empty() ? "" : " (" + why + ")");
}

void member_links::add_to(std::vector<pollfd>& polled) const {
  for (const auto& l : me_.listeners) polled.push_back({l.get(), POLLIN, 0});
  const auto add = [&](int fd, bool sending) {
    polled.push_back({fd, static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), 0});
  };
  for (const auto& o : openings_) add(o.stream.fd(), o.stream.sending());
  for (const int pe : live_)
    if (const auto& l = at(links_, pe); l.is_open()) add(l.fd(), l.sending());
  for (const int pe : live_)
    if (const auto& a = at(attempts_, pe); a.race != nullptr) a.race->add_to(polled);
}

// An idle link costs a place in one call of poll(), and no call of its own.
std::vector<std::pair<int, frame>> member_links::poll(int ms) {
  std::vector<pollfd> polled;
  add_to(polled);
  ::poll(polled.data(), polled.size(), ms);
  auto next = polled.begin();
  const auto is_ready = [&next] { return (next++)->revents != 0; };

  bool called = false;
  for (std::size_t i = 0; i < me_.listeners.size(); ++i) called |= is_ready();
  std::vector<opening_link*> stepped;
  for (auto& o : openings_)
    if (is_ready() || o.until.passed()) stepped.push_back(&o);
  std::vector<int> heard;
  for (const int pe : live_)
    if (at(links_, pe).is_open() && is_ready()) heard.push_back(pe);

  const std::size_t before = openings_.size();
  if (called) accept_all();
  for (const int pe : live_) step_attempt(pe);
  for (std::size_t i = before; i < openings_.size(); ++i) stepped.push_back(&openings_[i]);
  for (opening_link* o : stepped) step(*o);
  std::erase_if(openings_, [](const opening_link& o) { return o.over; });
  std::vector<std::pair<int, frame>> out;
  for (const int pe : heard) {
    sealed_link& l = at(links_, pe);
    if (!l.is_open()) continue;
    try {
      if (l.sending()) l.send_some();
      frame f;
      if (!l.receive(f)) continue;
      at(attempts_, pe).is_used = true;
      out.emplace_back(pe, std::move(f));
    } catch (const error& e) {
      log::debug("a link between members ends: {}", e.what());
      l.close();
    }
  }
  std::erase_if(live_, [this](int pe) { return !has(pe) && at(attempts_, pe).race == nullptr; });
  return out;
}

sealed_link member_links::take(int pe) { return std::exchange(at(links_, pe), sealed_link()); }

// A close with unread input would reset the connection, and the other end could lose what it has not read.
void member_links::part(sealed_link l) {
  if (!l.is_open()) return;
  std::erase_if(parted_, [](sealed_link& old) { return old.stream().drained(); });
  if (parted_.size() >= k_parted_most + places_.size()) parted_.erase(parted_.begin());
  (void)l.stream().send_some();
  l.stream().finish_sending();
  parted_.push_back(std::move(l));
}

void member_links::part_unused() {
  for (const int pe : live_)
    if (has(pe) && !at(attempts_, pe).is_used) part(std::exchange(at(links_, pe), sealed_link()));
  for (const int pe : live_) at(attempts_, pe).is_used = false;
  std::erase_if(parted_, [](sealed_link& old) { return old.stream().drained(); });
}

void member_links::part_all() {
  for (auto& l : links_) part(std::exchange(l, sealed_link()));
  for (auto& a : attempts_) a = {};
  openings_.clear();
}

}  // namespace xio::bootstrap
