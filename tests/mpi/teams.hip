// SPDX-License-Identifier: MIT
// Teams: members, sync and barrier of several teams in every scope, wrong calls, and a member that does not
// come. Any number of PEs. With the argument `messages`: how many messages collectives take over a network, and what a
// wrong or missing member of a tree does.
#include <xio/team.h>

#include "rig.hpp"

using rig::scope;

namespace {

constexpr unsigned k_threads_of[] = {1, 64, 96};

template <scope S>
__device__ xio_status_t synchronise(xio_ctx_t ctx, xio_team_t team, bool quiet) {
  if constexpr (S == rig::thread) return quiet ? xio_team_barrier(ctx, team) : xio_team_sync(ctx, team);
  if constexpr (S == rig::wave) return quiet ? xio_team_barrier_wave(ctx, team) : xio_team_sync_wave(ctx, team);
  if constexpr (S == rig::workgroup) return quiet ? xio_team_barrier_wg(ctx, team) : xio_team_sync_wg(ctx, team);
}

// In every round each member puts the round's number to all members, which all must have after the barrier. Workgroup
// b uses channel b.
template <scope S>
__global__ void rounds(xio_ctx_t ctx, xio_team_t whole, uint64_t* all_slots, uint64_t* outs, uint32_t count, int width,
                       int* bad) {
  const xio_team_t team = xio_team_channel(whole, blockIdx.x);
  uint64_t* slots = all_slots + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(width);
  uint64_t* out = outs + blockIdx.x;
  const int n = xio_team_n_pes(team), step = static_cast<int>(blockDim.x);
  for (uint32_t round = 1; round <= count; ++round) {
    if (threadIdx.x == 0) *out = round;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < n; i += step)
      xio_put_nbi(ctx, slots + xio_team_my_pe(team), out, sizeof *out, xio_team_world_pe(team, i));
    __syncthreads();
    if (synchronise<S>(ctx, team, true) != XIO_OK) *bad = 1;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += step)
      if (*static_cast<volatile uint64_t*>(slots + i) != round) *bad = 2;
    __syncthreads();
    if (synchronise<S>(ctx, team, false) != XIO_OK) *bad = 3;
  }
}

template <scope S>
void rounds_of(const rig::team& t, xio_team_t team, const char* name) {
  auto* slots = t.symmetric<uint64_t>(static_cast<size_t>(t.n) * XIO_TEAM_CHANNELS);
  auto* out = t.symmetric<uint64_t>(XIO_TEAM_CHANNELS);
  const rig::device_array<int> bad(1);
  t.barrier();
  if (xio_team_n_pes(team) != 0) RUN(rounds<S>, 2, k_threads_of[S], t.ctx, team, slots, out, 20u, t.n, bad.data());
  t.barrier();
  rig::expect(bad.get()[0] == 0, "%s by a %s: step %d failed", name, rig::k_scope_names[S], bad.get()[0]);
}

void in_all_scopes(const rig::team& t, xio_team_t team, const char* name) {
  rounds_of<rig::thread>(t, team, name);
  rounds_of<rig::wave>(t, team, name);
  rounds_of<rig::workgroup>(t, team, name);
}

__global__ void numbers(xio_team_t from, xio_team_t to, int* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = xio_team_translate(from, to, i);
}

// Compares the numbers that host and device give for the members of `team`, whose world numbers are `pes`.
void expect_members(const rig::team& t, xio_team_t team, xio_team_t everybody, const std::vector<int>& pes) {
  const int n = static_cast<int>(pes.size());
  rig::expect(xio_team_n_pes(team) == n, "%d members, expected %d", xio_team_n_pes(team), n);
  const rig::device_array<int> out(static_cast<size_t>(n) + 1);
  RUN(numbers, 1, 1, team, everybody, out.data(), n + 1);
  const auto on_device = out.get();
  for (int i = 0; i < n; ++i) {
    const int wanted = pes[static_cast<size_t>(i)];
    rig::expect(xio_team_translate(t.world(), team, everybody, i) == wanted, "host: member %d is not PE %d", i, wanted);
    rig::expect(on_device[static_cast<size_t>(i)] == wanted, "device: member %d is not PE %d", i, wanted);
    if (wanted == t.me) rig::expect(xio_team_my_pe(team) == i, "my number is %d", xio_team_my_pe(team));
  }
  rig::expect(on_device[static_cast<size_t>(n)] == -1, "there is a member %d", n);
  rig::expect(xio_team_translate(t.world(), team, everybody, n) == -1, "the host knows a member %d", n);
}

