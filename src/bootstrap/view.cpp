// SPDX-License-Identifier: MIT
#include "bootstrap/view.hpp"

#include "bootstrap/bytes.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::uint64_t k_has_value = 1, k_is_decided = 2;

void put_report(std::vector<std::uint64_t>& to, const call_report& r) {
  to.insert(to.end(), {r.calls, r.kind, r.a, r.b, r.c, r.before, r.after});
}
void put_set(std::vector<std::uint64_t>& to, const pe_set& s, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i) to.push_back(i < s.words().size() ? s.words()[i] : 0);
}

// Words of a message, in the order in which they were put.
struct reader {
  std::span<const std::byte> bytes;
  std::uint64_t word() {
    const std::uint64_t w = load_le64(bytes.data());
    bytes = bytes.subspan(8);
    return w;
  }
  call_report report() {
    call_report r;
    for (std::uint64_t* w : {&r.calls, &r.kind, &r.a, &r.b, &r.c, &r.before, &r.after}) *w = word();
    return r;
  }
  pe_set set(int world) {
    pe_set s(world);
    for (std::uint64_t& w : s.words()) w = word();
    if (world % 64 != 0) s.words().back() &= (std::uint64_t{1} << (world % 64)) - 1;
    return s;
  }
};

constexpr std::size_t k_head_words = 5 + 7 + 9;  // numbers, report, state

}  // namespace

std::vector<std::byte> view_message::encode() const {
  const std::size_t words = dead.words().size();
  const std::uint64_t flags = (value ? k_has_value : 0) | (is_decided ? k_is_decided : 0);
  std::vector<std::uint64_t> all{static_cast<std::uint64_t>(word), flags, view, ballot, value_ballot};
  put_report(all, report);
  const view_value v = value.value_or(view_value{});
  put_report(all, v.state.last);
  all.insert(all.end(), {v.state.in_doubt, v.state.alike});
  for (const pe_set* s : {&dead, &shunned, &v.members, &v.dead}) put_set(all, *s, words);
  std::vector<std::byte> out(all.size() * 8);
  for (std::size_t i = 0; i < all.size(); ++i) store_le64(out.data() + 8 * i, all[i]);
  return out;
}

std::optional<view_message> view_message::decode(std::span<const std::byte> bytes, int world) {
  const std::size_t set_words = pe_set(world).words().size();
  if (bytes.size() != 8 * (k_head_words + 4 * set_words)) return {};
  reader from{bytes};
  view_message m;
  const std::uint64_t word = from.word(), flags = from.word();
  if (word < 1 || word > static_cast<std::uint64_t>(view_word::decided)) return {};
  m.word = static_cast<view_word>(word);
  m.view = from.word();
  m.ballot = from.word();
  m.value_ballot = from.word();
  m.report = from.report();
  view_value v;
  v.state.last = from.report();
  v.state.in_doubt = from.word();
  v.state.alike = from.word();
  m.dead = from.set(world);
  m.shunned = from.set(world);
  v.members = from.set(world);
  v.dead = from.set(world);
  m.is_decided = (flags & k_is_decided) != 0;
  if ((flags & k_has_value) != 0) m.value = std::move(v);
  const bool needs_value = m.word == view_word::propose || m.word == view_word::decided || m.is_decided;
  if (needs_value && !m.value) return {};
  return m;
}

view_agreement::view_agreement(int me, const pe_set& members)
    : me_(me), world_(members.size()), members_(members), dead_(world_), shunned_(world_), joined_(world_) {}

void view_agreement::begin() {
  takes_part_ = true;
  hurried_ = false;
  ballot_ = {};
  joined_ = pe_set(world_);
  joined_.add(me_);
}

view_message view_agreement::call() const {
  view_message m;
  m.word = view_word::call;
  m.view = next();
  m.dead = dead_;
  m.shunned = shunned_;
  return m;
}

pe_set view_agreement::awaited() const { return members_ - dead_ - shunned_ - joined_; }

bool view_agreement::is_quorum(const pe_set& view, const pe_set& some, const pe_set& dead) {
  const int most = view.count(), have = (some & view).count();
  if ((some | dead).holds_all_of(view)) return true;
  return 2 * have > most || (2 * have == most && some.has(view.lowest()));
}

bool view_agreement::is_stuck() const {
  if (!takes_part_ || leader() != me_ || ballot_.number == 0 || ballot_.value) return false;
  if (!(awaited().empty() || hurried_)) return false;
  const bool all = (ballot_.promised | dead_).holds_all_of(ballot_.asked);
  return (all || hurried_) && !is_quorum(members_, ballot_.promised, ballot_.dead);
}

