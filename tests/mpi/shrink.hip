// SPDX-License-Identifier: MIT
// PEs die in the middle of what they do, and the others agree on going on without them (XIO_SURVIVE=1).
// Usage: shrink WHAT PE,PE,...   shrink.sh starts it, and does not end the living.
//   put, barrier, host, malloc, team, split, ctx   those PEs kill themselves in such calls, which all make again
//   shrink   the first of them before, the others while xio_world_shrink runs
//   stop     they stop themselves, are excluded, and go on when the others have
//   cut      the network is cut meanwhile, and those PEs are the ones that may not go on
//   late     nobody dies, and those PEs call xio_world_shrink when the timeout of the others is over
//   some     nobody dies, and those PEs do not call xio_world_shrink
//   without  nobody dies, and the world has no XIO_SURVIVE
#include <xio/peers.h>
#include <xio/team.h>

#include <csignal>

#include "rig.hpp"

namespace {

using rig::clock_type;
using rig::ms_since;

constexpr int k_most = 16;  // PEs
constexpr int k_ints = 256;

// Symmetric; every PE writes to its own place at another.
struct shared {
  int box[k_most + 1][k_ints];
  uint64_t sig[k_most], hash[k_most], pids[k_most];
};

struct link {
  int me, to, from;
};
__global__ void ring(xio_ctx_t ctx, shared* s, link l, uint64_t round, int* status) {
  for (int i = 0; i < k_ints; ++i) s->box[k_most][i] = l.me * 1000 + i + static_cast<int>(round);
  status[0] =
      xio_put_signal(ctx, s->box[l.me], s->box[k_most], sizeof s->box[0], &s->sig[l.me], round, XIO_SIGNAL_SET, l.to);
  status[1] = xio_signal_wait_until(ctx, &s->sig[l.from], XIO_CMP_EQ, round);
  status[2] = 0;
  for (int i = 0; i < k_ints; ++i) status[2] += s->box[l.from][i] != l.from * 1000 + i + static_cast<int>(round);
  status[3] = xio_quiet(ctx);
}
__global__ void barriers(xio_ctx_t ctx, int times, int* status) {
  *status = XIO_OK;
  for (int i = 0; i < times && *status == XIO_OK; ++i) *status = i % 2 == 0 ? xio_barrier_all(ctx) : xio_sync_all(ctx);
}
__global__ void team_barriers(xio_ctx_t ctx, xio_team_t team, int* status) {
  *status = XIO_OK;
  for (int i = 0; i < 4 && *status == XIO_OK; ++i) *status = xio_team_barrier(ctx, team);
}
__global__ void put_to(xio_ctx_t ctx, shared* s, link l, int* status) {
  status[0] = xio_put(ctx, s->box[l.me], s->box[k_most], 256, l.to);
  status[1] = xio_quiet(ctx);
}
__global__ void put_to_all(xio_ctx_t ctx, uint64_t* word, uint64_t value, const int* pes, int n, int* status) {
  *status = XIO_OK;
  for (int i = 0; i < n && *status == XIO_OK; ++i) *status = xio_p<uint64_t>(ctx, word, value, pes[i]);
  const int done = xio_quiet(ctx);
  if (*status == XIO_OK) *status = done;
}

struct player {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  shared* s = nullptr;
  int me = 0, n = 0;
  std::vector<int> dying, living;
  std::string what, name;
  double timeout_ms = 6000;
  uint64_t round = 0;
  xio_team_t most{};  // all but one PE
  std::vector<void*> blocks;
  void* unfreed = nullptr;  // its xio_free has failed
};

bool dies(const player& p) { return std::count(p.dying.begin(), p.dying.end(), p.me) != 0; }

void publish(const player& p, uint64_t* word, uint64_t value, const char* when) {
  const rig::device_array<int> pes(p.living);
  const int n = static_cast<int>(p.living.size());
  const int status = rig::result_of(put_to_all, 1, 1, p.ctx, word, value, pes.data(), n);
  rig::expect(status == XIO_OK, "%s, %s: publishing to the living: %d", p.name.c_str(), when, status);
}

// --- Until some die ---------------------------------------------------------------------------------------

void die_soon(int ms) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    kill(getpid(), SIGKILL);
  }).detach();
}

// A team of all but one, which lives if another one does: it splits without it.
void make_most(player& p) {
  const int outsider = p.living.size() > 1 ? p.living.back() : p.dying[0];
  std::vector<int> pes;
  for (int pe = 0; pe < p.n && p.me != outsider; ++pe)
    if (pe != outsider) pes.push_back(pe);
  MUST(xio_team_create(p.world, pes.data(), pes.size(), &p.most));
}