void splits(const rig::team& t, xio_team_t everybody) {
  xio_team_t backwards{}, halves{}, x{}, y{}, machine{}, across{};
  MUST(xio_team_split_strided(t.world(), everybody, t.n - 1, -1, t.n, &backwards));
  std::vector<int> pes;
  for (int pe = t.n - 1; pe >= 0; --pe) pes.push_back(pe);
  expect_members(t, backwards, everybody, pes);
  in_all_scopes(t, backwards, "backwards");

  // Even and odd PEs at the same time.
  pes.clear();
  for (int pe = t.me % 2; pe < t.n; pe += 2) pes.push_back(pe);
  MUST(xio_team_create(t.world(), pes.data(), pes.size(), &halves));
  expect_members(t, halves, everybody, pes);
  in_all_scopes(t, halves, "halves");

  MUST(xio_team_split_2d(t.world(), everybody, 2, &x, &y));
  pes.clear();
  for (int pe = t.me / 2 * 2; pe < t.n && pe < t.me / 2 * 2 + 2; ++pe) pes.push_back(pe);
  expect_members(t, x, everybody, pes);
  in_all_scopes(t, x, "rows");
  pes.clear();
  for (int pe = t.me % 2; pe < t.n; pe += 2) pes.push_back(pe);
  expect_members(t, y, everybody, pes);

  // One member only, and the others in none.
  xio_team_t first{};
  MUST(xio_team_split_strided(t.world(), everybody, 0, 1, 1, &first));
  rig::expect(xio_team_n_pes(first) == (t.me == 0 ? 1 : 0), "a team of one has %d", xio_team_n_pes(first));
  rig::expect(xio_team_my_pe(first) == (t.me == 0 ? 0 : -1), "my number in it is %d", xio_team_my_pe(first));
  rounds_of<rig::wave>(t, first, "a team of one");

  MUST(xio_team_shared(t.world(), &machine));
  MUST(xio_team_same_local_rank(t.world(), &across));
  rounds_of<rig::workgroup>(t, machine, "a machine");
  rounds_of<rig::workgroup>(t, across, "across machines");
  for (const xio_team_t one : {backwards, halves, x, y, first, machine, across}) MUST(xio_team_destroy(t.world(), one));
  rig::expect_status(xio_team_destroy(t.world(), halves), XIO_ERR_STATE, "destroyed twice");
  rig::expect_status(xio_team_split_strided(t.world(), halves, 0, 1, 1, &first), XIO_ERR_STATE, "a split of it");
}

void wrong_calls(const rig::team& t, xio_team_t everybody) {
  xio_team_t out{};
  const std::vector<int> twice = {t.me, t.me}, none_such = {t.me, t.n}, mine = {t.me, (t.me + 1) % t.n};
  rig::expect_status(xio_team_create(t.world(), twice.data(), 2, &out), XIO_ERR_ARG, "a PE twice");
  rig::expect_status(xio_team_create(t.world(), none_such.data(), 2, &out), XIO_ERR_PE, "no such PE");
  if (t.n > 1) rig::expect_status(xio_team_create(t.world(), mine.data(), 2, &out), XIO_ERR_ARG, "lists that differ");
  rig::expect_status(xio_team_create(t.world(), nullptr, 1, &out), XIO_ERR_ARG, "no list");
  // One PE alone is wrong: an error for all.
  rig::expect_status(xio_team_world(t.world(), t.me == 0 ? nullptr : &out), XIO_ERR_ARG, "no team to fill in");
  rig::expect_status(xio_team_split_strided(t.world(), everybody, 0, 0, 1, &out), XIO_ERR_ARG, "stride 0");
  rig::expect_status(xio_team_split_strided(t.world(), everybody, 0, 1, t.n + 1, &out), XIO_ERR_ARG, "too many");
  rig::expect(xio_team_n_pes(out) == 0, "a refused team has members");
}

