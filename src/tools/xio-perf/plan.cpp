// SPDX-License-Identifier: MIT
// What is run: the command line's wishes, and what suits the platform where it has none.
#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-perf/measure.hpp"

namespace xio::perf {
namespace {

struct defaults {
  std::uint32_t ctas, threads, iterations, warm_up, repeat;
};

// On a GPU enough to fill its links; on CPU threads enough to see that it works.
defaults defaults_of(const test& t, bool host) {
  if (t.id == test_id::sdma_copy) return {1, 1, host ? 4u : 20u, 2, host ? 5u : 11u};
  switch (t.how) {
    case shape::bandwidth: return host ? defaults{2, 64, 4, 1, 5} : defaults{32, 256, 100, 10, 11};
    case shape::storage: return host ? defaults{1, 16, 20, 2, 1} : defaults{1, 32, 200, 20, 1};
    case shape::host: return {1, 1, 20, 2, 1};
    case shape::latency:
    case shape::pingpong:
    case shape::collective: break;
  }
  return {1, host ? 64u : 256u, 200, 20, 1};
}

// All threads of a wave take part, so the default becomes whole waves; check() judges a number that the user gave.
std::uint32_t default_threads(const defaults& d, const test& t, scope who, std::uint32_t wave) {
  if (!t.scoped || who != scope::wave) return d.threads;
  return (d.threads + wave - 1) / wave * wave;
}

// Bytes of a drive that ops are spread over, and how many rounds of all groups at most that may be, one behind the
// other.
constexpr std::uint64_t k_drive_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t k_drive_rounds = 16;

bool wants_values(test_id id) {
  using enum test_id;
  return id == p_lat || id == g_lat || id == atomic_lat || id == p_bw || id == g_bw || id == atomic_bw;
}

bool is_packet(std::uint64_t bytes) { return bytes >= 4 && bytes <= 64 && (bytes & (bytes - 1)) == 0; }

std::vector<std::uint64_t> steps_of(const settings& s, const test& t) {
  if (!s.sizes.empty()) return s.sizes;
  std::uint64_t low = s.smallest != 0 ? s.smallest : t.smallest;
  std::uint64_t high = s.largest != 0 ? s.largest : t.largest;
  if (s.largest == 0) high = std::max(low, high);
  if (s.smallest == 0) low = std::min(low, high);
  std::vector<std::uint64_t> all;
  for (std::uint64_t at = low; at <= high; at *= s.factor) all.push_back(at);
  return all;
}

// Under `all` no test gets a size that it refuses: packets have few, and drives have blocks of up to 4 KiB.
bool suits(const test& t, std::uint64_t bytes) {
  if (t.id == test_id::packet_pingpong) return is_packet(bytes);
  return t.how != shape::storage || bytes % 4096 == 0;
}

std::vector<std::uint64_t> sizes_of(const settings& s, const test& t) {
  if (!t.sized) return {wants_values(t.id) ? s.element : t.smallest};
  const std::uint64_t element = t.reduces() ? 4 : wants_values(t.id) ? s.element : 1;
  std::vector<std::uint64_t> all;
  for (const std::uint64_t at : steps_of(s, t)) {
    const std::uint64_t bytes = (at + element - 1) / element * element;
    if (s.all && !suits(t, bytes)) continue;
    if (all.empty() || all.back() != bytes) all.push_back(bytes);
  }
  return all;
}

void check(const plan& p, const machine_shape& m) {
  const bool many = p.what->how == shape::bandwidth || p.what->how == shape::storage;
  if (many && p.who == scope::wave && p.threads % m.wave != 0)
    fail(XIO_ERR_ARG, "{}: {} threads are no whole waves of {}; give a multiple with -t", p.what->name, p.threads,
         m.wave);
  if (p.lockstep && p.ctas > m.workgroups)
    fail(XIO_ERR_ARG, "{}: --lockstep with {} workgroups, of which {} run at the same time; give fewer with -c",
         p.what->name, p.ctas, m.workgroups);
  for (const std::uint64_t bytes : p.sizes)
    if (p.what->id == test_id::packet_pingpong && !is_packet(bytes))
      fail(XIO_ERR_ARG, "{}: packets of {} bytes are not measured; give 4, 8, 16, 32 or 64 (-b, -e)", p.what->name,
           bytes);
  const std::uint64_t kept = std::uint64_t{p.iterations} * (p.what->how == shape::storage ? p.groups(m.wave) : 1);
  if (kept > (std::uint64_t{1} << 27))
    fail(XIO_ERR_ARG, "{}: {} samples do not fit; give fewer iterations (-n)", p.what->name, kept);
}

plan plan_of(const settings& s, const test& t, scope who, atomic_op op, std::uint32_t team, const machine_shape& m) {
  const defaults d = defaults_of(t, m.host);
  plan p;
  p.what = &t;
  p.who = who;
  p.op = op;
  p.team = team;
  p.reduction = s.reduction.value_or(xio_reduction::sum);
  p.ctas = s.ctas != 0 ? s.ctas : d.ctas;
  p.threads = s.threads != 0 ? s.threads : default_threads(d, t, who, m.wave);
  p.iterations = s.iterations != 0 ? s.iterations : d.iterations;
  p.warm_up = s.warm_up.value_or(d.warm_up);
  p.element = s.element;
  p.bidirectional = s.bidirectional;
  p.scattered = s.scattered;
  p.route = t.id == test_id::sdma_copy ? XIO_ROUTE_SDMA : s.route;
  p.sizes = sizes_of(s, t);
  if (t.how == shape::bandwidth) {
    p.repeat = s.repeat != 0 ? s.repeat : d.repeat;
    p.lockstep = s.lockstep;
  } else if (t.how != shape::storage) {
    p.ctas = 1;
    if (t.id == test_id::g_lat || t.id == test_id::atomic_lat || t.id == test_id::put_staged_lat ||
        t.id == test_id::get_staged_lat || (t.how == shape::pingpong && !t.scoped) ||
        (t.scoped && who == scope::thread))
      p.threads = 1;
    else if (who == scope::wave && t.scoped)
      p.threads = m.wave;
  }
  check(p, m);
  return p;
}

}  // namespace

std::uint32_t plan::groups(std::uint32_t wave) const {
  switch (who) {
    case scope::thread: return ctas * threads;
    case scope::wave: return ctas * (threads / wave);
    case scope::block: break;
  }
  return ctas;
}

std::vector<plan> plans_of(const settings& s, const machine_shape& m) {
  std::vector<plan> all;
  for (const test* t : s.tests) {
    std::vector<scope> scopes = s.scopes;
    if (scopes.empty()) scopes = {t->how == shape::bandwidth || !t->by_thread() ? scope::block : scope::thread};
    if (!t->scoped) scopes = {scope::thread};
    if (!t->by_thread()) std::erase(scopes, scope::thread);
    if (scopes.empty() && !s.all)
      fail(XIO_ERR_ARG, "{}: a wave or a workgroup calls it, a thread cannot; give -s wave, block or both", t->name);
    const std::vector<std::uint32_t> teams = t->of_team() && !s.teams.empty() ? s.teams : std::vector{0u};
    std::vector<atomic_op> ops = s.atomics;
    const bool atomic = t->id == test_id::atomic_lat || t->id == test_id::atomic_bw;
    if (!atomic || ops.empty()) ops = {t->id == test_id::atomic_bw ? atomic_op::add : atomic_op::fetch_add};
    for (const scope who : scopes)
      for (const atomic_op op : ops)
        for (const std::uint32_t team : teams)
          if (plan p = plan_of(s, *t, who, op, team, m); !p.sizes.empty()) all.push_back(std::move(p));
  }
  return all;
}

std::uint64_t stored_bytes(const plan& p, std::uint64_t bytes, const machine_shape& m) {
  const std::uint64_t round = p.groups(m.wave) * bytes;
  return round * std::clamp<std::uint64_t>(k_drive_bytes / round, 1, p.scattered ? k_drive_bytes : k_drive_rounds);
}

heap_need need_of(const std::vector<plan>& plans, const machine_shape& m, int n_pes) {
  heap_need need;
  std::set<std::uint32_t> teams;
  for (const plan& p : plans) {
    if (p.what->of_team()) teams.insert(p.team);
    for (const std::uint64_t bytes : p.sizes) {
      std::uint64_t src = bytes, dst = bytes;
      if (p.what->how == shape::storage) {
        src = stored_bytes(p, bytes, m);
        dst = p.groups(m.wave) * bytes;
      } else if (p.what->how == shape::collective) {
        src = dst = p.members(n_pes) * bytes;
      }
      if (src > k_most_bytes || dst > k_most_bytes)
        fail(XIO_ERR_ARG,
             "{}: {} ops of {} at the same time take more than {} of memory; give fewer (-c, -t, --team) or smaller",
             p.what->name, p.what->how == shape::collective ? p.members(n_pes) : p.groups(m.wave),
             tools::text_of_size(bytes), tools::text_of_size(k_most_bytes));
      need.src = std::max<std::size_t>(need.src, src);
      need.dst = std::max<std::size_t>(need.dst, dst);
    }
  }
  need.teams = teams.size();
  return need;
}

}  // namespace xio::perf
