// SPDX-License-Identifier: MIT
#include "transport/sdma/engine_choice.hpp"

#include <bit>
#include <charconv>

#include "base/error.hpp"

namespace xio::sdma {
namespace {

constexpr std::uint32_t k_most_engines = 64;  // bits of a mask

[[noreturn]] void refuse_text(const std::string& text) {
  fail(XIO_ERR_CONFIG,
       "XIO_SDMA_ENGINES='{}' is neither engine numbers with commas, as 0,2, nor a mask, as 0xc; give one of them",
       text);
}

std::vector<std::uint32_t> engines_of_mask(const std::string& text) {
  std::uint64_t mask = 0;
  const auto [end, failed] = std::from_chars(text.data() + 2, text.data() + text.size(), mask, 16);
  if (failed != std::errc{} || end != text.data() + text.size()) refuse_text(text);
  if (mask == 0) fail(XIO_ERR_CONFIG, "XIO_SDMA_ENGINES='{}' names no engine; set a bit for each to use", text);
  std::vector<std::uint32_t> out;
  for (; mask != 0; mask &= mask - 1) out.push_back(static_cast<std::uint32_t>(std::countr_zero(mask)));
  return out;
}

}  // namespace

std::vector<std::uint32_t> parse_engines(const std::string& text) {
  if (text.empty()) return {};
  if (text.rfind("0x", 0) == 0) return engines_of_mask(text);
  std::vector<std::uint32_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::uint32_t engine = 0;
    const auto [after, failed] = std::from_chars(at, end, engine);
    if (failed != std::errc{} || out.size() >= k_most_engines) refuse_text(text);
    out.push_back(engine);
    if (after == end) return out;
    if (*after != ',') refuse_text(text);
    at = after + 1;
  }
}

bool is_lost_doorbell(std::uint64_t address_or_byte) {
  constexpr std::uint64_t k_page_doorbells = 512, k_first = 0x100, k_of_engine = 10;
  const std::uint64_t in_page = address_or_byte / sizeof(std::uint64_t) % k_page_doorbells;
  if (in_page < k_first) return false;
  const std::uint64_t number = in_page - k_first;
  return number / k_of_engine % 2 == 1 && number % k_of_engine < 2;
}

engine_chooser::engine_chooser(std::string gpu, const engine_facts& facts, std::vector<std::uint32_t> wanted)
    : gpu_(std::move(gpu)), facts_(facts), wanted_(std::move(wanted)) {
  if (facts_.all() == 0)
    fail(XIO_ERR_UNSUPPORTED, "GPU {} has no copy engines for user queues; set XIO_ROUTE=direct", gpu_);
  if (facts_.all() > k_most_engines)
    fail(XIO_ERR_UNSUPPORTED, "GPU {} claims {} copy engines, which no GPU has; is the kernel's topology broken?", gpu_,
         facts_.all());
  if (!wanted_.empty() && !facts_.by_engine)
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_SDMA_ENGINES is set, and a queue cannot be had on one engine: by the kernel's own calls that takes KFD "
         "1.17 (Linux 6.12), by libhsakmt 6.1; leave it unset");
  for (const std::uint32_t engine : wanted_)
    if (engine >= facts_.all())
      fail(XIO_ERR_CONFIG, "XIO_SDMA_ENGINES names engine {}, and GPU {} has engines 0 to {}", engine, gpu_,
           facts_.all() - 1);
  used_.resize(facts_.all() + 2);
}

std::uint32_t& engine_chooser::used_by(const engine_choice& c) {
  if (c.kind == queue_kind::by_engine) return used_[c.engine];
  return used_[facts_.all() + (c.kind == queue_kind::xgmi ? 1 : 0)];
}

std::uint32_t engine_chooser::capacity(const engine_choice& c) const {
  const std::uint32_t engines = c.kind == queue_kind::by_engine ? 1
                                : c.kind == queue_kind::xgmi    ? facts_.xgmi_engines
                                                                : facts_.engines;
  return facts_.queues_per_engine == 0 ? UINT32_MAX : engines * facts_.queues_per_engine;
}

engine_choice engine_chooser::take(const link_facts& link, std::uint32_t which, std::uint32_t tried) {
  std::vector<engine_choice> candidates;
  if (!wanted_.empty()) {
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      candidates.push_back({queue_kind::by_engine, wanted_[(which + i) % wanted_.size()]});
  } else {
    std::vector<std::uint32_t> recommended;
    for (std::uint32_t e = 0; facts_.by_engine && e < facts_.all(); ++e)
      if ((link.recommended >> e & 1) != 0) recommended.push_back(e);
    for (std::size_t i = 0; i < recommended.size(); ++i)
      candidates.push_back({queue_kind::by_engine, recommended[(which + i) % recommended.size()]});
    // Where the kernel recommends nothing, or its engines are taken, it places the queue itself.
    if (link.xgmi && facts_.xgmi_engines != 0) candidates.push_back({queue_kind::xgmi, 0});
    if (facts_.engines != 0) candidates.push_back({queue_kind::pcie, 0});
    if (candidates.empty()) candidates.push_back({queue_kind::xgmi, 0});
  }
  for (const engine_choice& c : candidates)
    if (used_by(c) < capacity(c) && tried-- == 0) {
      ++used_by(c);
      return c;
    }
  fail(XIO_ERR_NO_MEMORY,
       "the copy engines of GPU {} have no free queue: {} engines with {} each; use fewer contexts, a smaller pool or "
       "fewer XIO_SDMA_QUEUES{}",
       gpu_, facts_.all(), facts_.queues_per_engine, wanted_.empty() ? "" : ", or name more in XIO_SDMA_ENGINES");
}

void engine_chooser::give_back(const engine_choice& c) {
  if (used_by(c) != 0) --used_by(c);
}

}  // namespace xio::sdma