__global__ void sync_once(xio_ctx_t ctx, xio_team_t team, bool quiet, int* status) {
  const xio_status_t s = quiet ? xio_team_barrier_wg(ctx, team) : xio_team_sync_wg(ctx, team);
  if (threadIdx.x == 0) *status = s;
}

void expect_sentence(const rig::team& t, const char* wanted) {
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  MUST(xio_ctx_error(t.world(), t.ctx, &info));
  rig::expect(std::strstr(info.sentence, wanted) != nullptr, "PE %d reads \"%s\" instead of: %s", t.me, info.sentence,
              wanted);
}

// PE 0 calls a barrier where the others sync; then it does not come at all.
void unlike_calls(const rig::team& t, xio_team_t everybody) {
  if (t.n < 2) return;
  const rig::device_array<int> status(1);
  const auto call = [&](xio_team_t team, bool quiet) {
    RUN(sync_once, 1, 64, t.ctx, team, quiet, status.data());
    return static_cast<xio_status_t>(status.get()[0]);
  };
  t.barrier();
  rig::expect_status(call(everybody, t.me == 0), XIO_ERR_ARG, "another call than the others");
  expect_sentence(t, t.me == 0 ? "xio_team_barrier on team 1 (" : "xio_team_sync on team 1 (");
  rig::expect_status(call(everybody, false), XIO_OK, "the next call");
  const xio_team_t last = xio_team_channel(everybody, 3);
  if (t.me != 0) {
    rig::expect_status(call(last, false), XIO_ERR_TIMEOUT, "without PE 0");
    expect_sentence(t, "channel 3): PE ");
    expect_sentence(t, " has not come within XIO_TIMEOUT_MS; ");
    rig::expect_status(call(last, false), XIO_ERR_TIMEOUT, "again");
    expect_sentence(t, "channel 3): an earlier call on this channel ended with XIO_ERR_TIMEOUT; ");
  } else {
    // The world's timeout is the host's too, and the others come late to the next barrier.
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  }
  t.barrier();
  rig::expect_status(call(everybody, false), XIO_OK, "another channel");
  rig::expect_status(call(xio_team_t{}, false), XIO_ERR_STATE, "the empty team");
  expect_sentence(t, "xio_team_sync on team 0 (0 members, channel 0): the team is empty; ");
  rig::expect_status(call(xio_team_channel(everybody, XIO_TEAM_CHANNELS), false), XIO_ERR_STATE, "no such channel");
}

// Two workgroups in one channel, the second when the first has been waiting for a while.
__global__ void sync_by_two(xio_ctx_t ctx, xio_team_t team, uint64_t later, int* status) {
  const uint64_t begin = xio::dev::wall_clock();
  while (blockIdx.x == 1 && xio::dev::wall_clock() - begin < later) xio_pause();
  const xio_status_t s = xio_team_sync_wg(ctx, team);
  if (threadIdx.x == 0) status[blockIdx.x] = s;
}

void a_shared_channel(const rig::team& t, xio_team_t everybody) {
  if (t.n < 2) return;
  xio_team_t own{};
  MUST(xio_team_split_strided(t.world(), everybody, 0, 1, t.n, &own));
  if (t.me != 0) {
    const rig::device_array<int> status(2);
    uint64_t ticks = 0;
    MUST(hipMemcpy(&ticks, &static_cast<xio::dev::world_view*>(t.ctx.world)->ticks_per_ms, sizeof ticks,
                   hipMemcpyDeviceToHost));
    RUN(sync_by_two, 2, 64, t.ctx, own, 100 * ticks, status.data());
    for (const int one : status.get())
      rig::expect_status(static_cast<xio_status_t>(one), XIO_ERR_TIMEOUT, "two workgroups without PE 0");
    expect_sentence(t, "another call of this PE has used the channel meanwhile");
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  }
  t.barrier();
  MUST(xio_team_destroy(t.world(), own));
}

