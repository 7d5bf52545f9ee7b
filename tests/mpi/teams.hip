// SPDX-License-Identifier: MIT
// Teams: members, sync and barrier of several teams in every scope, wrong calls, and a member that does not
// come. Any number of PEs. With the argument `messages`: how many messages collectives take over a network, and what a
// wrong or missing member of a tree does.
#include <xio/team.h>

#include "rig.hpp"

using rig::scope;

namespace {

constexpr unsigned k_threads_of[] = {1, 64, 96};
constexpr unsigned k_channels = 6;

template <scope S>
__device__ xio_status_t synchronise(const xio_ctx_t& ctx, xio_team_t team, bool quiet) {
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
  auto* slots = t.symmetric<uint64_t>(static_cast<size_t>(t.n) * k_channels);
  auto* out = t.symmetric<uint64_t>(k_channels);
  const rig::device_array<int> bad(1);
  t.barrier();
  if (xio_team_n_pes(team) != 0)
    RUN(rounds<S>, S == rig::wave ? k_channels : 2, k_threads_of[S], t.ctx, team, slots, out, 20u, t.n, bad.data());
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
  const std::vector<int> twice = {t.me, t.me}, none_such = {t.me, t.n}, mine = {t.me, t.right};
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
  const xio_error_info_t info = rig::error_of(t);
  rig::expect(std::strstr(info.sentence, wanted) != nullptr, "PE %d reads \"%s\" instead of: %s", t.me, info.sentence,
              wanted);
}

// PE 0 calls a barrier where the others sync; then it does not come at all.
void unlike_calls(const rig::team& t, xio_team_t everybody) {
  if (t.n < 2) return;
  const auto call = [&](xio_team_t team, bool quiet) { return rig::result_of(sync_once, 1, 64, t.ctx, team, quiet); };
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
  rig::expect_status(call(xio_team_channel(everybody, k_channels), false), XIO_ERR_STATE, "no such channel");
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
    for (const int one : status.get()) rig::expect_status(one, XIO_ERR_TIMEOUT, "two workgroups without PE 0");
    expect_sentence(t, "another call of this PE has used the channel meanwhile");
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  }
  t.barrier();
  MUST(xio_team_destroy(t.world(), own));
}

// Kernels that use a team after its end, also when other memory or another team lies where it lay.
void after_the_end(const rig::team& t, xio_team_t everybody) {
  xio_team_t ended{}, next{};
  MUST(xio_team_split_strided(t.world(), everybody, 0, 1, t.n, &ended));
  rig::expect_status(rig::result_of(sync_once, 1, 64, t.ctx, ended, false), XIO_OK, "before its end");
  MUST(xio_team_destroy(t.world(), ended));
  for (int step = 0; step < 2; ++step) {
    if (step == 1) MUST(xio_team_split_strided(t.world(), everybody, 0, 1, t.n, &next));
    rig::expect_status(rig::result_of(sync_once, 1, 64, t.ctx, xio_team_channel(ended, step), false), XIO_ERR_STATE,
                       "after its end");
    expect_sentence(t, "the team was destroyed; ");
  }
  MUST(xio_team_destroy(t.world(), next));
}

// --- Splits by the parent's members alone ------------------------------------------------------------

xio_status_t split(const rig::team& t, xio_team_t parent, int first, int stride, int count, xio_team_t* out) {
  return xio_team_split_strided(t.world(), parent, first, stride, static_cast<size_t>(count), out);
}

// The largest block that the heap gives, in steps; all PEs find the same.
size_t largest_block(const rig::team& t) {
  constexpr size_t k_step = 64 << 10;
  size_t low = 0, high = size_t{1} << 16;  // in steps
  while (high - low > 1) {
    const size_t at = (low + high) / 2;
    void* block = nullptr;
    const bool fits = xio_malloc(t.world(), at * k_step, &block) == XIO_OK;
    if (fits) MUST(xio_free(t.world(), block));
    (fits ? low : high) = at;
  }
  return low * k_step;
}

