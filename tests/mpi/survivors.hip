// SPDX-License-Identifier: MIT
// PEs die or are stopped in the middle of puts, waits and quiets; the others exclude them and go on.
// Usage: survivors put|wait|quiet|stop|cont|kill PE,PE,...   survivors.sh starts it, and does not end the living.
//   put, wait, quiet  those PEs kill themselves in such a call
//   stop, cont, kill  they stop themselves by SIGSTOP while their kernel puts: they are excluded as they are; likewise,
//                     and continued afterwards; with XIO_EXCLUDE_KILL
#include <csignal>
#include <ctime>

#include "rig.hpp"

namespace {

using rig::clock_type;
using rig::ms_since;
double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

constexpr int k_ints = 512;
constexpr int k_most = 16;  // PEs

// Symmetric; every PE writes only to its own place at another.
struct shared {
  int box[k_most][k_ints];    // of living senders, and a source in the place of oneself
  int trash[k_most][k_ints];  // of those who are about to die, and to them
  uint64_t sig[k_most], lost[k_most], packet[k_most][2], count, pids[k_most];
};

__global__ void tell_pid(xio_ctx_t ctx, shared* s, uint64_t pid, int me, int n, int* status) {
  for (int pe = 0; pe < n; ++pe)
    if (const int one = xio_p<uint64_t>(ctx, &s->pids[me], pid, pe); one != XIO_OK) *status = one;
  if (const int one = xio_quiet(ctx); one != XIO_OK) *status = one;
}

// Goes on while PEs die: puts until the host says that it is enough, or one fails.
struct link {
  int me, pe;
};
__global__ void pester(xio_ctx_t ctx, shared* s, link l, bool quiets, const int* enough, int* status) {
  const int me = l.me, pe = l.pe;
  *status = XIO_OK;
  while (*status == XIO_OK && xio::dev::load<xio::dev::scope::system, xio::dev::order::relaxed>(enough) == 0) {
    xio_status_t one =
        xio_put_signal(ctx, s->trash[me], s->trash[me], sizeof s->trash[me], &s->lost[me], 1, XIO_SIGNAL_ADD, pe);
    if (one == XIO_OK && quiets) one = xio_quiet(ctx);
    *status = one;
  }
}
__global__ void wait_in_vain(xio_ctx_t ctx, shared* s, int* status) {
  *status = xio_signal_wait_until(ctx, &s->lost[k_most - 1], XIO_CMP_EQ, 77);
}

// To one that is known to be dead, and not excluded yet.
__global__ void put_once(xio_ctx_t ctx, shared* s, link l, int* status) {
  status[0] = xio_put(ctx, s->trash[l.me], s->trash[l.me], 256, l.pe);
  if (status[0] == XIO_OK) status[0] = xio_quiet(ctx);
}

// --- Ops to one PE, which all end alike --------------------------------------------------------------

constexpr const char* k_ops[] = {
    "xio_put",         "xio_put of nothing", "xio_put_nbi",       "xio_get",           "xio_get_nbi",
    "xio_p",           "xio_put_signal",     "xio_signal_op SET", "xio_signal_op ADD", "xio_atomic_add",
    "xio_atomic_set",  "xio_fence_pe",       "xio_quiet_pe",      "xio_put_2d",        "xio_get_2d",
    "xio_iput",        "xio_iget",           "xio_put_staged",    "xio_get_staged",    "xio_put_packet",
    "xio_put_counter", "xio_put_imm",        "xio_put_wave",      "xio_get_wg",        "xio_put_signal_nbi",
    "xio_put of much"};
constexpr int k_count = static_cast<int>(std::size(k_ops));

struct blocks {
  char* much;
  size_t much_bytes;
  uint64_t* counter;
  bool immediates;  // whether the ctx has them
};
// By one wave.
__global__ void all_ops(xio_ctx_t ctx, shared* s, link l, blocks b, int* status) {
  const int me = l.me, pe = l.pe;
  const int in_wave = xio_put_wave(ctx, s->trash[me], s->trash[me], 256, pe);
  const int in_workgroup = xio_get_wg(ctx, s->trash[me], s->trash[me], 256, pe);
  if (threadIdx.x != 0) return;
  int i = 0;
  int *mine = s->trash[me], *theirs = s->trash[me];
  uint64_t* word = &s->lost[me];
  status[i++] = xio_put(ctx, theirs, mine, 256, pe);
  status[i++] = xio_put(ctx, theirs, mine, 0, pe);
  status[i++] = xio_wait(ctx, xio_put_nbi(ctx, theirs, mine, 256, pe));
  status[i++] = xio_get(ctx, mine, theirs, 256, pe);
  status[i++] = xio_wait(ctx, xio_get_nbi(ctx, mine, theirs, 256, pe));
  status[i++] = xio_p(ctx, word, uint64_t{5}, pe);
  status[i++] = xio_put_signal(ctx, theirs, mine, 256, word, 1, XIO_SIGNAL_ADD, pe);
  status[i++] = xio_signal_op(ctx, word, 1, XIO_SIGNAL_SET, pe);
  status[i++] = xio_signal_op(ctx, word, 1, XIO_SIGNAL_ADD, pe);
  status[i++] = xio_atomic_add(ctx, word, uint64_t{1}, pe);
  status[i++] = xio_atomic_set(ctx, word, uint64_t{1}, pe);
  status[i++] = xio_fence_pe(ctx, pe);
  status[i++] = xio_quiet_pe(ctx, pe);
  status[i++] = xio_put_2d(ctx, theirs, 64, mine, 64, 32, 4, pe);
  status[i++] = xio_get_2d(ctx, mine, 64, theirs, 64, 32, 4, pe);
  status[i++] = xio_iput(ctx, theirs, mine, 2, 1, 8, pe);
  status[i++] = xio_iget(ctx, mine, theirs, 1, 2, 8, pe);
  status[i++] = xio_put_staged(ctx, theirs, mine, 256, nullptr, 0, pe);
  status[i++] = xio_get_staged(ctx, mine, theirs, 256, nullptr, 0, pe);
  status[i++] = xio_put_packet(ctx, s->packet[me], mine, 8, 9, pe);
  status[i++] = xio_put_counter(ctx, theirs, mine, 256, b.counter, pe);
  status[i++] = b.immediates ? xio_put_imm(ctx, theirs, mine, 8, 7, pe) : XIO_ERR_PEER;
  status[i++] = in_wave;
  status[i++] = in_workgroup;
  status[i++] = xio_wait(ctx, xio_put_signal_nbi(ctx, theirs, mine, 256, word, 1, XIO_SIGNAL_SET, pe));
  status[i++] = xio_wait(ctx, xio_put_nbi(ctx, b.much, b.much, b.much_bytes, pe));
  // Values have no status: 0, and the failure is kept.
  status[i++] = xio_g(ctx, word, pe) == 0 && xio_atomic_fetch_add(ctx, word, uint64_t{1}, pe) == 0 ? 0 : 1;
}
__global__ void quiets(xio_ctx_t ctx, int* status) {
  for (int i = 0; i < 3; ++i) status[i] = xio_quiet(ctx);
  status[3] = xio_fence(ctx);
}
// All threads of a workgroup call a team of all.
constexpr int k_threads = 200;
__global__ void call_all(xio_ctx_t ctx, xio_team_t team, char* place, int* status) {
  status[2 * threadIdx.x] = xio_team_sync_wg(ctx, team);
  status[2 * threadIdx.x + 1] = xio_alltoall_wg(ctx, team, place, place + 4096, 8);
}
// Whether a team's calls store to a PE, or post.
__global__ void look_for_ways(xio_ctx_t ctx, const shared* s, int n, int* stores) {
  for (int pe = 0; pe < n; ++pe)
    stores[pe] = xio::dev::teams::direct_place(ctx, s, static_cast<xio::dev::u32>(pe)) != nullptr;
}
__global__ void all_come(xio_ctx_t ctx, int* status) { *status = xio_barrier_all(ctx); }
__global__ void look(xio_ctx_t ctx, int n, int* life, int* mapped, shared* s) {
  for (int pe = -1; pe <= n; ++pe) life[pe + 1] = xio_pe_state(ctx, pe);
  for (int pe = 0; pe < n; ++pe) mapped[pe] = xio_ptr(ctx, &s->count, pe) != nullptr;
}

// --- What the living do ------------------------------------------------------------------------------

// A round of a ring: data with a signal, a wait, a get back, an atomic, a barrier of the team.
struct ring_place {
  int me, left, right, first;
};
__global__ void living_round(xio_ctx_t ctx, xio_team_t team, shared* s, ring_place at, uint64_t round, int* status) {
  const int me = at.me, left = at.left, right = at.right;
  for (int i = 0; i < k_ints; ++i) s->box[me][i] = me * 1000 + i + static_cast<int>(round) * 7;
  int wrong = 0;
  status[0] = xio_put_signal(ctx, s->box[me], s->box[me], sizeof s->box[me], &s->sig[me], round, XIO_SIGNAL_SET, right);
  status[1] = xio_signal_wait_until(ctx, &s->sig[left], XIO_CMP_GE, round);
  for (int i = 0; i < k_ints; ++i) wrong += s->box[left][i] != left * 1000 + i + static_cast<int>(round) * 7;
  status[2] = xio_get(ctx, s->trash[k_most - 1], s->box[me], 1024, right);
  for (int i = 0; i < 256; ++i) wrong += s->trash[k_most - 1][i] != s->box[me][i];
  status[3] = xio_atomic_add(ctx, &s->count, uint64_t{1}, at.first);
  status[4] = xio_fence(ctx);
  status[5] = xio_quiet(ctx);
  status[6] = xio_team_barrier(ctx, team);
  status[7] = wrong;
}

struct survivor {
  rig::options none{};
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{}, before{};
  xio_team_t team{}, all{};
  shared* s = nullptr;
  char* much = nullptr;
  static constexpr size_t k_much = size_t{1} << 20;
  bool immediates = false;
  int me = 0, n = 0;
  std::vector<int> dying, living, ways;
  uint64_t round = 0;
  double timeout_ms = 0;
  std::string what, name;
};

bool dies(const survivor& p, int pe) { return std::count(p.dying.begin(), p.dying.end(), pe) != 0; }

void go_on(survivor& p, const char* when) {
  const auto at = static_cast<size_t>(std::find(p.living.begin(), p.living.end(), p.me) - p.living.begin());
  const size_t n = p.living.size();
  const rig::device_array<int> status(8);
  for (int i = 0; i < 3; ++i) {
    ++p.round;
    RUN(living_round, 1, 1, p.ctx, p.team, p.s,
        ring_place{p.me, p.living[(at + n - 1) % n], p.living[(at + 1) % n], p.living[0]}, p.round, status.data());
    const auto found = status.get();
    for (int k = 0; k < 8; ++k)
      rig::expect(found[k] == 0, "%s, %s: PE %d of the living, round %d, step %d: %d", p.name.c_str(), when, p.me,
                  static_cast<int>(p.round), k, found[k]);
  }
  if (p.me != p.living[0]) return;
  const uint64_t count = rig::team::read(&p.s->count, 1)[0];
  rig::expect(count >= p.round * n, "%s, %s: the living added %llu of %llu", p.name.c_str(), when, rig::ull(count),
              rig::ull(p.round * n));
}

[[noreturn]] void die(const survivor& p) {
  std::thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 7 * p.me));
    const bool stops = p.what == "stop" || p.what == "cont" || p.what == "kill";
    kill(getpid(), stops ? SIGSTOP : SIGKILL);
  }).detach();
  const rig::device_array<int> status(1);
  int* enough = nullptr;
  MUST(hipHostMalloc(reinterpret_cast<void**>(&enough), sizeof *enough, 0));
  *enough = 0;
  if (p.what == "wait") {
    RUN(wait_in_vain, 1, 1, p.ctx, p.s, status.data());
  } else {
    std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(2 * p.timeout_ms)));
      __atomic_store_n(enough, 1, __ATOMIC_RELAXED);
    }).detach();
    RUN(pester, 1, 1, p.ctx, p.s, link{p.me, p.living[0]}, p.what == "quiet", enough, status.data());
    // Continued: the living have taken their queues away, so no engine of this PE returns XIO_OK for ever.
    const int got = status.get()[0];
    const bool by_stores = std::string(xio_route_name(p.world, p.ctx, 8, p.living[0])) == "direct" ||
                           std::string(xio_route_name(p.world, p.ctx, 8, p.living[0])) == "sdma";
    rig::expect(by_stores || got != XIO_OK, "%s: PE %d was excluded and has not noticed", p.name.c_str(), p.me);
  }
  std::_Exit(rig::failures == 0 ? 0 : 1);
}