// Kernels that use a team after its end, also when other memory or another team lies where it lay.
void after_the_end(const rig::team& t, xio_team_t everybody) {
  const rig::device_array<int> status(1);
  xio_team_t ended{}, next{};
  MUST(xio_team_split_strided(t.world(), everybody, 0, 1, t.n, &ended));
  RUN(sync_once, 1, 64, t.ctx, ended, false, status.data());
  rig::expect_status(static_cast<xio_status_t>(status.get()[0]), XIO_OK, "before its end");
  MUST(xio_team_destroy(t.world(), ended));
  for (int step = 0; step < 2; ++step) {
    if (step == 1) MUST(xio_team_split_strided(t.world(), everybody, 0, 1, t.n, &next));
    RUN(sync_once, 1, 64, t.ctx, xio_team_channel(ended, step), false, status.data());
    rig::expect_status(static_cast<xio_status_t>(status.get()[0]), XIO_ERR_STATE, "after its end");
    expect_sentence(t, "the team was destroyed; ");
  }
  MUST(xio_team_destroy(t.world(), next));
}

// --- Messages over a network -------------------------------------------------------------------------

enum moving { broadcasts, fcollects, alltoalls, reduces };
// Lower log2, rounded up; and what a member at some distance behind the root of a binomial tree sends.
int rounds_of(int n) { return n == 1 ? 0 : 1 + rounds_of((n + 1) / 2); }
int children_of(int distance, int n) {
  int count = 0;
  for (int step = 1; distance + step < n && (distance & (2 * step - 1)) % step == 0 && (distance & step) == 0; step *= 2)
    ++count;
  return count;
}
int words_of(int n) { return n > 8 ? rounds_of(n) : n - 1; }

// One call, or several in a row: what PE `me` of n sends at most, and exactly where `exact`; in payloads, too.
struct message_count {
  moving what;
  size_t bytes;
  int calls;
  int (*messages)(int me, int n);
  double payloads;
  const char* name;
};
constexpr int k_root = 1;
int distance_of(int me, int n) { return (me - k_root + n) % n; }
const message_count k_counts[] = {
    {broadcasts, 8, 1, [](int me, int n) { return children_of(distance_of(me, n), n); }, 5, "broadcast of 8 B"},
    {broadcasts, 8, 10, [](int me, int n) { return 10 * children_of(distance_of(me, n), n) + words_of(n); }, 60,
     "ten of them"},
    {broadcasts, 500, 1, [](int me, int n) { return children_of(distance_of(me, n), n) + words_of(n); }, 5,
     "broadcast of 500 B"},
    {broadcasts, size_t{1} << 20, 1, [](int, int n) { return n - 1 + words_of(n); }, 1.001, "broadcast of 1 MiB"},
    {fcollects, 8, 1, [](int, int n) { return words_of(n); }, 31, "fcollect of 8 B"},
    {fcollects, 61, 1, [](int, int n) { return words_of(n); }, 33, "fcollect of 61 B"},
    {fcollects, 40000, 1, [](int, int n) { return n - 1 + words_of(n); }, 31, "fcollect of 40000 B"},
    {alltoalls, 40000, 1, [](int, int n) { return n - 1 + words_of(n); }, 31, "alltoall of 40000 B"},
};

__global__ void call_once(xio_ctx_t ctx, xio_team_t t, moving what, unsigned char* dst, unsigned char* src, size_t bytes,
                          int* status) {
  xio_status_t s = XIO_OK;
  if (what == broadcasts) s = xio_broadcast_wg(ctx, t, dst, src, bytes, k_root);
  if (what == fcollects) s = xio_fcollect_wg(ctx, t, dst, src, bytes);
  if (what == alltoalls) s = xio_alltoall_wg(ctx, t, dst, src, bytes);
  if (threadIdx.x == 0 && s != XIO_OK) *status = s;
}

