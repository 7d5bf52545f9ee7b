// SPDX-License-Identifier: MIT
#include "model/nic/faults.hpp"

#include "base/error.hpp"
#include "model/chance.hpp"
#include "model/fault_text.hpp"
#include "proxy/queue_numbers.hpp"

namespace xio::model::rdma {
namespace {

// A lost op is carried out again after this, so many times, where there are no frames.
constexpr std::chrono::milliseconds k_again{10};
constexpr std::uint64_t k_tries = 8;
constexpr std::chrono::milliseconds k_reorder{1};

}  // namespace

fault_rules parse_faults(const std::string& text) {
  model::fault_rules all = model::parse_faults(text);
  return fault_rules{all.seed, std::move(all.nic)};
}

faults::faults(fault_rules rules, int pe, fault_level level) : rules_(std::move(rules)), pe_(pe), level_(level) {}

bool faults::applies(const fault_rule& r, std::uint32_t number) const {
  return (r.pe < 0 || r.pe == pe_) && (r.queue < 0 || r.queue == order_of(number));
}

// Drawn from what names the occasion, so that other queue pairs' traffic changes nothing.
bool faults::strikes(std::size_t rule, std::uint32_t number, std::uint64_t count, std::uint64_t turn) const {
  return drawn({rules_.seed, static_cast<std::uint64_t>(pe_), static_cast<std::uint64_t>(order_of(number)),
                static_cast<std::uint64_t>(rule), count, turn},
               rules_.rules[rule].chance);
}

std::uint64_t faults::count_frame(std::uint32_t number) {
  const std::lock_guard hold(lock_);
  return frames_[number]++;
}

frame_fate faults::next_frame(std::uint32_t number) {
  const std::uint64_t count = count_frame(number);
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
    if (r.what == fault_rule::kind::fatal && nth == r.nth) {
      fatal_.store(true, std::memory_order_relaxed);
      return {injected_fault::kind::fail, {}, {outcome::local_qp_operation, rule::device_failed}};
    }
    if (r.what == fault_rule::kind::skip && nth == r.nth) return {injected_fault::kind::skip, {}, {}};
    if (r.what == fault_rule::kind::astray && nth == r.nth) return {injected_fault::kind::astray, {}, {}, r.by};
  }
  return level_ == fault_level::frames ? injected_fault{} : delayed(number, nth);
}

std::optional<std::uint64_t> faults::first_moved() const {
  std::optional<std::uint64_t> first;
  for (const fault_rule& r : rules_.rules)
    if (r.what == fault_rule::kind::moved && (r.pe < 0 || r.pe == pe_)) first = std::min(first.value_or(r.nth), r.nth);
  return first;
}

// From calloc(), since most of a large heap is never touched.
unsigned char* faults::place_of(void* base, std::uint64_t bytes) {
  const std::lock_guard hold(lock_);
  if (registered_++ < first_moved().value_or(0)) return static_cast<unsigned char*>(base);
  auto* const fresh = static_cast<unsigned char*>(std::calloc(bytes, 1));
  if (fresh == nullptr) fail(XIO_ERR_NO_MEMORY, "XIO_MODEL_FAULTS=moved: no {} bytes for those at {}", bytes, base);
  moved_.emplace_back(fresh);
  return fresh;
}

std::unique_ptr<faults> make_faults(const std::string& text, int pe, fault_level level) {
  if (text.empty()) return nullptr;
  return std::make_unique<faults>(parse_faults(text), pe, level);
}

}  // namespace xio::model::rdma
