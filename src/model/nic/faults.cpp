// SPDX-License-Identifier: MIT
#include "model/nic/faults.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/error.hpp"

namespace xio::model::rdma {

namespace {

// A lost op is carried out again after this, so many times, where there are no frames.
constexpr std::chrono::milliseconds k_again{10};
constexpr std::uint64_t k_tries = 8;
constexpr std::chrono::milliseconds k_reorder{1};

struct named {
  std::string_view name;
  outcome what;
};
constexpr named k_errors[] = {
    {"local_length", outcome::local_length},
    {"local_protection", outcome::local_protection},
    {"remote_invalid_request", outcome::remote_invalid_request},
    {"remote_access", outcome::remote_access},
    {"remote_operation", outcome::remote_operation},
    {"retry_exceeded", outcome::retry_exceeded},
    {"rnr_retry_exceeded", outcome::rnr_retry_exceeded},
};

class parser {
 public:
  explicit parser(const std::string& text) : text_(text) {}

  fault_rules run() {
    for (;;) {
      item();
      if (at_ == text_.size()) return std::move(out_);
      expect(',');
    }
  }

 private:
  [[noreturn]] void bad(const char* why) const {
    fail(XIO_ERR_CONFIG,
         "XIO_MODEL_FAULTS='{}': {} at character {}; give items such as drop=0.01, dup=0.01, reorder=0.01, "
         "delay=0.01:2ms, error@1000=remote_access, down@5000 or seed=7, with commas between them",
         text_, why, at_ + 1);
  }
  bool take(std::string_view word) {
    if (std::string_view(text_).substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    if (at_ == text_.size() || text_[at_] != c) bad("something that does not belong there");
    ++at_;
  }
  std::uint64_t number() {
    std::uint64_t v = 0;
    const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (ec != std::errc()) bad("no whole number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }
  double chance() {
    double v = 0;
    const char* first = text_.data() + at_;
    if (at_ == text_.size() || ((*first < '0' || *first > '9') && *first != '.')) bad("no chance between 0 and 1");
    const auto [end, ec] = std::from_chars(first, text_.data() + text_.size(), v, std::chars_format::fixed);
    if (ec != std::errc() || !(v >= 0 && v <= 1)) bad("no chance between 0 and 1");
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }
  std::chrono::microseconds duration() {
    const std::uint64_t v = number();
    if (v > 60'000'000) bad("a time of more than a minute");
    const std::uint64_t us = take("us") ? v : take("ms") ? v * 1000 : take("s") ? v * 1'000'000 : 0;
    if (us == 0 || us > 60'000'000) bad("no time between 1us and 60s");
    return std::chrono::microseconds(us);
  }
  outcome error_name() {
    for (const named& n : k_errors)
      if (take(n.name)) return n.what;
    bad("no known error");
  }
  void scopes(fault_rule& r) {
    while (take("/")) {
      if (r.pe < 0 && take("pe")) {
        const std::uint64_t v = number();
        if (v > std::numeric_limits<int>::max()) bad("no PE");
        r.pe = static_cast<int>(v);
      } else if (r.queue < 0 && take("queue")) {
        const std::uint64_t v = number();
        if (v > 0x7ff) bad("no queue pair below 2048");
        r.queue = static_cast<std::int64_t>(v);
      } else {
        bad("neither /peN nor /queueN");
      }
    }
  }
  void item() {
    using kind = fault_rule::kind;
    if (take("seed=")) {
      out_.seed = number();
      return;
    }
    fault_rule r;
    if (take("drop=")) {
      r.what = kind::drop;
      r.chance = chance();
    } else if (take("dup=")) {
      r.what = kind::twice;
      r.chance = chance();
    } else if (take("reorder=")) {
      r.what = kind::swap;
      r.chance = chance();
    } else if (take("delay=")) {
      r.what = kind::delay;
      r.chance = chance();
      expect(':');
      r.wait = duration();
    } else if (take("error@")) {
      r.what = kind::error;
      r.nth = number();
      expect('=');
      r.how = error_name();
    } else if (take("down@")) {
      r.what = kind::down;
      r.nth = number();
    } else {
      bad("no known fault");
    }
    scopes(r);
    out_.rules.push_back(r);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  fault_rules out_;
};

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// In which order the queue pair was made on its NIC (nic.cpp).
std::int64_t order_of(std::uint32_t number) { return (number - 64) & 0x7ff; }

}  // namespace

fault_rules parse_faults(const std::string& text) { return parser(text).run(); }

faults::faults(fault_rules rules, int pe, fault_level level) : rules_(std::move(rules)), pe_(pe), level_(level) {}

bool faults::applies(const fault_rule& r, std::uint32_t number) const {
  return (r.pe < 0 || r.pe == pe_) && (r.queue < 0 || r.queue == order_of(number));
}

// Drawn from what names the occasion, so that other queue pairs' traffic changes nothing.
bool faults::strikes(std::size_t rule, std::uint32_t number, std::uint64_t count, std::uint64_t turn) const {
  std::uint64_t x = mixed(rules_.seed);
  for (const std::uint64_t part : {static_cast<std::uint64_t>(pe_), static_cast<std::uint64_t>(order_of(number)),
                                   static_cast<std::uint64_t>(rule), count, turn})
    x = mixed(x ^ part);
  return static_cast<double>(x >> 11) * 0x1p-53 < rules_.rules[rule].chance;
}

frame_fate faults::next_frame(std::uint32_t number) {
  const std::uint64_t count = frames_[number]++;
  frame_fate fate;
  if (level_ != fault_level::frames) return fate;
  for (std::size_t i = 0; i < rules_.rules.size(); ++i) {
    const fault_rule& r = rules_.rules[i];
    if (r.what >= fault_rule::kind::error || !applies(r, number) || !strikes(i, number, count, 0)) continue;
    switch (r.what) {
      case fault_rule::kind::drop: fate.drop = true; break;
      case fault_rule::kind::twice: fate.twice = true; break;
      case fault_rule::kind::swap: fate.swap = true; break;
      default: fate.wait = std::max(fate.wait, r.wait); break;
    }
  }
  return fate;
}

// Without frames an op that is lost comes late, and one that comes twice or out of turn would break the NIC's promise:
// what is left of those is the wait.
injected_fault faults::delayed(std::uint32_t number, std::uint64_t nth) const {
  std::chrono::microseconds wait{0};
  for (std::size_t i = 0; i < rules_.rules.size(); ++i) {
    const fault_rule& r = rules_.rules[i];
    if (r.what >= fault_rule::kind::error || !applies(r, number)) continue;
    std::uint64_t losses = 0;
    while (losses < k_tries && strikes(i, number, nth, losses) && r.what == fault_rule::kind::drop) ++losses;
    if (losses == k_tries) return {injected_fault::kind::fail, {}, {outcome::retry_exceeded, rule::link_lost}};
    wait += k_again * losses;
    if (r.what == fault_rule::kind::delay && strikes(i, number, nth, 0)) wait += r.wait;
    if (r.what == fault_rule::kind::swap && strikes(i, number, nth, 0)) wait += k_reorder;
  }
  if (wait.count() == 0) return {};
  return {injected_fault::kind::delay, std::chrono::ceil<std::chrono::milliseconds>(wait), {}};
}

injected_fault faults::next(std::uint32_t number, std::uint64_t nth, const op&) {
  for (const fault_rule& r : rules_.rules) {
    if (!applies(r, number)) continue;
    if (r.what == fault_rule::kind::error && nth == r.nth)
      return {injected_fault::kind::fail, {}, {r.how, rule::injected}};
    if (r.what == fault_rule::kind::down && nth >= r.nth)
      return {injected_fault::kind::fail, {}, {outcome::retry_exceeded, rule::link_lost}};
  }
  return level_ == fault_level::frames ? injected_fault{} : delayed(number, nth);
}

std::unique_ptr<faults> make_faults(const std::string& text, int pe, fault_level level) {
  if (text.empty()) return nullptr;
  return std::make_unique<faults>(parse_faults(text), pe, level);
}

}  // namespace xio::model::rdma