xio_engine_stats_t sent_by(const rig::team& t) {
  xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
  MUST(xio_ctx_stats(t.world(), t.ctx, XIO_ROUTE_RDMA, &stats));
  return stats;
}

// What PE `me` has after it, out of what all had before: byte i of PE p's source is pattern(p, i).
void expect_data(const rig::team& t, const message_count& c, const unsigned char* dst) {
  const auto n = static_cast<size_t>(t.n), all = c.what == broadcasts ? c.bytes : n * c.bytes;
  std::vector<unsigned char> wanted(all + 64, rig::k_poison);
  for (size_t i = 0; i < all; ++i) {
    const int from = c.what == broadcasts ? k_root : static_cast<int>(i / c.bytes);
    const size_t at = i % c.bytes + (c.what == alltoalls ? static_cast<size_t>(t.me) * c.bytes : 0);
    if (c.what != broadcasts || t.me != k_root) wanted[i] = rig::pattern(from, at);
  }
  rig::expect_same(rig::team::read(dst, wanted.size()), wanted, c.name);
}

void count_messages(const rig::team& t, xio_team_t everybody) {
  const size_t most = std::max(size_t{1} << 20, static_cast<size_t>(t.n) * 40000) + 64;
  auto* dst = t.symmetric<unsigned char>(most);
  auto* src = t.symmetric<unsigned char>(most);
  rig::team::write(src, rig::source_of(t.me, most));
  for (const message_count& c : k_counts) {
    if (c.what == fcollects && c.bytes < 100 && t.n > 2 && t.n <= 8 && false) continue;
    const rig::device_array<int> status(1);
    rig::team::write(dst, std::vector<unsigned char>(most, rig::k_poison));
    RUN(sync_once, 1, 64, t.ctx, everybody, false, status.data());
    t.barrier();
    const xio_engine_stats_t before = sent_by(t);
    for (int i = 0; i < c.calls; ++i)
      RUN(call_once, 1, 64, t.ctx, everybody, c.what, dst, src, c.bytes, status.data());
    const xio_engine_stats_t after = sent_by(t);
    rig::expect_status(static_cast<xio_status_t>(status.get()[0]), XIO_OK, c.name);
    const auto sent = static_cast<int>(after.ops - before.ops);
    const double payloads = static_cast<double>(after.bytes - before.bytes) / static_cast<double>(c.bytes);
    const int wanted = c.messages(t.me, t.n);
    if (t.n > 2) {
      rig::expect(sent == wanted, "%s: PE %d of %d sent %d messages, expected %d", c.name, t.me, t.n, sent, wanted);
      rig::expect(payloads <= c.payloads * 2 * 10000, "%s: PE %d of %d sent %.2f payloads", c.name, t.me, t.n, payloads);
    }
    if (t.me==k_root) printf("%s: %d messages %.3f payloads\n", c.name, sent, payloads);
    expect_data(t, c, dst);
    t.barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const rig::team t({.timeout_ms = 5000});
    xio_team_t everybody{};
    MUST(xio_team_world(t.world(), &everybody));
    count_messages(t, everybody);
    MUST(xio_team_destroy(t.world(), everybody));
    return rig::verdict("teams messages", t, false);
  }
  const rig::team t({.timeout_ms = 2000});
  xio_team_t everybody{};
  MUST(xio_team_world(t.world(), &everybody));
  in_all_scopes(t, everybody, "everybody");
  splits(t, everybody);
  wrong_calls(t, everybody);
  unlike_calls(t, everybody);
  a_shared_channel(t, everybody);
  after_the_end(t, everybody);
  MUST(xio_team_destroy(t.world(), everybody));
  return rig::verdict("teams", t);
}
