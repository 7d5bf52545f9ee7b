// SPDX-License-Identifier: MIT
// Why a job stands still. Waits for PEs are edges; the PE at their end, or that they go round, is the cause.
#include <fmt/core.h>

#include <set>

#include "ctx/job_picture.hpp"

namespace xio::info {
namespace {

using of = seen_wait::of;

// Waits that are short beside the oldest are what a hung job still does; a PE may come late to it, too.
constexpr double k_share_of_longest = 0.25, k_lasts_s = 2;

std::string pes_text(const std::set<int>& pes) {
  std::string out = pes.size() == 1 ? "PE " : "PEs ";
  std::size_t i = 0;
  for (const int pe : pes)
    if (++i <= 8) out += fmt::format("{}{}", i == 1 ? "" : i == pes.size() ? " and " : ", ", pe);
  return pes.size() > 8 ? out + fmt::format(" and {} others", pes.size() - 8) : out;
}

class graph {
 public:
  explicit graph(const seen_job& job) : job_(job), edges_(job.pes.size()) {
    for (const seen_wait& w : job.waits) lasts_ = std::max(lasts_, std::min(w.seconds * k_share_of_longest, k_lasts_s));
    for (const seen_wait& w : job.waits) {
      if (w.seconds < lasts_) continue;
      waits_.push_back(&w);
      if (w.for_pe != k_nobody && w.for_pe != w.pe) edges_[at(w.pe)].push_back(&w);
    }
  }

  std::string cause() const {
    if (waits_.empty()) {
      const std::string found = absent();
      return found.empty() ? "nobody waits: no PE is in a wait of XIO that lasts" : found;
    }
    for (const auto& find : {&graph::absent, &graph::device, &graph::op, &graph::two_callers, &graph::cycle,
                             &graph::never_came, &graph::words})
      if (std::string found = (this->*find)(); !found.empty()) return found;
    return first(*waits_.front());
  }

 private:
  static std::size_t at(int pe) { return static_cast<std::size_t>(pe); }
  static std::string first(const seen_wait& w) {
    return fmt::format("PE {} waits {}, for {:.1f} s", w.pe, w.text, w.seconds);
  }

  // Those that wait for `pe`, or for one that does.
  std::set<int> waiters(int pe) const {
    std::set<int> in{pe};
    for (std::size_t before = 0; before != in.size();) {
      before = in.size();
      for (const seen_wait* w : waits_)
        if (in.count(w->for_pe) != 0) in.insert(w->pe);
    }
    in.erase(pe);
    return in;
  }

  std::string then_wait(int pe) const {
    const auto who = waiters(pe);
    return who.empty() ? "" : fmt::format("; {} wait{} for it", pes_text(who), who.size() == 1 ? "s" : "");
  }

  std::string absent() const {
    for (int pe = 0; at(pe) < job_.pes.size(); ++pe) {
      const seen_pe& p = job_.pes[at(pe)];
      if (p.state == "running") continue;
      if (p.state == "stopped")
        return fmt::format("PE {} is stopped by a signal or a debugger (process {}){}", pe, p.pid, then_wait(pe));
      // One that nobody has seen has ended if others wait, and else may just be starting.
      if (p.state == "ended" || (job_.local_pes == job_.pes.size() && !waits_.empty()))
        return fmt::format("PE {} has ended: it has no process any more{}", pe, then_wait(pe));
      if (!waiters(pe).empty()) return fmt::format("PE {} is on another machine: ask there{}", pe, then_wait(pe));
    }
    return "";
  }

  std::string device() const {
    for (const of what : {of::drive, of::queue})
      for (const seen_wait* w : waits_)
        if (w->what == what) return first(*w) + then_wait(w->pe);
    return "";
  }

  // One that a host thread or a software device does not end, where nobody waits for its queue.
  std::string op() const {
    const seen_op* oldest = nullptr;
    for (const seen_op& o : job_.ops)
      if (o.under_way && o.seconds >= lasts_ && (oldest == nullptr || o.seconds > oldest->seconds)) oldest = &o;
    if (oldest == nullptr) return "";
    return fmt::format("PE {}'s {} has not come to its end for {:.1f} s; {}", oldest->pe, oldest->text, oldest->seconds,
                       first(*waits_.front()));
  }

  std::string two_callers() const {
    // A workgroup that came later may not have found out by itself.
    const auto beside = [this](const seen_wait& w) {
      return w.channel != 0 && std::ranges::any_of(waits_, [&](const seen_wait* o) {
               return o->pe == w.pe && o->channel == w.channel && o->workgroup != w.workgroup;
             });
    };
    for (const seen_wait* w : waits_)
      if (w->shared || beside(*w))
        return fmt::format(
            "two callers of PE {} are in one channel of a team at once, and each takes what is the "
            "other's: workgroup {} waits {}; give each workgroup a channel of its own",
            w->pe, w->workgroup, w->text);
    return "";
  }

