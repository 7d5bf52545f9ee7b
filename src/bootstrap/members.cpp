// SPDX-License-Identifier: MIT
#include "bootstrap/members.hpp"

#include "base/log.hpp"
#include "bootstrap/unique_id.hpp"

namespace xio::bootstrap {

namespace {

constexpr int k_evidence_ms = 20;  // between two checks of the evidence
constexpr std::chrono::milliseconds k_probe_after{100};
using std::chrono::milliseconds;

// Of one that lives and calls it, the last wait of a kernel may have begun as late as others saw the death, and it
// takes a whole timeout: those wait longer than that.
std::uint64_t time_of_shrink(std::uint64_t timeout_ms) { return timeout_ms + timeout_ms / 4; }

// A machine that has not replied for so long is out of reach.
milliseconds patience_of(std::uint64_t timeout_ms) {
  constexpr milliseconds k_most{10000};
  return timeout_ms == 0 ? k_most : std::clamp(milliseconds(timeout_ms / 4), milliseconds(50), k_most);
}

}  // namespace

std::unique_ptr<members_channel> members_channel::open(std::unique_ptr<channel> first, const bootstrap_options& o,
                                                       std::uint32_t incarnation) {
  struct address_offer {
    xio_unique_id_t id;
    std::uint32_t incarnation;
  } mine{};
  auto keys = first->keys();
  const int me = first->rank();
  auto listening = listen_for_members(o);
  mine.id = listening.id;
  mine.incarnation = incarnation;
  std::vector<member_place> places;
  for (const address_offer& one : allgather_value(*first, mine))
    places.push_back(
        {places.size() == static_cast<std::size_t>(me) ? std::vector<socket_address>{} : addresses_in(one.id, o),
         one.incarnation});
  const auto limit = first->limit();
  std::unique_ptr<members_channel> made(new members_channel(
      std::move(first), o, {me, std::move(keys), std::move(listening.listeners), o.tcp_trust_network != 0},
      std::move(places)));
  made->limit(limit);
  return made;
}

members_channel::members_channel(std::unique_ptr<channel> first, const bootstrap_options& o, member_links::self me,
                                 std::vector<member_place> places)
    : first_(std::move(first)),
      timeout_ms_(o.timeout_ms),
      links_(std::move(me), std::move(places)),
      view_(first_->rank(), pe_set::all(first_->size())),
      evidence_of_([](int) { return evidence::none; }) {}

std::string members_channel::text_of(const pe_set& some) const {
  std::string out;
  for (const int pe : some.list()) out += fmt::format("{}PE {}", out.empty() ? "" : ", ", pe);
  return out;
}

// --- Exchanges among the members of a view --------------------------------------------------------------

template <class Exchange>
auto members_channel::exchange(Exchange&& body) {
  if (broken_) throw error(*broken_);
  try {
    ensure_star();
    for (const auto& [pe, f] : links_.poll(0))
      if (f.kind == frame_kind::view) serve_latecomer(pe, f);
    star_->limit(limit());
    return body();
  } catch (const error& e) {
    broken_.emplace(e.status(), fmt::format("{}; after xio_world_shrink on every PE that lives they go on", e.what()));
    end_star();
    throw;
  }
}

std::vector<std::byte> members_channel::allgather(std::span<const std::byte> mine) {
  check_allgather_size(mine.size());
  return exchange([&] { return star_->allgather(mine); });
}

cells members_channel::all_to_all(const cells& mine) {
  check_cells(mine);
  return exchange([&] { return star_->all_to_all(mine); });
}

void members_channel::fail_if_dead() const {
  for (const int pe : view_.members().list())
    if (pe != rank() && (evidence_of_(pe) == evidence::dead || links_.is_refused(pe)))
      fail(XIO_ERR_PEER, "PE {} has ended, and collective calls need every PE of the world", pe);
}

// The star's links are made with its first exchange.
void members_channel::ensure_star() {
  if (star_ != nullptr) return;
  star_ = build_star({links_, view_.members(), rank(), view_.number(), timeout_ms_, [this] { fail_if_dead(); },
                      [this](int pe, const frame& f) {
                        if (f.kind == frame_kind::view) serve_latecomer(pe, f);
                      },
                      [](int) { return sealed_link(); }},
                     end_of_exchange(timeout_ms_));
}

// One that is late in an agreement hears of its result; one that begins another one ends this exchange.
void members_channel::serve_latecomer(int pe, const frame& f) {
  const auto m = view_message::decode(f.payload, size());
  if (!m) return;
  if (m->word == view_word::call && m->view == view_.number() + 1 && takes_part(pe))
    fail(XIO_ERR_PEER, "PE {} is in xio_world_shrink, and this PE in another call", pe);
  for (const auto& [to, reply] : view_.receive(pe, *m)) links_.send(to, frame_kind::view, reply.encode());
}

// Others may wait for this rank in an exchange: they hear why it does not come.
void members_channel::end_star() {
  if (star_ == nullptr) return;
  moved_ += star_->bytes_moved();
  for (sealed_link& l : star_->release()) {
    if (!l.is_open()) continue;
    l.queue_abort(XIO_ERR_PEER, fmt::format("PE {} has left an exchange: {}", rank(),
                                            broken_ ? broken_->what() : "it is in xio_world_shrink"));
    links_.part(std::move(l));
  }
  star_.reset();
}

// --- Agreement ------------------------------------------------------------------------------------------

struct members_channel::effort {
  using clock = deadline::clock;
  deadline until;
  milliseconds patience;
  clock::time_point began = clock::now(), heard = began, called{};
  int to = -1;      // the member that it has called last,
  unsigned by = 0;  // and the link by which
  pe_set probed{};  // that a leader has called
  bool was_hurried = false;
  int messages = 0;
  milliseconds since(clock::time_point t) const { return std::chrono::duration_cast<milliseconds>(clock::now() - t); }
};

void members_channel::say(effort& e, int pe, const view_message& m) {
  if (!links_.has(pe)) return;
  links_.send(pe, frame_kind::view, m.encode());
  ++e.messages;
}

void members_channel::send(effort& e, const view_agreement::sent& all) {
  for (const auto& [to, m] : all) say(e, to, m);
}

void members_channel::give_up(xio_status_t status, const std::string& sentence) {
  for (const int pe : view_.members().list()) {
    if (!links_.has(pe)) continue;
    sealed_link l = links_.take(pe);
    l.queue_abort(status, sentence);
    links_.part(std::move(l));
  }
  throw error(status, sentence);
}

// Proofs; and those that are out of reach, or stopped, for long.
void members_channel::gather_evidence(effort& e) {
  for (const int pe : (view_.members() - view_.dead()).list()) {
    if (pe == rank()) continue;
    const evidence found = evidence_of_(pe);
    if (found == evidence::dead || links_.is_refused(pe)) view_.prove_dead(pe);
    if (found == evidence::excluded) view_.shun(pe);
    const bool silent =
        (found == evidence::stopped && e.since(e.began) > e.patience) || links_.unreached_for(pe) > e.patience;
    if (silent) view_.shun(pe);
  }
}

void members_channel::lead(effort& e) {
  const pe_set awaited = view_.awaited();
  // Also to one that has joined and whose link has ended: its port tells whether it has, too.
  if (e.since(e.began) > k_probe_after)
    for (const int pe : (view_.members() - view_.dead()).list()) {
      if (pe != rank()) links_.open(pe);
      if (awaited.has(pe) && links_.has(pe) && !e.probed.has(pe)) {
        e.probed.add(pe);
        say(e, pe, view_.call());
      }
    }
  send(e, view_.step());
  if (!view_.takes_part()) return;
  if (!view_.awaited().empty()) e.heard = effort::clock::now();
  if (e.since(e.heard) < e.patience) return;
  if (!e.was_hurried) {
    e.was_hurried = true;
    e.heard = effort::clock::now();
    view_.hurry();
    send(e, view_.step());
  } else if (view_.is_stuck()) {
    fail_without_quorum();
  }
}

void members_channel::fail_without_quorum() {
  give_up(XIO_ERR_STATE,
          fmt::format("xio_world_shrink: PE {} and those that it reaches may not go on: they are no majority of the {} "
                      "PEs of the world, nor the half with PE {}, and the others are not proven to be dead; where they "
                      "are known to be off, say so by xio_exclude with XIO_EXCLUDE_VOUCHED",
                      rank(), view_.members().count(), view_.members().lowest()));
}

void members_channel::fail_late(bool leads) {
  const pe_set awaited = view_.awaited();
  if (leads && view_.is_stuck()) fail_without_quorum();
  if (leads && awaited.empty())
    give_up(XIO_ERR_TIMEOUT,
            fmt::format("xio_world_shrink: the last PE came to it at the end of its {} ms, too late to "
                        "decide; call it again on every PE",
                        time_of_shrink(timeout_ms_)));
  if (leads)
    give_up(
        XIO_ERR_TIMEOUT,
        fmt::format("xio_world_shrink: {} did not call it within {} ms; every PE that lives calls it, and those that "
                    "do not may be left out by xio_exclude",
                    text_of(awaited), time_of_shrink(timeout_ms_)));
  give_up(XIO_ERR_TIMEOUT,
          fmt::format("xio_world_shrink: PE {}, to which this PE looks, said nothing of a decision within {} ms; every "
                      "PE that lives calls it, and those that do not may be left out by xio_exclude",
                      view_.leader(), time_of_shrink(timeout_ms_)));
}

void members_channel::follow(effort& e) {
  constexpr milliseconds k_again{1000};
  const int leader = view_.leader();
  links_.open(leader);
  if (!links_.has(leader)) {
    // The next ones may be out of reach as well: that shows at the same time.
    for (const int pe : (view_.members() - view_.dead()).list())
      if (pe != rank() && e.since(e.began) > k_probe_after) links_.open(pe);
    e.to = -1;
    return;
  }
  const unsigned by = links_.count(leader);
  if (e.to == leader && e.by == by && e.since(std::max(e.called, e.heard)) < k_again) return;
  e.to = leader;
  e.by = by;
  e.called = effort::clock::now();
  say(e, leader, view_.call());
}

void members_channel::hear(effort& e, int pe, const frame& f) {
  e.heard = effort::clock::now();
  if (f.kind == frame_kind::abort && pe == view_.leader()) throw_abort(f, fmt::format("PE {}", pe));
  if (const auto word = greeted_word(f)) {
    // It is in an exchange: of this view, which is over; or of a later one, and then it knows the decision.
    if (*word > view_.number()) return say(e, pe, view_.call());
    sealed_link l = links_.take(pe);
    l.queue_abort(XIO_ERR_PEER, fmt::format("PE {} is in xio_world_shrink", rank()));
    links_.part(std::move(l));
    return;
  }
  if (f.kind != frame_kind::view) return;
  const auto m = view_message::decode(f.payload, size());
  if (!m) return;
  ++e.messages;
  send(e, view_.receive(pe, *m));
}

members_channel::decision members_channel::shrink(const call_report& mine) {
  end_star();
  const pe_set before = view_.members();
  const bool alone = before.count() == 1;
  effort e{deadline::in(time_of_shrink(timeout_ms_)), patience_of(timeout_ms_)};
  e.probed = pe_set(size());
  view_.report(mine);
  view_.begin();
  while (view_.takes_part()) {
    gather_evidence(e);
    const bool leads = view_.leader() == rank();
    if (leads)
      lead(e);
    else
      follow(e);
    if (!view_.takes_part()) break;
    const deadline until = leads ? e.until : after_root(e.until, timeout_ms_);
    if (until.passed()) fail_late(leads);
    for (const auto& [pe, f] : links_.poll(until.poll_ms(alone ? 0 : k_evidence_ms))) {
      hear(e, pe, f);
      if (!view_.takes_part()) break;
    }
  }
  const view_value& v = view_.decided(view_.number());
  if (view_.is_out())
    fail(XIO_ERR_STATE,
         "xio_world_shrink: the other PEs have left this one, PE {}, out of view {} of the world; it can "
         "only end",
         rank(), view_.number());
  broken_.reset();
  if (v.members != before) first_->forsake();
  return {before - v.members, v.dead - v.members, v.state, e.messages, (v.members & view_.dead()).empty()};
}

void members_channel::end_shrink() {
  view_.end();
  links_.part_all();
}

}  // namespace xio::bootstrap
