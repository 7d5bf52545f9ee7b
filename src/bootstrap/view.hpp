// SPDX-License-Identifier: MIT
// How the members of a world agree on those that go on: one decree of Paxos a view, with proofs of death. Pure: no
// sockets, no clock, no look at anybody. tests/model/view.pml has the same rules, and the mistakes that they exclude.
//
//   message   from, to            rule
//   call      member -> leader    it takes part; those that it has proven dead, those that it shuns
//   prepare   leader -> members   a ballot with D, who is proven dead as it starts; D does not change afterwards
//   promise   member -> leader    if the ballot is higher than any before; from then on nothing is heard of D's members
//   propose   leader -> members   once a quorum S has promised: the decided value of the reports, else the one that was
//                                 accepted last, else S without those that shun each other
//   accept    member -> leader    unless a higher ballot was promised
//   decided   leader -> members   once a quorum has accepted, the leader among them, and it has promised no higher one;
//             any -> a late one   a member takes it unless it has promised a higher ballot
//
// quorum S of a view V: S and D are all of V, or 2|S| > |V|, or 2|S| = |V| and S has the lowest of V.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "bootstrap/pe_set.hpp"

namespace xio::bootstrap {

// The last collective call that changed what all members keep alike, as one of them reports it: all words are 0 where
// there was none.
struct call_report {
  std::uint64_t calls = 0;  // that were complete, this one the last
  std::uint64_t kind = 0;   // of it; the agreement looks at nothing but whether it is undone: see k_goes_back
  std::uint64_t a = 0, b = 0, c = 0;
  std::uint64_t before = 0, after = 0;  // hashes of the books
  bool operator==(const call_report&) const = default;
};
constexpr std::uint64_t k_goes_back = 0x100;

// The state with which a view starts. Members that have not completed call number `last.calls` do it if it goes
// forward; those that have undo it if it goes back.
struct common_state {
  call_report last;
  std::uint64_t in_doubt = 0;  // 1: a member has completed the last call, and another has not
  std::uint64_t alike = 1;     // 0: members that have completed as many calls have different books
  // The books of all from then on.
  std::uint64_t hash() const { return in_doubt != 0 && (last.kind & k_goes_back) != 0 ? last.before : last.after; }
  bool operator==(const common_state&) const = default;
};

struct view_value {
  pe_set members, dead;  // dead: of the view before, proven
  common_state state;
  bool operator==(const view_value&) const = default;
};

enum class view_word : std::uint32_t { call = 1, prepare, promise, propose, accept, decided };

struct view_message {
  view_word word{};
  std::uint64_t view = 0;          // the number of the one to be decided
  std::uint64_t ballot = 0;        // 0: none
  pe_set dead, shunned;            // call: both; prepare: D; promise: shunned
  call_report report;              // promise
  std::uint64_t value_ballot = 0;  // promise, decided: in which `value` was accepted last
  bool is_decided = false;         // promise: `value` is
  std::optional<view_value> value;

  std::vector<std::byte> encode() const;
  // None: it is no message of a world of so many ranks.
  static std::optional<view_message> decode(std::span<const std::byte> bytes, int world);
};

class view_agreement {
 public:
  using sent = std::vector<std::pair<int, view_message>>;

  view_agreement(int me, const pe_set& members);

  std::uint64_t number() const { return number_; }
  const pe_set& members() const { return members_; }
  // Decided without this rank: it has no part in the world any more.
  bool is_out() const { return !members_.has(me_); }

  // Evidence. Proofs are for good; a member that this rank shuns, because it has excluded it or does not reach it,
  // stays so until a view is decided.
  void prove_dead(int pe) { dead_.add(pe); }
  void shun(int pe) { shunned_.add(pe); }
  const pe_set& dead() const { return dead_; }
  // Its next promises report that.
  void report(const call_report& r) { report_ = r; }

  // Begins to take part, until the next view is decided. Only then it makes promises and leads: what it reports must
  // not change any more.
  void begin();
  bool takes_part() const { return takes_part_; }
  void end() { takes_part_ = false; }

  // The rank that this one looks to: the lowest that is neither dead nor shunned.
  int leader() const { return (members_ - dead_ - shunned_).lowest(); }
  view_message call() const;
  // Of a leader: those that it waits for. The caller says by shun() that it need not, or by hurry() that it shall go on
  // with what it has.
  pe_set awaited() const;
  void hurry() { hurried_ = true; }
  // Whether a leader without a quorum has nobody left to wait for.
  bool is_stuck() const;

  // Sends all that is due by now: for the leader, after evidence.
  sent step();
  sent receive(int from, const view_message& m);

  // Values by the number of the view that they decided, from 1 on.
  const view_value& decided(std::uint64_t number) const { return *acceptors_.at(number).decided; }
  view_message word_of(std::uint64_t number) const;

  // Of the members of a view, with these dead.
  static bool is_quorum(const pe_set& view, const pe_set& some, const pe_set& dead);
  static common_state merge(const std::vector<call_report>& reports);

 private:
  struct acceptor {
    std::uint64_t promised = 0, accepted = 0;
    std::optional<view_value> value, decided;
    pe_set fence;  // of those nothing is heard
  };
  struct ballot {
    std::uint64_t number = 0;
    pe_set dead, asked, promised, accepted;
    std::map<int, view_message> promises;
    std::optional<view_value> value;
  };
  std::uint64_t next() const { return number_ + 1; }
  bool hears(const acceptor& a, std::uint64_t ballot) const;
  acceptor* acceptor_for(const view_message& m);
  void start_ballot(sent& out);
  view_message preparation() const;
  view_message proposal() const;
  void propose(sent& out);
  view_value choose_value() const;
  void decide(acceptor& a, std::uint64_t ballot_number, const view_value& value, sent& out);
  void to_all(const pe_set& to, const view_message& m, sent& out);
  void hand(int from, const view_message& m, sent& out);
  void on_call(int from, const view_message& m, sent& out);
  void on_prepare(int from, const view_message& m, sent& out);
  void on_propose(int from, const view_message& m, sent& out);
  void on_promise(int from, const view_message& m);
  void on_accept(int from, const view_message& m, sent& out);
  void on_decided(const view_message& m, sent& out);

  const int me_, world_;
  std::uint64_t number_ = 0, round_ = 0;
  pe_set members_, dead_, shunned_;
  call_report report_;
  bool takes_part_ = false, hurried_ = false;
  std::map<std::uint64_t, acceptor> acceptors_;  // by the number of the view
  // Of the view to be decided.
  pe_set joined_;
  ballot ballot_;
};

}  // namespace xio::bootstrap
