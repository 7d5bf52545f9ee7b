// SPDX-License-Identifier: MIT
#include "tools/xio-verify/litmus.hpp"

#include <fmt/core.h>

namespace xio::verify {
namespace {

constexpr const char* k_pass = "message passing";
constexpr const char* k_on = "passing on";
constexpr const char* k_store = "store buffering";
constexpr const char* k_load = "load buffering";

// In the order of the enumeration.
constexpr litmus_facts k_facts[] = {
    {k_pass, "release store, acquire fence", "xio_put_signal and a wait", 2, false, false, false},
    {k_pass, "release add, acquire fence", "signals that add", 2, false, false, true},
    {k_pass, "release fence and store, acquire fence", "entries before a doorbell, xio_fence and xio_p", 2, false,
     false, false},
    {k_pass, "release store, loads past the caches", "xio_get after a flag", 2, false, false, false},
    {k_pass, "no order", "", 2, true, false, false},
    {k_pass, "release store, acquire fence, of this GPU", "marks of a ring", 2, false, true, false},
    {k_pass, "release add, acquire fence, of this GPU", "counts of a ring", 2, false, true, true},
    {k_on, "release stores, acquire fences", "barriers, signals that pass a PE", 3, false, false, false},
    {k_on, "no order", "", 3, true, false, false},
    {k_store, "sequentially consistent fences", "xio_quiet, then a get", 2, false, false, false},
    {k_store, "no order", "", 2, true, false, false},
    {k_load, "acquire fence, release store", "words that hand a ring on", 2, false, false, false},
    {k_load, "a store that depends on the load", "slots that are used again", 2, false, false, false},
    {k_load, "no order", "", 2, true, false, false},
    {"coherence", "relaxed loads and stores of one word", "every flag", 2, false, false, false},
    {"atomic adds", "of system scope", "xio_atomic_add, signals that add", 2, false, false, true},
    {"atomic adds", "of this GPU", "tickets and credits of a ring", 2, false, true, true},
};
static_assert(sizeof k_facts / sizeof k_facts[0] == k_litmus_count);

bool is_pair(litmus t) { return std::string(facts_of(t).test) == k_store || std::string(facts_of(t).test) == k_load; }

// The party whose register says it all.
std::uint32_t reader_of(litmus t) {
  return t == litmus::adds || t == litmus::adds_in_gpu ? 0 : facts_of(t).parties - 1;
}

const char* outcome_name(litmus t, bool weak) {
  const std::string test = facts_of(t).test;
  if (test == k_pass || test == k_on) return weak ? "old data behind the flag" : "data before the flag";
  if (test == "coherence") return weak ? "went backwards" : "in order";
  return weak ? "adds were lost" : "all adds counted";
}

}  // namespace

const litmus_facts& facts_of(litmus t) { return k_facts[static_cast<int>(t)]; }

void count(litmus t, const std::uint64_t* registers, std::uint32_t instances, litmus_result& to) {
  const std::string test = facts_of(t).test;
  for (std::uint32_t i = 0; i < instances; ++i) {
    const std::uint64_t a = registers[i], b = registers[instances + i];
    const std::uint64_t read = registers[std::uint64_t{reader_of(t)} * instances + i];
    if (is_pair(t) ? a == 0 || b == 0 : read == 0) {
      ++to.not_run;
      continue;
    }
    ++to.runs;
    // Of store buffering: both missed. Of load buffering: both saw what was stored behind the other's load.
    const bool weak = !is_pair(t) ? read != 1 : test == k_store ? a == 1 && b == 1 : a != 1 && b != 1;
    to.weak += weak ? 1 : 0;
    ++to.outcomes[is_pair(t) ? fmt::format("read {} and {}", a - 1, b - 1) : outcome_name(t, weak)];
  }
}

}  // namespace xio::verify