void expect_wrong_arguments(const survivor& p) {
  const int other = p.living[p.living[0] == p.me ? 1 : 0];
  const int twice[] = {other, other}, outside[] = {p.n}, negative[] = {-1}, self[] = {p.me};
  int could = 0;
  std::vector<int> all(static_cast<size_t>(p.n));
  for (int pe = 0; pe < p.n; ++pe) all[static_cast<size_t>(pe)] = pe;
  const struct {
    const int* pes;
    int count;
    uint32_t flags;
    int *list, *n_could;
    xio_status_t wanted;
    const char* word;
  } calls[] = {
      {nullptr, 1, 0, nullptr, nullptr, XIO_ERR_ARG, "pes is null"},
      {&other, 0, 0, nullptr, nullptr, XIO_ERR_ARG, "at least one"},
      {&other, -3, 0, nullptr, nullptr, XIO_ERR_ARG, "at least one"},
      {all.data(), p.n, 0, nullptr, nullptr, XIO_ERR_ARG, "this PE"},
      {self, 1, 0, nullptr, nullptr, XIO_ERR_ARG, "itself"},
      {twice, 2, 0, nullptr, nullptr, XIO_ERR_ARG, "twice"},
      {outside, 1, 0, nullptr, nullptr, XIO_ERR_PE, "is not one"},
      {negative, 1, 0, nullptr, nullptr, XIO_ERR_PE, "is not one"},
      {&other, 1, 0x80, nullptr, nullptr, XIO_ERR_ARG, "0x80"},
      {&other, 1, 0, &could, nullptr, XIO_ERR_ARG, "n_could"},
  };
  for (const auto& c : calls) {
    const xio_status_t got = xio_exclude(p.world, c.pes, c.count, c.flags, c.list, c.n_could);
    rig::expect(got == c.wanted && std::strstr(xio_last_error(), c.word) != nullptr,
                "xio_exclude: %s, '%s' without '%s'", xio_status_name(got), xio_last_error(), c.word);
  }
  xio_pe_info_t info = XIO_PE_INFO_INIT;
  rig::expect_status(xio_pe_state(p.world, p.n, &info), XIO_ERR_PE, "xio_pe_state of no PE");
  rig::expect_status(xio_pe_state(p.world, 0, nullptr), XIO_ERR_ARG, "xio_pe_state to nowhere");
  rig::expect_status(xio_ctx_refresh(p.world, nullptr), XIO_ERR_ARG, "xio_ctx_refresh of null");
  for (int pe = 0; pe < p.n; ++pe) {
    MUST(xio_pe_state(p.world, pe, &info));
    rig::expect(info.life == XIO_PE_ALIVE && info.is_dead == 0 && info.why[0] == '\0', "PE %d is %d before all: %s", pe,
                info.life, info.why);
  }
  xio_ctx_t same = p.ctx;
  MUST(xio_ctx_refresh(p.world, &same));
  rig::expect(std::memcmp(&same, &p.ctx, sizeof same) == 0, "a refreshed ctx differs though nobody is excluded");
}