// Members that have completed as many calls have the same books; they differ by one call at most.
common_state view_agreement::merge(const std::vector<call_report>& reports) {
  common_state s;
  for (const call_report& r : reports)
    if (r.calls >= s.last.calls) s.last = r;
  for (const call_report& r : reports) {
    if (r.calls == s.last.calls) {
      if (r != s.last) s.alike = 0;
      continue;
    }
    s.in_doubt = 1;
    if (r.calls + 1 != s.last.calls || r.after != s.last.before) s.alike = 0;
  }
  return s;
}

// --- What every member does ----------------------------------------------------------------------------

bool view_agreement::hears(const acceptor& a, std::uint64_t ballot) const {
  return !a.fence.has(static_cast<int>((ballot - 1) % static_cast<std::uint64_t>(world_)));
}

// None: the message is of a view that this rank knows nothing of, or has no part in now.
view_agreement::acceptor* view_agreement::acceptor_for(const view_message& m) {
  if (m.ballot == 0 || m.view == 0 || m.view > next() || (m.view == next() && (!takes_part_ || is_out())))
    return nullptr;
  acceptor& a = acceptors_[m.view];
  if (a.fence.size() == 0) a.fence = pe_set(world_);
  return hears(a, m.ballot) ? &a : nullptr;
}

void view_agreement::on_prepare(int from, const view_message& m, sent& out) {
  acceptor* a = acceptor_for(m);
  // The same once more: the promise may have been lost with its connection.
  if (a == nullptr || m.ballot < a->promised || m.ballot == a->accepted) return;
  a->promised = m.ballot;
  a->fence = a->fence | m.dead;
  if (m.view == next()) dead_ = dead_ | m.dead;
  view_message reply;
  reply.word = view_word::promise;
  reply.view = m.view;
  reply.ballot = m.ballot;
  reply.dead = dead_;
  reply.shunned = shunned_;
  reply.report = report_;
  reply.value = a->decided ? a->decided : a->value;
  reply.value_ballot = a->accepted;
  reply.is_decided = a->decided.has_value();
  hand(from, reply, out);
}

void view_agreement::on_propose(int from, const view_message& m, sent& out) {
  acceptor* a = acceptor_for(m);
  if (a == nullptr || m.ballot < a->promised) return;
  a->promised = a->accepted = m.ballot;
  a->value = m.value;
  view_message reply;
  reply.word = view_word::accept;
  reply.view = m.view;
  reply.ballot = m.ballot;
  reply.dead = dead_;
  hand(from, reply, out);
}

void view_agreement::on_decided(const view_message& m, sent& out) {
  acceptor* a = m.view == next() ? acceptor_for(m) : nullptr;
  if (a == nullptr || a->promised > m.ballot) return;
  decide(*a, m.ballot, *m.value, out);
}

void view_agreement::decide(acceptor& a, std::uint64_t ballot_number, const view_value& value, sent& out) {
  a.promised = a.accepted = ballot_number;
  a.value = a.decided = value;
  ++number_;
  // Also those that are left out shall know.
  pe_set informed = (joined_ | ballot_.asked) & members_;
  informed.remove(me_);
  to_all(informed, word_of(number_), out);
  members_ = value.members;
  shunned_ = shunned_ & members_;
  round_ = 0;
  takes_part_ = false;
}

view_message view_agreement::word_of(std::uint64_t number) const {
  const acceptor& a = acceptors_.at(number);
  view_message m;
  m.word = view_word::decided;
  m.view = number;
  m.ballot = m.value_ballot = a.accepted;
  m.dead = dead_;
  m.value = a.decided;
  return m;
}

// --- What the leader does ------------------------------------------------------------------------------

void view_agreement::to_all(const pe_set& to, const view_message& m, sent& out) {
  for (int pe = to.lowest(); pe >= 0; pe = to.next(pe))
    if (pe != me_) out.emplace_back(pe, m);
  if (to.has(me_)) hand(me_, m, out);
}

void view_agreement::hand(int from, const view_message& m, sent& out) {
  if (from != me_) {
    out.emplace_back(from, m);
    return;
  }
  const sent more = receive(me_, m);
  out.insert(out.end(), more.begin(), more.end());
}

void view_agreement::on_call(int from, const view_message& m, sent& out) {
  if (m.view != 0 && m.view < next()) return out.emplace_back(from, word_of(m.view)), void();
  if (m.view > next()) return out.emplace_back(from, call()), void();
  if (!takes_part_) return;
  dead_ = dead_ | m.dead;
  joined_.add(from);
  // One that comes again has lost its connection, and what was under way.
  if (!ballot_.asked.has(from)) return;
  out.emplace_back(from, ballot_.value ? proposal() : preparation());
}