// One call of the kind; anything but XIO_OK says that others have died.
xio_status_t call_once(player& p) {
  if (p.what == "put") {
    const rig::device_array<int> status(4);
    ++p.round;
    RUN(ring, 1, 1, p.ctx, p.s, link{p.me, (p.me + 1) % p.n, (p.me + p.n - 1) % p.n}, p.round, status.data());
    for (const int one : status.get())
      if (one != 0) return static_cast<xio_status_t>(one);
    return static_cast<xio_status_t>(rig::result_of(barriers, 1, 1, p.ctx, 1));
  }
  if (p.what == "barrier") return static_cast<xio_status_t>(rig::result_of(barriers, 1, 1, p.ctx, 20));
  if (p.what == "team") {
    xio_team_t team{};
    const xio_status_t made = xio_team_world(p.world, &team);
    return made != XIO_OK ? made : xio_team_destroy(p.world, team);
  }
  if (p.what == "split" && p.most.n_pes != 0) {
    xio_team_t team{};
    const xio_status_t made = xio_team_split_strided(p.world, p.most, 0, 1, p.most.n_pes, &team);
    return made != XIO_OK ? made : xio_team_destroy(p.world, team);
  }
  if (p.what == "ctx") {
    xio_ctx_t ctx{};
    const xio_status_t made = xio_ctx_create(p.world, nullptr, &ctx);
    return made != XIO_OK ? made : xio_ctx_destroy(p.world, ctx);
  }
  if (p.what == "malloc") {
    void* block = nullptr;
    if (p.blocks.size() > 8) {
      p.unfreed = p.blocks[3];
      p.blocks.erase(p.blocks.begin() + 3);
      const xio_status_t freed = xio_free(p.world, p.unfreed);
      if (freed == XIO_OK) p.unfreed = nullptr;
      return freed;
    }
    const xio_status_t made = xio_malloc(p.world, 100 + 300 * (p.round++ % 7), &block);
    if (made == XIO_OK) p.blocks.push_back(block);
    return made;
  }
  return xio_host_barrier(p.world);
}

void wait_for_deaths(player& p) {
  if (p.what == "stop") {
    for (const int pe : p.dying) {
      xio_pe_info_t info = XIO_PE_INFO_INIT;
      for (const auto began = clock_type::now(); info.life != XIO_PE_SILENT && ms_since(began) < p.timeout_ms;) {
        MUST(xio_pe_state(p.world, pe, &info));
        usleep(1000);
      }
      rig::expect(info.life == XIO_PE_SILENT, "%s: PE %d does not stop", p.name.c_str(), pe);
    }
    MUST(xio_exclude(p.world, p.dying.data(), static_cast<int>(p.dying.size()), 0, nullptr, nullptr));
    return;
  }
  if (p.what == "shrink") {
    usleep(60000);
    return;
  }
  for (;;) {
    const auto began = clock_type::now();
    const xio_status_t got = call_once(p);
    rig::took_less(began, 1.5 * p.timeout_ms, p.name + ": a call");
    if (got == XIO_OK) continue;
    rig::expect(got == XIO_ERR_PEER || got == XIO_ERR_TIMEOUT || got == XIO_ERR_TRANSPORT, "%s: a call: %s (%s)",
                p.name.c_str(), xio_status_name(got), xio_last_error());
    return;
  }
}

// --- Agreement ---------------------------------------------------------------------------------------------

// Others may have died since: then it is called again.
xio_shrink_report_t shrink(player& p) {
  xio_shrink_report_t all = XIO_SHRINK_REPORT_INIT;
  for (int tries = 0; tries < 20; ++tries) {
    xio_shrink_report_t one = XIO_SHRINK_REPORT_INIT;
    const auto began = clock_type::now();
    const xio_status_t got = xio_world_shrink(p.world, &one);
    rig::took_less(began, 1.5 * p.timeout_ms, p.name + ": xio_world_shrink");
    std::printf("PE %d: shrink %d: %s, view %llu, %d live, %d gone, %d dead, block %p, %u messages, %.0f ms\n", p.me,
                tries, xio_status_name(got), rig::ull(one.view), one.n_living, one.n_gone, one.n_dead, one.block,
                one.messages, ms_since(began));
    if (got != XIO_OK) std::printf("PE %d: %s\n", p.me, xio_last_error());
    if (got == XIO_ERR_STATE || got == XIO_ERR_INTERNAL) break;
    if (got != XIO_OK) continue;
    // As on those where the call was complete.
    if (one.block != nullptr) p.blocks.push_back(one.block);
    if (one.is_done != 0) p.unfreed = nullptr;
    all = one;
    if (one.n_living != static_cast<int>(p.living.size()) || xio_host_barrier(p.world) != XIO_OK) continue;
    if (p.unfreed != nullptr) p.blocks.insert(p.blocks.begin() + 3, p.unfreed);
    return all;
  }
  rig::expect(false, "%s: the living do not come together", p.name.c_str());
  return all;
}

