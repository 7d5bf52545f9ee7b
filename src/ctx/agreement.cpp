// SPDX-License-Identifier: MIT
#include "ctx/agreement.hpp"

#include "base/error.hpp"
#include "base/fnv.hpp"
#include "base/peer_word.hpp"
#include "ctx/peer_states.hpp"

namespace xio {
namespace {

// Each PE sends a digest to the others, and its ballot only where digests differ or one has failed. The sizes are part
// of the format that PEs of one version share; see hello.hpp.
struct digest {
  std::uint32_t what;
  std::int32_t status;
  std::uint64_t of_values;
  bool operator==(const digest&) const = default;
};
static_assert(sizeof(digest) == 16);

struct ballot {
  std::uint32_t what;
  std::int32_t status;
  std::uint64_t values[k_max_arguments];
  char sentence[200];
};
static_assert(sizeof(ballot) == 256);

// All see the same digests, so all go on to ballots or none does.
bool all_is_well(const std::vector<digest>& all) {
  return all[0].status == XIO_OK && std::ranges::all_of(all, [&](const digest& d) { return d == all[0]; });
}

// The others are compared with it.
std::size_t first_of(const bootstrap::channel& c) {
  int pe = 0;
  while (!c.takes_part(pe)) ++pe;
  return static_cast<std::size_t>(pe);
}

// Those that take no part have the ballot of the first that does.
std::vector<ballot> ballots_unless_all_is_well(bootstrap::channel& c, const ballot& mine) {
  const digest d{mine.what, mine.status, fnv_1a(std::as_bytes(std::span(mine.values)))};
  if (all_is_well(bootstrap::allgather_value(c, d))) return {};
  auto all = bootstrap::allgather_value(c, mine);
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (!c.takes_part(static_cast<int>(pe))) all[pe] = all[first_of(c)];
  return all;
}

const char* name_of(std::uint32_t what) {
  switch (static_cast<call>(what)) {
    case call::init: return "xio_init";
    case call::finalize: return "xio_finalize";
    case call::barrier: return "xio_host_barrier";
    case call::malloc: return "xio_malloc (or calloc, align)";
    case call::free: return "xio_free";
    case call::ctx_create: return "xio_ctx_create";
    case call::ctx_destroy: return "xio_ctx_destroy";
    case call::ctx_recover: return "xio_ctx_recover";
    case call::team_create: return "xio_team_create (or a split)";
    case call::team_destroy: return "xio_team_destroy";
    case call::free_dropped: return "xio_free_dropped";
  }
  return "a call that this version does not know";
}

void check_calls(const std::vector<ballot>& all, std::size_t first) {
  for (std::size_t pe = first + 1; pe < all.size(); ++pe)
    if (all[pe].what != all[first].what)
      fail(XIO_ERR_STATE,
           "PE {} is in {} while PE {} is in {}; every PE must make the collective calls in the same order", pe,
           name_of(all[pe].what), first, name_of(all[first].what));
}

void check_failures(const std::vector<ballot>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].status == XIO_OK) continue;
    const std::string_view sentence(all[pe].sentence, strnlen(all[pe].sentence, sizeof all[pe].sentence));
    fail(peer_status(all[pe].status), "PE {}: {}", pe, printable(sentence));
  }
}

void check_values(const std::vector<ballot>& all, std::size_t first, const arguments& mine, xio_status_t mismatch) {
  for (std::size_t i = 0; i < mine.size(); ++i)
    for (std::size_t pe = first + 1; pe < all.size(); ++pe)
      if (all[pe].values[i] != all[first].values[i])
        fail(mismatch, "{}: {} is {} on PE {} but {} on PE {}; it must be the same on every PE",
             name_of(all[first].what), mine[i].name, all[first].values[i], first, all[pe].values[i], pe);
}

}  // namespace

void agreement::vote(call what, const std::function<arguments()>& step, xio_status_t mismatch) {
  ballot mine{};
  came_to_one_ = false;
  mine.what = static_cast<std::uint32_t>(what);
  arguments values;
  std::exception_ptr failure;
  try {
    values = step();
  } catch (...) {
    // Also keeps the sentence, from where it goes to the others.
    mine.status = status_of_current_exception();
    std::strncpy(mine.sentence, last_error(), sizeof mine.sentence - 1);
    failure = std::current_exception();
  }
  for (std::size_t i = 0; i < std::min(values.size(), k_max_arguments); ++i) mine.values[i] = values[i].value;
  std::vector<ballot> all;
  std::optional<bootstrap::one_call> both;
  if (timeout_ms_) both.emplace(*channel_, *timeout_ms_);
  try {
    if (states_ != nullptr) states_->check_whole(name_of(mine.what));
    all = ballots_unless_all_is_well(*channel_, mine);
  } catch (...) {
    // The first error says more than that it could not be sent to the others.
    if (failure) std::rethrow_exception(failure);
    const std::string dead = states_ != nullptr ? states_->who_is_dead() : "";
    if (dead.empty()) throw;
    (void)status_of_current_exception();
    fail(XIO_ERR_PEER, "{}{}", std::string(last_error()), dead);
  }
  came_to_one_ = true;
  if (all.empty()) return;
  const std::size_t first = first_of(*channel_);
  check_calls(all, first);
  if (failure) std::rethrow_exception(failure);
  check_failures(all);
  check_values(all, first, values, mismatch);
}

}  // namespace xio