// Waits for what the PE does to itself. One that is killed by another PE is found dead.
void expect_life(const survivor& p, int pe, xio_pe_life_t wanted) {
  xio_pe_info_t info = XIO_PE_INFO_INIT;
  const auto is_there = [&] { return info.life == wanted || (p.what == "kill" && info.life == XIO_PE_DEAD); };
  const auto began = clock_type::now();
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    MUST(xio_pe_state(p.world, pe, &info));
  } while (!is_there() && ms_since(began) < 10000);
  rig::expect(is_there() && info.why[0] != '\0', "%s: PE %d is %d for PE %d, expected %d: %s", p.name.c_str(), pe,
              info.life, p.me, wanted, info.why);
}

void exclude_them(survivor& p, bool stopped) {
  const bool kills = p.what == "kill";
  std::vector<int> could(p.dying.size(), -1);
  int n_could = -1;
  const double before = cpu_ms();
  const auto began = clock_type::now();
  MUST(xio_exclude(p.world, p.dying.data(), static_cast<int>(p.dying.size()), kills ? XIO_EXCLUDE_KILL : 0,
                   could.data(), &n_could));
  const double cpu = cpu_ms() - before, took = ms_since(began);
  std::printf("survivors: PE %d excluded %zu in %.2f ms, %.2f ms of its processor\n", p.me, p.dying.size(), took, cpu);
  // Others have the processors, too.
  rig::expect(cpu < 10 && took < (kills ? 2500 : 1500), "%s: xio_exclude took %.1f ms", p.name.c_str(), took);
  const bool mapped = xio_ptr(p.world, p.s, p.living[p.living[0] == p.me ? 1 : 0]) != nullptr;
  const int expected = stopped && !kills && mapped ? static_cast<int>(p.dying.size()) : 0;
  rig::expect(n_could == expected, "%s: %d can still write, expected %d", p.name.c_str(), n_could, expected);
  for (int i = 0; i < n_could; ++i)
    rig::expect(could[static_cast<size_t>(i)] == p.dying[static_cast<size_t>(i)], "a wrong list");
  MUST(xio_ctx_refresh(p.world, &p.ctx));
}