// The even PEs split their team, again and again, and the odd ones make no call of it.
void by_members_alone(const rig::team& t, xio_team_t everybody) {
  const int m = (t.n + 1) / 2;
  const bool is_even = t.me % 2 == 0;
  xio_team_t evens{}, reversed{}, first{}, x{}, y{}, none{};
  MUST(split(t, everybody, 0, 2, m, &evens));
  const size_t most = largest_block(t);
  if (is_even) {
    MUST(split(t, evens, m - 1, -1, m, &reversed));
    MUST(xio_team_split_2d(t.world(), reversed, 2, &x, &y));
    MUST(split(t, x, 0, 1, 1, &first));
  }
  MUST(xio_team_split_strided(t.world(), none, 0, 1, 1, &none));  // of the empty team, by any PE
  const int place = m - 1 - t.me / 2;
  std::vector<int> pes;
  for (int i = place / 2 * 2; is_even && i < m && i < place / 2 * 2 + 2; ++i) pes.push_back(2 * (m - 1 - i));
  expect_members(t, x, everybody, pes);
  in_all_scopes(t, reversed, "a split by its members");
  in_all_scopes(t, y, "columns of it");
  rounds_of<rig::wave>(t, first, "a team of one by its members");
  // Memory that only some hold bounds what all get.
  void* block = nullptr;
  rig::expect_status(xio_malloc(t.world(), most, &block), XIO_ERR_NO_MEMORY, "a block over a team's memory");

  // PE 0 holds memory where its right neighbour holds none.
  xio_team_t pair{}, both{};
  const std::vector<int> two = {0, 1};
  MUST(xio_team_create(t.world(), two.data(), t.me < 2 ? 2 : 0, &pair));
  if (t.me < 2) MUST(split(t, pair, 0, 1, 2, &both));
  rig::expect(both.work != first.work || t.me >= 2, "two teams of PE %d have one place", t.me);
  in_all_scopes(t, both, "a pair");
  in_all_scopes(t, reversed, "a split beside it");

  const void* work = reversed.work;
  for (const xio_team_t one : {reversed, x, y, first, both})
    if (one.id != 0) MUST(xio_team_destroy(t.world(), one));
  if (is_even) {
    rig::expect_status(xio_team_destroy(t.world(), reversed), XIO_ERR_STATE, "destroyed twice");
    rig::expect_status(split(t, reversed, 0, 1, 1, &first), XIO_ERR_STATE, "a split of what is no more");
    rig::expect_status(split(t, evens, 0, t.me == 0 ? 0 : 1, m, &reversed), XIO_ERR_ARG, "one has another stride");
    rig::expect_status(split(t, evens, 0, 1, t.me == 0 ? 1 : m, &reversed), XIO_ERR_ARG, "one has another count");
    rig::expect_status(xio_team_split_2d(t.world(), evens, 1, &x, t.me == 0 ? nullptr : &y), XIO_ERR_ARG, "no y");
    MUST(split(t, evens, 0, 1, m, &reversed));
    rig::expect(reversed.work == work, "the memory of a team that has ended is not given out again");
    MUST(xio_team_destroy(t.world(), reversed));
  }
  MUST(xio_malloc(t.world(), most - (4 << 20), &block));
  MUST(xio_free(t.world(), block));

  // PE 0 does not come. That ends the splits of this team, and nothing else.
  if (is_even && t.me != 0) {
    const auto begin = std::chrono::steady_clock::now();
    rig::expect_status(split(t, evens, 0, 1, m, &reversed), XIO_ERR_TIMEOUT, "without PE 0");
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    rig::expect(waited.count() < 1.25 * 2, "a split without PE 0 took %.2f s", waited.count());
    rig::expect_status(split(t, evens, 0, 1, m, &reversed), XIO_ERR_TIMEOUT, "again");
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
  t.barrier();
  in_all_scopes(t, evens, "a team that cannot be split any more");
  // Members that agree on nothing any more end their parts one by one; PE 0 learns of it by its first call.
  if (t.me == 0) rig::expect_status(xio_team_destroy(t.world(), evens), XIO_ERR_TIMEOUT, "of others that gave up");
  for (const xio_team_t one : {evens, pair}) MUST(xio_team_destroy(t.world(), one));
}

// --- Messages over a network -------------------------------------------------------------------------

enum moving { broadcasts, fcollects, alltoalls, reduces, reduces_in_place };
constexpr int k_root = 1;
constexpr size_t k_mib = size_t{1} << 20;

// By the laws of docs/teams.md: log2 n, rounded up; the words by which members agree; and the children in a tree.
int log2_up(int n) { return n == 1 ? 0 : 1 + log2_up((n + 1) / 2); }
int words_of(int n) { return n > 8 ? log2_up(n) : n - 1; }
int distance_of(int me, int n) { return (me - k_root + n) % n; }
int children_of(int me, int n) {
  int count = 0;
  for (int at = distance_of(me, n), step = 1; at % (2 * step) == 0 && at + step < n; step *= 2) ++count;
  return count;
}
int small_broadcast(int me, int n) { return n < 16 ? n - 1 : children_of(me, n); }
int blocks(int, int n) { return n - 1 + words_of(n); }
int large_reduce(int, int n) { return (n - 1) * (1 + (16 + n - 1) / n) + words_of(n); }  // pieces of 64 KiB

// The messages of a PE in `calls` such calls, and at most so many times the bytes, where that is said.
const struct {
  moving what;
  size_t bytes;
  int calls;
  int (*messages)(int me, int n);
  double payloads;
} k_counts[] = {
    {broadcasts, 8, 1, small_broadcast, 0},
    {broadcasts, 8, 10, [](int me, int n) { return 10 * small_broadcast(me, n) + (n < 16 ? 0 : log2_up(n)); }, 0},
    {broadcasts, 500, 1, [](int me, int n) { return children_of(me, n) + log2_up(n); }, 0},
    {broadcasts, k_mib, 1, [](int, int n) { return n - 1 + log2_up(n); }, 1.001},
    {fcollects, 8, 1, [](int, int n) { return words_of(n); }, 0},
    {fcollects, 60, 1, [](int, int n) { return words_of(n); }, 0},
    {fcollects, 40000, 1, blocks, 0},
    {alltoalls, 40000, 1, blocks, 0},
    {reduces, 4096, 1, [](int, int n) { return n > 5 ? 2 * (n - 1) + words_of(n) : n - 1; }, 4.1},
    {reduces, k_mib, 1, large_reduce, 2},
    {reduces_in_place, k_mib, 1, large_reduce, 2},
};

__global__ void call_once(xio_ctx_t ctx, xio_team_t t, moving what, float* dst, float* src, size_t bytes, int* status) {
  xio_status_t s = XIO_OK;
  float* from = what == reduces_in_place ? dst : src;
  if (what == broadcasts) s = xio_broadcast_wg(ctx, t, dst, src, bytes, k_root);
  if (what == fcollects) s = xio_fcollect_wg(ctx, t, dst, src, bytes);
  if (what == alltoalls) s = xio_alltoall_wg(ctx, t, dst, src, bytes);
  if (what >= reduces) s = xio_reduce_wg<xio_reduction::sum>(ctx, t, dst, from, bytes / sizeof *dst);
  if (threadIdx.x == 0) *status = s;
}
struct place {
  xio_team_t team;
  float *dst, *src;
  size_t count;
};
xio_status_t call_by(const rig::team& t, const place& p, moving what, size_t bytes) {
  return static_cast<xio_status_t>(rig::result_of(call_once, 1, 64, t.ctx, p.team, what, p.dst, p.src, bytes));
}
xio_engine_stats_t sent_by(const rig::team& t) {
  xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
  MUST(xio_ctx_stats(t.world(), t.ctx, XIO_ROUTE_RDMA, &stats));
  return stats;
}

// Floats whose sum depends on the order in which they are added, from number `first` on.
std::vector<float> source_of(int pe, size_t first, size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(rig::pattern(pe, first + i) + 1) * ((first + i) % 3 == 0 ? 1e-3f : 1.1f);
  return out;
}
// The result of PE `me`, by the definition, and poison behind it.
std::vector<float> result_of(const rig::team& t, moving what, size_t count) {
  std::vector<float> out(what == broadcasts && t.me == k_root ? count : 0, -1);
  for (int pe = 0; pe < t.n; ++pe) {
    const auto next = source_of(pe, what == alltoalls ? static_cast<size_t>(t.me) * count : 0, count);
    const bool is_sent = what == broadcasts ? pe == k_root && t.me != k_root : what < reduces || pe == 0;
    if (is_sent) out.insert(out.end(), next.begin(), next.end());
    for (size_t i = 0; i < count && what >= reduces && pe != 0; ++i) out[i] += next[i];
  }
  out.resize(out.size() + 16, -1);
  return out;
}

void count_messages(const rig::team& t, const place& p) {
  for (const auto& c : k_counts) {
    const std::string name = "call " + std::to_string(c.what) + " of " + std::to_string(c.bytes) + " bytes";
    auto before = source_of(t.me, 0, c.what == reduces_in_place ? c.bytes / sizeof(float) : 0);
    before.resize(p.count, -1);
    rig::team::write(p.dst, before);
    t.barrier();
    // All hear all, as before the first broadcast.
    rig::expect_status(call_by(t, p, broadcasts, 0), XIO_OK, "a broadcast of nothing");
    const xio_engine_stats_t first = sent_by(t);
    for (int i = 0; i < c.calls; ++i) rig::expect_status(call_by(t, p, c.what, c.bytes), XIO_OK, name.c_str());
    const xio_engine_stats_t last = sent_by(t);
    const int sent = static_cast<int>(last.ops - first.ops), wanted = c.messages(t.me, t.n);
    const double payloads = static_cast<double>(last.bytes - first.bytes) / static_cast<double>(c.bytes);
    rig::expect(sent == wanted && (c.payloads == 0 || payloads <= c.payloads),
                "%s: PE %d of %d sent %d messages, expected %d, and %.2f times the bytes", name.c_str(), t.me, t.n,
                sent, wanted, payloads);
    const auto after = result_of(t, c.what, c.bytes / sizeof(float));
    rig::expect(rig::team::read(p.dst, after.size()) == after, "%s: PE %d has other data", name.c_str(), t.me);
    t.barrier();
  }
}

// More broadcasts from turning roots than there are places of casts, with a member that comes late each time.
__global__ void in_a_row(xio_ctx_t ctx, xio_team_t t, uint64_t* dst, uint64_t* src, int* bad) {
  const int n = xio_team_n_pes(t), me = xio_team_my_pe(t);
  for (int i = 1; i <= 60; ++i) {
    const int root = i * i % n;
    for (int turn = 0; turn < 300 && me == i * 5 % n; ++turn) xio_pause();
    if (threadIdx.x == 0) *src = static_cast<uint64_t>(i * 1000 + me);
    __syncthreads();
    if (i % 23 == 0 && xio_fcollect_wg(ctx, t, dst + 1, src, sizeof *src) != XIO_OK) *bad = 1;
    if (xio_broadcast_wg(ctx, t, dst, src, sizeof *src, root) != XIO_OK) *bad = 2;
    if (me != root && *dst != static_cast<uint64_t>(i * 1000 + root)) *bad = 3;
    for (int m = 0; i % 23 == 0 && m < n; ++m)
      if (dst[1 + m] != static_cast<uint64_t>(i * 1000 + m)) *bad = 4;
    __syncthreads();
  }
}

// The member two places behind the root gives another count, or does not come; one member waits for it.
void a_bad_member(const rig::team& t, place p) {
  const int distance = distance_of(t.me, t.n), bad = (k_root + 2) % t.n;
  const std::string name = "PE " + std::to_string(bad) + ", its member " + std::to_string(bad) + ", has ";
  const bool fails = distance == 2 || distance == 3;
  rig::team::write(p.dst, std::vector<float>(64, 0));
  t.barrier();
  const xio_status_t got = call_by(t, p, broadcasts, distance == 2 ? 16 : 8);
  rig::expect_status(got, fails ? XIO_ERR_ARG : XIO_OK, "a broadcast of which one gives another count");
  if (distance == 2) expect_sentence(t, "called xio_broadcast of 8 bytes from root 1; all members call alike");
  if (distance == 3) expect_sentence(t, (name + "heard of a member in another call").c_str());
  const bool is_written = rig::team::read(p.dst, 1)[0] != 0;
  rig::expect(is_written == (!fails && distance != 0), "PE %d: a refused broadcast wrote", t.me);
  // Those who have their data learn of it by the next call that hears all.
  rig::expect_status(call_by(t, p, fcollects, 8), XIO_ERR_ARG, "the call behind it");
  if (!fails) expect_sentence(t, "has heard of a member in another call");
  rig::expect_status(call_by(t, p, broadcasts, 8), XIO_OK, "the broadcast behind that");
  t.barrier();
  p.team = xio_team_channel(p.team, 1);
  if (distance != 2) {
    rig::expect_status(call_by(t, p, broadcasts, 8), fails ? XIO_ERR_TIMEOUT : XIO_OK, "one without a member");
    if (fails) expect_sentence(t, (name + "not come within XIO_TIMEOUT_MS; ").c_str());
    rig::expect_status(call_by(t, p, broadcasts, k_mib), XIO_ERR_TIMEOUT, "a large one behind it");
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  t.barrier();
}

int messages() {
  const rig::team t({.timeout_ms = 5000});
  const size_t count = (std::max(k_mib, static_cast<size_t>(t.n) * 40000) + 64) / sizeof(float);
  place p{{}, t.symmetric<float>(count), t.symmetric<float>(count), count};
  MUST(xio_team_world(t.world(), &p.team));
  rig::team::write(p.src, source_of(t.me, 0, count));
  count_messages(t, p);
  if (t.n >= 16) a_bad_member(t, p);
  rig::expect_steps(t, "sixty broadcasts in a row", in_a_row, 1, 64, t.ctx, p.team, reinterpret_cast<uint64_t*>(p.dst),
                    reinterpret_cast<uint64_t*>(p.src));
  MUST(xio_team_destroy(t.world(), p.team));
  return rig::verdict("teams messages", t);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "messages") == 0) return messages();
  setenv("XIO_TEAM_CHANNELS", std::to_string(k_channels).c_str(), 1);
  const rig::team t({.timeout_ms = 2000});
  xio_team_t everybody{};
  MUST(xio_team_world(t.world(), &everybody));
  rig::expect(xio_team_n_channels(everybody) == k_channels, "%d channels", xio_team_n_channels(everybody));
  in_all_scopes(t, everybody, "everybody");
  splits(t, everybody);
  wrong_calls(t, everybody);
  unlike_calls(t, everybody);
  a_shared_channel(t, everybody);
  after_the_end(t, everybody);
  if (t.n > 2) by_members_alone(t, everybody);
  MUST(xio_team_destroy(t.world(), everybody));
  return rig::verdict("teams", t);
}
