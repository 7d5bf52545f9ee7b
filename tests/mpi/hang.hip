// SPDX-License-Identifier: MIT
// Jobs that stand still on purpose, until XIO_TIMEOUT_MS: hang NAME [FILE]. tests/tools/hang.sh has for each what
// xio-info --job has to say first.

#include "rig.hpp"

namespace {

__global__ void come(xio_ctx_t ctx) { xio_barrier_all(ctx); }
__global__ void await(xio_ctx_t ctx, const uint64_t* word) { xio_signal_wait_until(ctx, word, XIO_CMP_EQ, 1); }
__global__ void tell_and_come(xio_ctx_t ctx, uint64_t* word, int pe) {
  xio_signal_op(ctx, word, 1, XIO_SIGNAL_SET, pe);
  xio_barrier_all(ctx);
}
__global__ void sync_team(xio_ctx_t ctx, xio_team_t team) { xio_team_sync_wg(ctx, team); }
__global__ void add_up(xio_ctx_t ctx, xio_team_t team, uint64_t* sums) {
  xio_reduce_wg<xio_reduction::sum, uint64_t>(ctx, team, sums, sums, 8);
}
__global__ void send(xio_ctx_t ctx, uint64_t* word, int pe) {
  xio_p(ctx, word, uint64_t{1}, pe);
  xio_quiet(ctx);
}
__global__ void load(xio_ctx_t ctx, xio_storage_t drive, void* buffer) {
  for (int i = 0; i < 4; ++i) xio_read(ctx, buffer, drive, 0, 4096);
}

xio_team_t team_of(const rig::team& t, int a, int b) {
  const int pes[] = {a, b};
  xio_team_t team{};
  MUST(xio_team_create(t.world(), pes, t.me == a || t.me == b ? 2 : 0, &team));
  return team;
}

}  // namespace

int main(int, char** argv) {
  const std::string name = argv[1];
  const rig::team t;
  auto* words = t.symmetric<uint64_t>(1024);
  const xio_team_t pairs[] = {team_of(t, 0, 1), team_of(t, t.n == 2 ? 0 : 1, t.n - 1), team_of(t, t.n - 1, 0)};
  const int last = t.n - 1;
  t.barrier();
  if (name == "barrier" && t.me != last) RUN(come, 1, 1, t.ctx);
  if (name == "wrong_word" && t.me == 0) RUN(await, 1, 1, t.ctx, words + 3);
  if (name == "wrong_word" && t.me == 1) RUN(tell_and_come, 1, 1, t.ctx, words + 4, 0);
  if (name == "cycle") RUN(sync_team, 1, 1, t.ctx, pairs[t.me]);
  if (name == "words") RUN(await, 1, 1, t.ctx, words + t.me);
  if (name == "never_launched" && t.me == 0) RUN(await, 1, 1, t.ctx, words);
  if (name == "channel" && t.me == 0) RUN(sync_team, 2, 1, t.ctx, pairs[0]);
  if (name == "other_call" && t.me == 0) RUN(add_up, 1, 64, t.ctx, pairs[0], words);
  if (name == "other_call" && t.me == 1) RUN(come, 1, 1, t.ctx);
  if (name == "host" && t.me == 0) RUN(await, 1, 1, t.ctx, words);
  if (name == "queue" && t.me == 0) RUN(send, 1, 1, t.ctx, words, 1);
  for (int i = 0; name == "moves" && t.me == 0 && i < 5; ++i) RUN(send, 1, 1, t.ctx, words, 1);
  xio_storage_t drive{};
  const bool reads = (name == "drive" || name == "moves") && t.me == 1;
  if (reads) MUST(xio_storage_open(t.world(), argv[2], nullptr, &drive));
  if (reads) RUN(load, 1, 1, t.ctx, drive, words);
  if (name == "drive") RUN(come, 1, 1, t.ctx);
  xio_error_info_t why = XIO_ERROR_INFO_INIT;  // after a deadline, of which this tells the log
  MUST(xio_ctx_error(t.world(), t.ctx, &why));
  if (name != "moves" && (name != "host" || t.me == 0)) sleep(1000);  // a PE that does not wait computes
  t.barrier();
  return 0;
}
