// SPDX-License-Identifier: MIT
// Jobs that stand still on purpose, until XIO_TIMEOUT_MS: hang NAME [FILE]. tests/tools/hang.sh has for each what
// xio-info --job has to say first. And some that end (ends()), for tests/tools/metrics.sh.
#include <xio/stream.h>

#include <csignal>
#include <numeric>
#include <optional>

#include "rig.hpp"

namespace {

// Of a kernel, and behind it of the host.
enum class act {
  // clang-format off
  come, await, await_all, await_packet, await_immediate, publish, send, send_in_order, send_and_end, get,
  count, sync_team, gather, hear, swap, add_up, load, store, stop, sleep, barrier, make_team, reduce_on_stream
  // clang-format on
};

// word: of the heap. team: made of those, or the pair of this PE and the next one.
struct row {
  const char* name;
  std::vector<int> pes;  // that do it: none: all; the others compute
  act what;
  int word = 0, pe = 0;
  unsigned blocks = 1;
};
const row k_rows[] = {
    {"barrier", {0, 1}, act::come},
    {"missing", {0, 1, 2, 4}, act::come},
    {"wrong_word", {0}, act::await, 3},
    {"wrong_word", {1}, act::publish, 4, 0},
    {"wrong_word", {1}, act::come},
    {"wrong_pe", {0}, act::publish, 0, 2},
    {"wrong_pe", {0, 2}, act::come},
    {"wrong_pe", {1}, act::await},
    {"words", {}, act::await},
    {"some_words", {0}, act::send, 0, 1},
    {"some_words", {0}, act::send, 1, 1},
    {"some_words", {1}, act::await_all},
    {"never_launched", {0}, act::await},
    {"unsent", {0, 1, 3, 4}, act::await},
    {"packet", {2}, act::await_packet},
    {"immediate", {0}, act::await_immediate, 0, 1},
    {"refused", {0}, act::send, 0, 77},
    {"refused", {0}, act::await},
    {"stopped", {1}, act::stop},
    {"stopped", {}, act::come},
    {"cycle", {}, act::sync_team},
    {"swaps", {}, act::swap},
    {"channel", {0}, act::sync_team, 0, 0, 2},
    {"reduces", {1}, act::add_up, 0, 0, 3},
    {"other_call", {0}, act::add_up},
    {"other_call", {1}, act::come},
    {"gather", {1, 2}, act::gather},
    {"root", {0, 2}, act::hear},
    {"stream", {0, 2}, act::reduce_on_stream},
    {"made", {0, 2}, act::make_team},
    {"of_host", {0}, act::barrier},
    {"of_host", {1, 2}, act::come},
    {"host", {0}, act::await},
    {"queue", {0}, act::send, 0, 1},
    {"fence", {2}, act::send_in_order},
    {"get", {1}, act::get},
    {"counter", {0}, act::count, 0, 1},
    {"half", {0}, act::send_and_end, 0, 1},
    {"half", {1}, act::await, 2},
    {"drive", {1}, act::load},
    {"sync", {1}, act::store},
    {"drive", {}, act::come},
    {"sync", {}, act::come},
    {"late", {0}, act::await, 1},
    {"late", {1}, act::sleep},
    {"late", {1}, act::send, 1, 0},
    {"moves", {1}, act::load},
};

struct things {
  xio_ctx_t ctx;
  xio_team_t team, some;
  xio_storage_t drive;
  uint64_t* words;
};

__global__ void perform(act what, things t, int word, int pe) {
  const xio_ctx_t& ctx = t.ctx;
  uint64_t *const words = t.words, *const one = words + word, *const to = words + 64;
  uint32_t taken;
  switch (what) {
    case act::gather: xio_fcollect_wg(ctx, t.some, to, words, 8); return;
    case act::hear: xio_broadcast_wg(ctx, t.some, to, words, 8, 1); return;
    case act::swap: xio_alltoall_wg(ctx, t.team, to, words, 8); return;
    case act::sync_team: xio_team_sync_wg(ctx, t.team); return;
    case act::add_up: xio_reduce_wg<xio_reduction::sum, uint64_t>(ctx, t.some, words, words, 8); return;
    default: break;
  }
  if (threadIdx.x != 0) return;
  switch (what) {
    case act::come: xio_barrier_all(ctx); break;
    case act::await: xio_signal_wait_until(ctx, one, XIO_CMP_EQ, 1); break;
    case act::await_all: xio_wait_until_all(ctx, words, 3, nullptr, XIO_CMP_EQ, uint64_t{1}); break;
    case act::await_packet: xio_wait_packet(ctx, words, to, 16, 7); break;
    case act::await_immediate: xio_imm_wait(ctx, &taken, pe); break;
    case act::publish: xio_signal_op(ctx, one, 1, XIO_SIGNAL_SET, pe); break;
    case act::send_in_order:
      xio_p(ctx, one + 1, uint64_t{1}, pe);
      xio_fence(ctx);
      [[fallthrough]];
    case act::send:
      xio_p(ctx, one, uint64_t{1}, pe);
      xio_quiet(ctx);
      break;
    case act::send_and_end: xio_put_signal_nbi(ctx, words + 1, words, 8, words + 2, 1, XIO_SIGNAL_SET, pe); break;
    case act::get: xio_get(ctx, words, words + 1, 8, pe); break;
    case act::count:
      xio_put_counter(ctx, words + 1, words, 8, to, pe);
      xio_wait_counter(ctx, to, 1);
      break;
    case act::load:
      for (int i = 0; i < 4; ++i) xio_read(ctx, words, t.drive, 0, 4096);
      break;
    case act::store:
      xio_write(ctx, words, t.drive, 0, 4096);
      xio_storage_sync(ctx, t.drive);
      break;
    default: break;
  }
}

xio_team_t team_of(const rig::team& t, const std::vector<int>& pes) {
  const bool in = std::find(pes.begin(), pes.end(), t.me) != pes.end();
  xio_team_t team{};
  MUST(xio_team_create(t.world(), pes.data(), in ? pes.size() : 0, &team));
  return team;
}

void act_of_host(const row& r, const rig::team& t, const things& with) {
  switch (r.what) {
    case act::stop: raise(SIGSTOP); return;
    case act::sleep: usleep(400000); return;
    case act::barrier: t.barrier(); return;
    case act::make_team: team_of(t, {0, 1}); return;
    case act::reduce_on_stream:
      MUST(xio_reduce_on_stream(t.world(), t.ctx, with.some, XIO_REDUCE_SUM, XIO_UINT64, with.words, with.words, 8,
                                nullptr, nullptr));
      MUST(hipDeviceSynchronize());
      return;
    default: RUN(perform, r.blocks, 64, r.what, with, r.word, r.pe);
  }
}

things things_for(const std::string& name, const rig::team& t, const char* file) {
  things with{t.ctx, {}, {}, {}, t.symmetric<uint64_t>(1024)};
  std::vector<int> some(static_cast<size_t>(std::min(t.n, 3)));
  std::iota(some.begin(), some.end(), 0);
  for (int i = 0; i < t.n; ++i)
    if (const xio_team_t pair = team_of(t, {i, (i + 1) % t.n}); i == t.me) with.team = pair;
  with.some = team_of(t, t.n == 5 ? std::vector<int>{1, 2, 4} : some);
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.immediates = 2;
  if (name == "immediate") MUST(xio_ctx_create(t.world(), &attr, &with.ctx));
  if (t.me == 1 && (name == "drive" || name == "sync" || name == "moves"))
    MUST(xio_storage_open(t.world(), file, nullptr, &with.drive));
  t.barrier();
  return with;
}

}  // namespace

int main(int, char** argv) {
  const std::string name = argv[1];
  const rig::team t;
  const things with = things_for(name, t, argv[2]);
  for (const row& r : k_rows)
    if (name == r.name && (r.pes.empty() || std::find(r.pes.begin(), r.pes.end(), t.me) != r.pes.end()))
      act_of_host(r, t, with);
  const row send{"", {}, act::send, 0, 1};
  const bool moves = name == "moves" || name == "twice", ends = moves || name == "late";
  for (int i = 0; moves && t.me == 0 && i < 5; ++i) act_of_host(send, t, with);
  std::optional<rig::team> other;
  if (name == "twice") other.emplace();
  things there = with;
  if (other) there.ctx = other->ctx, there.words = other->symmetric<uint64_t>(1);
  if (other && t.me == 0) act_of_host(send, t, there);
  (void)rig::error_of(t);                                   // after a deadline, of which this tells the log
  if (!ends && (name != "host" || t.me == 0)) sleep(1000);  // a PE that does not wait computes
  t.barrier();
  return 0;
}