// --- The world of the living ---------------------------------------------------------------------------------

void expect_ring(player& p, const xio_ctx_t& ctx, const char* when) {
  const auto at = static_cast<size_t>(std::find(p.living.begin(), p.living.end(), p.me) - p.living.begin());
  const size_t live = p.living.size();
  const rig::device_array<int> status(4);
  for (int i = 0; i < 3; ++i) {
    p.round += 1000;
    RUN(ring, 1, 1, ctx, p.s, link{p.me, p.living[(at + 1) % live], p.living[(at + live - 1) % live]}, p.round,
        status.data());
    const auto got = status.get();
    for (int k = 0; k < 4; ++k)
      rig::expect(got[static_cast<size_t>(k)] == 0, "%s, %s: ring, step %d: %d", p.name.c_str(), when, k,
                  got[static_cast<size_t>(k)]);
    const int all = rig::result_of(barriers, 1, 1, ctx, 8);
    rig::expect(all == XIO_OK, "%s, %s: barrier of all: %d", p.name.c_str(), when, all);
  }
}

void expect_dead_refused(const player& p, const xio_ctx_t& ctx, const char* when) {
  for (const int pe : p.dying) {
    const int status = rig::result_of(put_to, 1, 1, ctx, p.s, link{p.me, pe, 0});
    rig::expect(status == XIO_ERR_PEER, "%s, %s: a put to PE %d: %d", p.name.c_str(), when, pe, status);
  }
}

void expect_same_heap(player& p, const xio_shrink_report_t& report) {
  publish(p, &p.s->hash[p.me], report.heap_hash, "hashes");
  const int status = rig::result_of(barriers, 1, 1, p.ctx, 1);
  rig::expect(status == XIO_OK, "%s: barrier behind hashes: %d", p.name.c_str(), status);
  const auto all = rig::team::read(p.s->hash, k_most);
  for (const int pe : p.living)
    rig::expect(all[static_cast<size_t>(pe)] == report.heap_hash, "%s: the heaps of PEs %d and %d differ",
                p.name.c_str(), p.me, pe);
  for (void* const block : std::exchange(p.blocks, {}))
    rig::expect_status(xio_free(p.world, block), XIO_OK, "xio_free of a block of before");
}

void use_all(player& p, const xio_team_t& old_team) {
  xio_team_t team{}, again{};
  xio_ctx_t ctx{};
  void* block = nullptr;
  rig::expect_status(xio_malloc(p.world, 4096, &block), XIO_OK, "xio_malloc");
  rig::expect_status(xio_free(p.world, block), XIO_OK, "xio_free");
  rig::expect_status(xio_ctx_create(p.world, nullptr, &ctx), XIO_OK, "xio_ctx_create");
  expect_ring(p, ctx, "a new ctx");
  if (p.what != "some") expect_dead_refused(p, ctx, "a new ctx");
  rig::expect_status(xio_team_world(p.world, &team), XIO_OK, "xio_team_world");
  rig::expect(team.n_pes == p.living.size(), "%s: the team of the world has %u members", p.name.c_str(), team.n_pes);
  int status = rig::result_of(team_barriers, 1, 1, ctx, team);
  rig::expect(status == XIO_OK, "%s: a barrier of the new team: %d", p.name.c_str(), status);
  rig::expect_status(xio_team_split_strided(p.world, team, 0, 1, 1, &again), XIO_OK, "xio_team_split_strided");
  if (again.n_pes != 0) {
    rig::expect_status(xio_team_split_strided(p.world, again, 0, 1, 1, &again), XIO_OK, "a split of one PE alone");
    rig::expect_status(xio_team_destroy(p.world, again), XIO_OK, "xio_team_destroy of it");
  }
  if (p.what != "some") {
    status = rig::result_of(team_barriers, 1, 1, p.ctx, old_team);
    rig::expect(status == XIO_ERR_PEER, "%s: a barrier of the old team: %d", p.name.c_str(), status);
    xio_team_t over{};
    rig::expect_status(xio_team_split_strided(p.world, old_team, 0, 1, 1, &over), XIO_ERR_STATE,
                       "a split of the old team");
  }
  rig::expect_status(xio_team_destroy(p.world, old_team), XIO_OK, "xio_team_destroy of the old team");
  rig::expect_status(xio_ctx_recover(p.world, p.ctx), XIO_OK, "xio_ctx_recover");
  rig::expect_status(xio_ctx_refresh(p.world, &p.ctx), XIO_OK, "xio_ctx_refresh");
  expect_ring(p, p.ctx, "a ctx that was recovered");
  rig::expect_status(xio_ctx_destroy(p.world, ctx), XIO_OK, "xio_ctx_destroy");
}