view_message view_agreement::preparation() const {
  view_message m;
  m.word = view_word::prepare;
  m.view = next();
  m.ballot = ballot_.number;
  m.dead = ballot_.dead;
  return m;
}
view_message view_agreement::proposal() const {
  view_message m = preparation();
  m.word = view_word::propose;
  m.value = ballot_.value;
  return m;
}

// Higher than all that this rank has heard of, and its own.
void view_agreement::start_ballot(sent& out) {
  const auto n = static_cast<std::uint64_t>(world_);
  const std::uint64_t before = acceptors_[next()].promised;
  do ++round_;
  while (1 + static_cast<std::uint64_t>(me_) + n * (round_ - 1) <= before);
  ballot_ = {};
  ballot_.number = 1 + static_cast<std::uint64_t>(me_) + n * (round_ - 1);
  ballot_.dead = dead_ & members_;
  ballot_.asked = (joined_ & members_) - dead_;
  ballot_.promised = ballot_.accepted = pe_set(world_);
  to_all(ballot_.asked, preparation(), out);
}

view_agreement::sent view_agreement::step() {
  sent out;
  if (!takes_part_ || is_out() || leader() != me_ || !(awaited().empty() || hurried_)) return out;
  const bool new_proof = ballot_.dead != (dead_ & members_);
  const bool newcomer = !ballot_.value && !ballot_.asked.holds_all_of((joined_ & members_) - dead_);
  if (ballot_.number == 0 || new_proof || newcomer) start_ballot(out);
  if (ballot_.number != 0 && !ballot_.value) propose(out);
  return out;
}

view_value view_agreement::choose_value() const {
  std::uint64_t best = 0;
  const view_value* found = nullptr;
  for (const auto& [pe, p] : ballot_.promises) {
    if (!p.value) continue;
    if (p.is_decided) return *p.value;
    if (found == nullptr || p.value_ballot > best) {
      best = p.value_ballot;
      found = &*p.value;
    }
  }
  if (found != nullptr) return *found;
  view_value v;
  v.members = ballot_.promised;
  v.dead = ballot_.dead;
  const auto apart = [&](int a, int b) {
    return ballot_.promises.at(a).shunned.has(b) || ballot_.promises.at(b).shunned.has(a);
  };
  for (;;) {
    int worst = -1, most = 0;
    for (const int a : v.members.list()) {
      int complaints = 0;
      for (const int b : v.members.list()) complaints += a != b && apart(a, b) ? 1 : 0;
      if (complaints != 0 && complaints >= most) most = complaints, worst = a;
    }
    if (worst < 0) break;
    v.members.remove(worst);
  }
  std::vector<call_report> reports;
  for (const int pe : v.members.list()) reports.push_back(ballot_.promises.at(pe).report);
  v.state = merge(reports);
  return v;
}

void view_agreement::propose(sent& out) {
  const bool all = (ballot_.promised | dead_).holds_all_of(ballot_.asked);
  if (!(all || hurried_) || !ballot_.promised.has(me_)) return;
  if (!is_quorum(members_, ballot_.promised, ballot_.dead)) return;
  ballot_.value = choose_value();
  to_all(ballot_.asked - dead_, proposal(), out);
}

void view_agreement::on_promise(int from, const view_message& m) {
  dead_ = dead_ | m.dead;
  if (!takes_part_ || m.view != next() || m.ballot != ballot_.number) return;
  if (ballot_.value || !ballot_.asked.has(from)) return;
  ballot_.promised.add(from);
  ballot_.promises[from] = m;
}

void view_agreement::on_accept(int from, const view_message& m, sent& out) {
  if (!takes_part_ || m.view != next() || m.ballot != ballot_.number) return;
  if (!ballot_.value || !ballot_.asked.has(from)) return;
  ballot_.accepted.add(from);
  acceptor& a = acceptors_[next()];
  if (a.decided || a.promised != ballot_.number || !ballot_.accepted.has(me_)) return;
  if (!is_quorum(members_, ballot_.accepted, ballot_.dead)) return;
  const view_value value = *ballot_.value;
  decide(a, ballot_.number, value, out);
}

view_agreement::sent view_agreement::receive(int from, const view_message& m) {
  sent out;
  switch (m.word) {
    case view_word::call: on_call(from, m, out); break;
    case view_word::prepare: on_prepare(from, m, out); break;
    case view_word::promise: on_promise(from, m); break;
    case view_word::propose: on_propose(from, m, out); break;
    case view_word::accept: on_accept(from, m, out); break;
    case view_word::decided: on_decided(m, out); break;
  }
  return out;
}

}  // namespace xio::bootstrap