void expect_quiets(const survivor& p, bool first_may_fail, const char* when) {
  const rig::device_array<int> status(4);
  RUN(quiets, 1, 1, p.ctx, status.data());
  const auto q = status.get();
  rig::expect((first_may_fail || q[0] == XIO_OK) && q[1] == XIO_OK && q[2] == XIO_OK && q[3] == XIO_OK,
              "%s, %s: quiets return %d %d %d, a fence %d", p.name.c_str(), when, q[0], q[1], q[2], q[3]);
}

void expect_refused(const survivor& p) {
  const rig::device_array<int> status(k_count + 1), life(static_cast<size_t>(p.n) + 2),
      mapped(static_cast<size_t>(p.n));
  const rig::device_array<uint64_t> counter(1);
  for (const int pe : p.dying) {
    RUN(all_ops, 1, 64, p.ctx, p.s, link{p.me, pe}, blocks{p.much, survivor::k_much, counter.data(), p.immediates},
        status.data());
    const auto got = status.get();
    for (int i = 0; i < k_count; ++i)
      rig::expect(got[static_cast<size_t>(i)] == XIO_ERR_PEER, "%s: %s to PE %d, which is excluded: %s", p.name.c_str(),
                  k_ops[i], pe, xio_status_name(static_cast<xio_status_t>(got[static_cast<size_t>(i)])));
    rig::expect(got[k_count] == 0, "%s: a value came from PE %d", p.name.c_str(), pe);
    rig::expect(counter.get()[0] == 0, "%s: a counter counts what was refused", p.name.c_str());
    const xio_error_info_t why = rig::error_of(p.world, p.ctx);
    rig::expect(why.status == XIO_ERR_PEER && std::strstr(why.sentence, "excluded") != nullptr, "%s: '%s'",
                p.name.c_str(), why.sentence);
    rig::expect(xio_route_name(p.world, p.ctx, 8, pe) == nullptr && xio_ptr(p.world, p.s, pe) == nullptr,
                "%s: a route or an address leads to PE %d", p.name.c_str(), pe);
  }
  RUN(look, 1, 1, p.ctx, p.n, life.data(), mapped.data(), p.s);
  const auto seen = life.get();
  rig::expect(seen[0] == XIO_PE_UNKNOWN && seen.back() == XIO_PE_UNKNOWN, "kernels know PEs that are none");
  for (int pe = 0; pe < p.n; ++pe)
    rig::expect(seen[static_cast<size_t>(pe) + 1] == (dies(p, pe) ? XIO_PE_EXCLUDED : XIO_PE_ALIVE),
                "PE %d is %d for kernels", pe, seen[static_cast<size_t>(pe) + 1]);
  for (const int pe : p.dying)
    rig::expect(mapped.get()[static_cast<size_t>(pe)] == 0, "kernels have an address at PE %d", pe);
  // One report of all that was refused.
  expect_quiets(p, true, "behind refused ops");
}