[[noreturn]] void stop_and_go_on(player& p) {
  kill(getpid(), SIGSTOP);
  // Continued: no call is XIO_OK for the others any more.
  void* block = nullptr;
  const auto began = clock_type::now();
  const xio_status_t made = xio_malloc(p.world, 64, &block);
  rig::expect(made == XIO_ERR_PEER || made == XIO_ERR_TIMEOUT, "%s: an excluded PE's xio_malloc: %s", p.name.c_str(),
              xio_status_name(made));
  const xio_status_t got = xio_world_shrink(p.world, nullptr);
  rig::expect(got == XIO_ERR_STATE || got == XIO_ERR_TIMEOUT, "%s: an excluded PE's xio_world_shrink: %s",
              p.name.c_str(), xio_status_name(got));
  rig::took_less(began, 3 * p.timeout_ms, p.name + ": they");
  std::_Exit(rig::failures == 0 ? 0 : 1);
}

// It lives, and the others go on without it.
[[noreturn]] void be_left_out(player& p) {
  while (call_once(p) == XIO_OK) continue;
  const auto began = clock_type::now();
  const xio_status_t got = xio_world_shrink(p.world, nullptr);
  std::printf("PE %d: %s after %.0f ms: %s\n", p.me, xio_status_name(got), ms_since(began), xio_last_error());
  std::fflush(stdout);
  rig::expect(got == XIO_ERR_STATE || got == XIO_ERR_TIMEOUT, "%s: one that is left out: %s", p.name.c_str(),
              xio_status_name(got));
  rig::took_less(began, 1.5 * p.timeout_ms, p.name + ": it");
  std::_Exit(rig::failures == 0 ? 0 : 1);
}

void play_bad_input(player& p) {
  const auto began = clock_type::now();
  if (p.what == "without") {
    rig::expect_status(xio_world_shrink(p.world, nullptr), XIO_ERR_STATE, "without XIO_SURVIVE");
    rig::expect(std::strstr(xio_last_error(), "XIO_SURVIVE=1") != nullptr, "no variable: %s", xio_last_error());
    MUST(xio_finalize(p.world));
    return;
  }
  if (p.what == "late") {
    if (dies(p)) usleep(static_cast<unsigned>(1100 * p.timeout_ms));
    rig::expect_status(xio_world_shrink(p.world, nullptr), XIO_OK, "one comes when the timeout is over");
  } else if (dies(p)) {
    usleep(static_cast<unsigned>(1400 * p.timeout_ms));
  } else {
    rig::expect_status(xio_world_shrink(p.world, nullptr), XIO_ERR_TIMEOUT, "some do not call it");
    const std::string missing = "PE " + std::to_string(p.dying[0]);
    rig::expect(std::strstr(xio_last_error(), missing.c_str()) != nullptr, "%s is not named: %s", missing.c_str(),
                xio_last_error());
    rig::took_less(began, 1.5 * p.timeout_ms, "it");
  }
  p.living.clear();
  for (int pe = 0; pe < p.n; ++pe) p.living.push_back(pe);
  const auto report = shrink(p);
  rig::expect(report.n_gone == 0, "%d PEs have left", report.n_gone);
  expect_ring(p, p.ctx, "nobody has left");
  MUST(xio_finalize(p.world));
}