  // Goes on from `pe`; true: it has come to the first of `way` again.
  bool goes_round(int pe, std::vector<const seen_wait*>& way, std::vector<bool>& been) const {
    for (const seen_wait* w : edges_[at(pe)]) {
      way.push_back(w);
      if (w->for_pe == way.front()->pe) return true;
      if (!been[at(w->for_pe)]) {
        been[at(w->for_pe)] = true;
        if (goes_round(w->for_pe, way, been)) return true;
      }
      way.pop_back();
    }
    return false;
  }

  std::string cycle() const {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      std::vector<const seen_wait*> way;
      std::vector<bool> been(edges_.size());
      if (!goes_round(static_cast<int>(i), way, been)) continue;
      std::string out = fmt::format("a cycle: PE {}", way.front()->pe);
      for (const seen_wait* w : way) out += fmt::format(" waits for PE {}", w->for_pe);
      for (std::size_t k = 0; k < way.size() && k < 4; ++k)
        out += fmt::format("{} PE {} waits {}", k == 0 ? ":" : ",", way[k]->pe, way[k]->text);
      return out;
    }
    return "";
  }

  // A PE for which others wait and which is in no call itself.
  std::string never_came() const {
    for (const seen_wait* w : waits_) {
      if (w->for_pe == k_nobody || job_.waits_in(at(w->for_pe))) continue;
      const auto who = waiters(w->for_pe);
      return fmt::format(
          "PE {0} never came: PE {1} waits {2}, for {3:.1f} s, and PE {0} is in no call that waits (its kernel "
          "was not launched, has ended, or computes){4}",
          w->for_pe, w->pe, w->text, w->seconds, who.size() > 1 ? then_wait(w->for_pe) : "");
    }
    return "";
  }

  // Only the program knows which PE sends a word.
  std::string words() const {
    const seen_wait* word = nullptr;
    std::set<int> pes, idle;
    std::string others;
    for (const seen_wait* w : waits_) {
      if (w->what == of::word) pes.insert(w->pe);
      if (w->what == of::word && word == nullptr) word = w;
      if (w->what != of::word && others.empty()) others = fmt::format("; PE {} waits {}", w->pe, w->text);
    }
    if (word == nullptr) return "";
    if (pes.size() == job_.pes.size() && pes.size() > 1)
      return fmt::format("a cycle of words: each of {} waits for one that another of them has to set; {}",
                         pes_text(pes), first(*word));
    for (std::size_t i = 0; i < job_.pes.size(); ++i)
      if (!job_.waits_in(i) && job_.pes[i].state == "running") idle.insert(static_cast<int>(i));
    if (!idle.empty())
      others += fmt::format("; {} in no call that waits (kernels not launched, ended, or computing): {}",
                            idle.size() == 1 ? "one is" : "some are", pes_text(idle));
    return fmt::format("nobody has set what PE {} waits for: {}{}", word->pe, first(*word), others);
  }

  const seen_job& job_;
  double lasts_ = 0;  // how many seconds a wait or op has to be old to be of the cause
  std::vector<const seen_wait*> waits_;
  std::vector<std::vector<const seen_wait*>> edges_;  // by PE
};

}  // namespace

std::string cause_of(const seen_job& job) { return graph(job).cause(); }

std::string text_of(const seen_job& job) {
  std::string out = cause_of(job) + "\n";
  for (const seen_wait& w : job.waits)
    out += fmt::format("  PE {} waits {}, for {:.1f} s{}\n", w.pe, w.text, w.seconds,
                       w.what == seen_wait::of::host ? "" : fmt::format(" (workgroup {})", w.workgroup));
  for (std::size_t i = 0; i < job.pes.size(); ++i)
    if (!job.waits_in(i))
      out += fmt::format("  PE {} does not wait ({}{})\n", i, job.pes[i].state,
                         job.pes[i].pid == 0 ? "" : fmt::format(", process {}", job.pes[i].pid));
  // Of each PE the last ones; --json has all.
  constexpr int k_shown = 3;
  int pe = k_nobody, shown = 0;
  for (const seen_op& o : job.ops) {
    shown = o.pe == pe ? shown + 1 : 0;
    pe = o.pe;
    if (shown >= k_shown) continue;
    const std::string when = o.seconds == k_unknown ? ""
                             : o.under_way          ? fmt::format(", under way for {:.1f} s", o.seconds)
                                                    : fmt::format(", {:.1f} s ago", o.seconds);
    out += fmt::format("  last of PE {}: {}{}\n", pe, o.text, when);
  }
  return out;
}

}  // namespace xio::info