std::vector<int> ways_of(const survivor& p, const xio_ctx_t& ctx) {
  const rig::device_array<int> stores(static_cast<size_t>(p.n));
  RUN(look_for_ways, 1, 1, ctx, p.s, p.n, stores.data());
  return stores.get();
}
// By the ctx as it was before the exclusion, too, which learns of it while it waits, or sends by an engine.
void expect_teams_refused(const survivor& p) {
  const rig::device_array<int> status(2 * k_threads);
  for (const bool refreshed : {true, false}) {
    const xio_ctx_t& ctx = refreshed ? p.ctx : p.before;
    const auto began = clock_type::now();
    // Another channel: a team stays broken by what the first call finds.
    RUN(call_all, 1, k_threads, ctx, xio_team_channel(p.all, refreshed ? 0 : 1), p.much, status.data());
    const auto got = status.get();
    rig::expect(std::count(got.begin(), got.end(), static_cast<int>(XIO_ERR_PEER)) == 2 * k_threads,
                "%s: threads differ over a team with excluded members: %d and %d", p.name.c_str(), got[0], got[1]);
    rig::took_less(began, 0.3 * p.timeout_ms, p.name + ": a team with excluded members");
  }
}

// None of them changes anything, and none waits for those who do not come.
void expect_collectives_refused(const survivor& p) {
  const auto began = clock_type::now();
  const int status = rig::result_of(all_come, 1, 1, p.ctx);
  rig::expect(status == XIO_ERR_PEER, "%s: a barrier of all: %d", p.name.c_str(), status);
  expect_quiets(p, true, "behind a barrier");
  expect_teams_refused(p);
  rig::expect_status(xio_ctx_recover(p.world, p.ctx), XIO_ERR_PEER, "xio_ctx_recover");
  const std::string missing = "PE " + std::to_string(*std::min_element(p.dying.begin(), p.dying.end()));
  rig::expect(std::strstr(xio_last_error(), missing.c_str()) != nullptr, "xio_ctx_recover does not name %s: %s",
              missing.c_str(), xio_last_error());
  void* block = nullptr;
  rig::expect_status(xio_malloc(p.world, 64, &block), XIO_ERR_PEER, "xio_malloc");
  rig::expect_status(xio_host_barrier(p.world), XIO_ERR_PEER, "xio_host_barrier");
  rig::took_less(began, p.timeout_ms, p.name + ": they");
}