void go_on(player& p, const xio_team_t& old_team, const std::vector<uint64_t>& pids) {
  const auto report = shrink(p);
  p.round = report.view * 1000000;  // some have come further than others
  rig::expect_status(xio_ctx_refresh(p.world, &p.ctx), XIO_OK, "xio_ctx_refresh");
  rig::result_of(barriers, 1, 1, p.ctx, 1);  // its quiet reports what was lost
  rig::expect_status(xio_host_barrier(p.world), XIO_OK, "xio_host_barrier");
  expect_ring(p, p.ctx, "refreshed");
  expect_same_heap(p, report);
  expect_dead_refused(p, p.ctx, "refreshed");
  rig::result_of(barriers, 1, 1, p.ctx, 1);
  use_all(p, old_team);
  if (p.what == "stop") {
    if (p.me == p.living[0])
      for (const int pe : p.dying) kill(static_cast<pid_t>(pids[static_cast<size_t>(pe)]), SIGCONT);
    // As long as it may ask: none is left alone because the others have ended.
    for (const auto began = clock_type::now(); ms_since(began) < 1.3 * p.timeout_ms;) {
      rig::expect_status(xio_host_barrier(p.world), XIO_OK, "xio_host_barrier beside one that goes on");
      expect_ring(p, p.ctx, "beside one that goes on");
      usleep(20000);
    }
  }
  const auto began = clock_type::now();
  rig::expect_status(xio_finalize(p.world), XIO_OK, "xio_finalize");
  rig::took_less(began, 1.5 * p.timeout_ms, p.name + ": xio_finalize");
}

// A world by unique id: the last of them makes it, in the file that SHRINK_ID names.
void set_unique_id(xio_init_attr_t& init, xio_unique_id_t& id) {
  const char* const path = std::getenv("SHRINK_ID");
  if (path == nullptr) return;
  init.unique_rank = std::atoi(std::getenv("XIO_TCP_RANK"));
  init.unique_size = std::atoi(std::getenv("XIO_TCP_SIZE"));
  init.unique_id = &id;
  if (init.unique_rank == init.unique_size - 1) {
    MUST(xio_get_unique_id(&id));
    const std::string made = std::string(path) + ".new";
    std::FILE* const out = std::fopen(made.c_str(), "wb");
    if (out == nullptr || std::fwrite(id.bytes, sizeof id, 1, out) != 1 || std::fclose(out) != 0) std::exit(2);
    if (std::rename(made.c_str(), path) != 0) std::exit(2);
    return;
  }
  for (int i = 0; i < 5000; ++i, usleep(2000)) {
    std::FILE* const in = std::fopen(path, "rb");
    if (in == nullptr) continue;
    const bool whole = std::fread(id.bytes, sizeof id, 1, in) == 1;
    std::fclose(in);
    if (whole) return;
  }
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  player p;
  p.what = argv[1];
  p.name = p.what + " " + argv[2];
  for (char* word = std::strtok(argv[2], ","); word != nullptr; word = std::strtok(nullptr, ","))
    p.dying.push_back(std::atoi(word));
  xio_init_attr_t init = XIO_INIT_ATTR_INIT;
  init.timeout_ms = static_cast<uint32_t>(p.timeout_ms);
  const xio_option_t survive = {"XIO_SURVIVE", p.what == "without" ? "0" : "1"};
  init.options = &survive;
  init.option_count = 1;
  xio_unique_id_t id{};
  set_unique_id(init, id);
  MUST(xio_init(&init, &p.world));
  p.me = xio_my_pe(p.world);
  p.n = xio_n_pes(p.world);
  for (int pe = 0; pe < p.n; ++pe)
    if (std::count(p.dying.begin(), p.dying.end(), pe) == 0) p.living.push_back(pe);
  MUST(xio_ctx_create(p.world, nullptr, &p.ctx));
  void* at = nullptr;
  MUST(xio_calloc(p.world, 1, sizeof(shared), &at));
  p.s = static_cast<shared*>(at);
  if (p.what == "some" || p.what == "late" || p.what == "without") {
    play_bad_input(p);
  } else {
    xio_team_t team{};
    MUST(xio_team_world(p.world, &team));
    if (p.what == "split") make_most(p);
    const auto living = std::exchange(p.living, {});
    for (int pe = 0; pe < p.n; ++pe) p.living.push_back(pe);
    publish(p, &p.s->pids[p.me], static_cast<uint64_t>(getpid()), "pids");
    p.living = living;
    MUST(xio_host_barrier(p.world));
    const auto pids = rig::team::read(p.s->pids, k_most);
    if (dies(p) && p.what == "stop") stop_and_go_on(p);
    if (dies(p) && p.what == "cut") be_left_out(p);
    const auto place = static_cast<int>(std::find(p.dying.begin(), p.dying.end(), p.me) - p.dying.begin());
    if (dies(p)) die_soon(p.what == "shrink" ? (place == 0 ? 20 : 60 + 3 * place) : 40 + 13 * place);
    wait_for_deaths(p);
    go_on(p, team, pids);
  }
  return rig::verdict(rig::text("shrink %s: PE %d of %d", p.name.c_str(), p.me, p.n).c_str());
}