void survive(survivor& p) {
  const bool stopped = p.what == "stop" || p.what == "cont" || p.what == "kill";
  int* enough = nullptr;
  MUST(hipHostMalloc(reinterpret_cast<void**>(&enough), sizeof *enough, 0));
  *enough = 0;
  const rig::device_array<int> status(1);
  // To the first of them, while all of them die and while they are excluded.
  hipLaunchKernelGGL(pester, dim3(1), dim3(1), 0, nullptr, p.ctx, p.s, link{p.me, p.dying[0]}, true, enough,
                     status.data());
  for (const int pe : p.dying) expect_life(p, pe, stopped ? XIO_PE_SILENT : XIO_PE_DEAD);
  if (!stopped && std::string(xio_route_name(p.world, p.ctx, 8, p.dying[0])) == "rdma") {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const int put = rig::result_of(put_once, 1, 1, p.ctx, p.s, link{p.me, p.dying.back()});
    rig::expect(put != XIO_OK, "%s: a put to PE %d, which is dead, is XIO_OK", p.name.c_str(), p.dying.back());
  }
  exclude_them(p, stopped);
  __atomic_store_n(enough, 1, __ATOMIC_RELAXED);
  const auto began = clock_type::now();
  MUST(hipDeviceSynchronize());
  rig::took_less(began, 1.2 * p.timeout_ms, p.name + ": a kernel");
  for (const int pe : p.dying) {
    xio_pe_info_t info = XIO_PE_INFO_INIT;
    MUST(xio_pe_state(p.world, pe, &info));
    rig::expect(info.life == XIO_PE_EXCLUDED && info.is_dead == (!stopped || p.what == "kill" ? 1u : 0u),
                "%s: PE %d is %d, dead %u: %s", p.name.c_str(), pe, info.life, info.is_dead, info.why);
  }
  rig::expect(ways_of(p, p.before) == p.ways, "%s: an exclusion changes the way of a call that goes on",
              p.name.c_str());
  expect_quiets(p, true, "after the exclusion");
  go_on(p, "after the exclusion");
  expect_refused(p);
  go_on(p, "after refused ops");
  expect_collectives_refused(p);
  go_on(p, "after refused calls");
  if (p.what == "stop" || p.what == "cont") {
    const auto pids = rig::team::read(p.s->pids, k_most);
    if (p.me == p.living[0])
      for (const int pe : p.dying)
        kill(static_cast<pid_t>(pids[static_cast<size_t>(pe)]), p.what == "cont" ? SIGCONT : SIGKILL);
    for (int i = 0; i < 10; ++i) go_on(p, "beside one that goes on");
    expect_quiets(p, false, "beside one that goes on");
  }
  (void)hipHostFree(enough);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  survivor p;
  p.what = argv[1];
  p.name = p.what + " " + argv[2];
  for (char* word = std::strtok(argv[2], ","); word != nullptr; word = std::strtok(nullptr, ","))
    p.dying.push_back(std::atoi(word));
  xio_init_attr_t init = XIO_INIT_ATTR_INIT;
  init.timeout_ms = 3000;
  p.timeout_ms = init.timeout_ms;
  MUST(xio_init(&init, &p.world));
  p.me = xio_my_pe(p.world);
  p.n = xio_n_pes(p.world);
  for (int pe = 0; pe < p.n; ++pe)
    if (!dies(p, pe)) p.living.push_back(pe);
  if (p.n > k_most - 1 || p.living.size() < 2) return 2;
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  const char* family = std::getenv("XIO_NIC_FAMILY");
  const char* route = std::getenv("XIO_ROUTE");
  p.immediates =
      route == nullptr || std::strcmp(route, "rdma") != 0 || (family != nullptr && std::strcmp(family, "proxy") == 0);
  attr.immediates = p.immediates ? 16 : 0;
  attr.pool = 2;
  MUST(xio_ctx_create(p.world, &attr, &p.ctx));
  void* at = nullptr;
  MUST(xio_calloc(p.world, 1, sizeof(shared), &at));
  p.s = static_cast<shared*>(at);
  MUST(xio_malloc(p.world, survivor::k_much, &at));
  p.much = static_cast<char*>(at);
  const bool lives = !dies(p, p.me);
  MUST(xio_team_create(p.world, lives ? p.living.data() : nullptr, lives ? static_cast<int>(p.living.size()) : 0,
                       &p.team));
  MUST(xio_team_world(p.world, &p.all));
  p.before = p.ctx;
  p.ways = ways_of(p, p.ctx);
  if (lives) expect_wrong_arguments(p);
  const int status = rig::result_of(tell_pid, 1, 1, p.ctx, p.s, static_cast<uint64_t>(getpid()), p.me, p.n);
  rig::expect(status == XIO_OK, "pids: %d", status);
  MUST(xio_host_barrier(p.world));
  if (!lives) die(p);
  go_on(p, "before all");
  survive(p);
  const auto began = clock_type::now();
  rig::expect_status(xio_finalize(p.world), XIO_ERR_PEER, "xio_finalize");
  rig::took_less(began, 1.2 * p.timeout_ms, p.name + ": xio_finalize");
  return rig::verdict(rig::text("survivors %s: PE %d of %d", p.name.c_str(), p.me, p.n).c_str());
}
