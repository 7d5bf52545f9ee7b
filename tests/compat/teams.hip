// SPDX-License-Identifier: MIT
// Teams: splits whose members alone call, numbers on both sides, contexts of a team, syncs and barriers in three
// scopes, how many there may be, and calls that are refused.
#include "rig.hpp"

namespace {

// Numbers as kernels see them: 1 for what is as `pes` says.
__global__ void numbers(rocshmem_team_t team, const int* pes, int n, int me, int* good) {
  int right = rocshmem_team_n_pes(team) == n && rocshmem_team_my_pe(team) == me;
  for (int i = 0; i < n; ++i) {
    if (rocshmem_team_translate_pe(team, i, ROCSHMEM_TEAM_WORLD) != pes[i]) right = 0;
    if (rocshmem_team_translate_pe(ROCSHMEM_TEAM_WORLD, pes[i], team) != i) right = 0;
  }
  if (rocshmem_team_translate_pe(team, n, ROCSHMEM_TEAM_WORLD) != -1) right = 0;
  if (rocshmem_team_n_pes(ROCSHMEM_TEAM_INVALID) != -1 || rocshmem_team_my_pe(nullptr) != -1) right = 0;
  *good = right;
}

// Every member writes its number and the round to all members by a context of the team, which counts them.
__global__ void rounds(rocshmem_team_t team, int* slots, int* bad) {
  __shared__ rocshmem_ctx_t ctx;
  if (rocshmem_wg_team_create_ctx(team, 0, &ctx) != ROCSHMEM_SUCCESS) *bad = 1;
  const int n = rocshmem_team_n_pes(team), me = rocshmem_team_my_pe(team), thread = static_cast<int>(threadIdx.x);
  if (rocshmem_ctx_n_pes(ctx) != n || rocshmem_ctx_my_pe(ctx) != me) *bad = 2;
  for (int round = 1; round <= 6; ++round) {
    if (thread < n) rocshmem_ctx_int_p(ctx, slots + me, 100 * round + me, thread);
    __syncthreads();
    if (round % 3 == 0 && thread == 0) rocshmem_ctx_barrier(ctx, team);
    if (round % 3 == 1 && thread / warpSize == 0) rocshmem_ctx_barrier_wave(ctx, team);
    if (round % 3 == 2) rocshmem_ctx_barrier_wg(ctx, team);
    __syncthreads();
    if (thread < n && *(volatile int*)(slots + thread) != 100 * round + thread) *bad = 3;
    __syncthreads();
    if (round % 3 == 0 && thread == 0) rocshmem_ctx_sync(ctx, team);
    if (round % 3 == 1 && thread / warpSize == 0) rocshmem_ctx_sync_wave(ctx, team);
    if (round % 3 == 2) rocshmem_ctx_wg_team_sync(ctx, team);
    __syncthreads();
  }
  rocshmem_wg_ctx_destroy(&ctx);
}

void check(rocshmem_team_t team, const std::vector<int>& pes, const char* name) {
  const int n = static_cast<int>(pes.size()), me = rocshmem_my_pe();
  int mine = -1;
  for (int i = 0; i < n; ++i)
    if (pes[static_cast<size_t>(i)] == me) mine = i;
  if (mine < 0) {
    rig::expect(team == ROCSHMEM_TEAM_INVALID, name, 1, 0);
    rig::expect(rocshmem_team_my_pe(team) == -1, name, rocshmem_team_my_pe(team), -1);
    return;
  }
  rig::expect(rocshmem_team_my_pe(team) == mine, name, rocshmem_team_my_pe(team), mine);
  rig::expect(rocshmem_team_n_pes(team) == n, name, rocshmem_team_n_pes(team), n);
  for (int i = 0; i < n; ++i) {
    const int pe = rocshmem_team_translate_pe(team, i, ROCSHMEM_TEAM_WORLD);
    rig::expect(pe == pes[static_cast<size_t>(i)], name, pe, pes[static_cast<size_t>(i)]);
  }
  int *list = nullptr, *bad = nullptr;
  rig::must(hipMalloc(&list, pes.size() * sizeof(int)));
  rig::must(hipMemcpy(list, pes.data(), pes.size() * sizeof(int), hipMemcpyHostToDevice));
  rig::must(hipMalloc(&bad, sizeof(int)));
  RUN(numbers, 1, 1, team, list, n, mine, bad);
  rig::expect(rig::read(bad, 1)[0] == 1, name, rig::read(bad, 1)[0], 1);
  rig::must(hipFree(list));
  rig::must(hipFree(bad));
}

// All PEs call, for teams share the slots; members alone run.
void use(rocshmem_team_t team, int* slots, int* bad, const char* name) {
  rocshmem_barrier_all();
  if (team == ROCSHMEM_TEAM_INVALID) return;
  RUN(rounds, 1, 96, team, slots, bad);
  rig::expect(rig::read(bad, 1)[0] == 0, name, rig::read(bad, 1)[0], 0);
}

void splits(int n, int me, int* slots, int* bad) {
  std::vector<int> all, evens, odds, backwards, tail;
  for (int i = 0; i < n; ++i) {
    all.push_back(i);
    (i % 2 == 0 ? evens : odds).push_back(i);
    backwards.push_back(n - 1 - i);
    if (i != 0) tail.push_back(i);
  }
  rocshmem_team_t whole, even, odd, back, rest, x, y;
  const auto strided = [](rocshmem_team_t parent, int start, int stride, int size, rocshmem_team_t* out) {
    const int status = rocshmem_team_split_strided(parent, start, stride, size, nullptr, 0, out);
    rig::expect(status == ROCSHMEM_SUCCESS, "split_strided", status, ROCSHMEM_SUCCESS);
  };
  strided(ROCSHMEM_TEAM_WORLD, 0, 1, n, &whole);
  strided(ROCSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, &even);
  strided(ROCSHMEM_TEAM_WORLD, 1, 2, n / 2, &odd);
  strided(ROCSHMEM_TEAM_WORLD, n - 1, -1, n, &back);
  check(whole, all, "the world again");
  check(even, evens, "even PEs");
  check(odd, odds, "odd PEs");
  check(back, backwards, "backwards");
  for (const rocshmem_team_t team : {whole, even, odd, back}) use(team, slots, bad, "rounds");
  // Only members of the parent call: the others go on.
  rocshmem_team_t first = ROCSHMEM_TEAM_INVALID;
  if (even != ROCSHMEM_TEAM_INVALID) strided(even, 0, 1, 1, &first);
  check(first, {0}, "the first of the even PEs");
  use(first, slots, bad, "alone");
  rocshmem_team_destroy(first);
  strided(back, 0, 1, n - 1, &rest);
  check(rest, std::vector<int>(backwards.begin(), backwards.end() - 1), "all but PE 0, backwards");
  use(rest, slots, bad, "all but one");
  const int status = rocshmem_team_split_2d(ROCSHMEM_TEAM_WORLD, 2, nullptr, 0, &x, nullptr, 0, &y);
  rig::expect(status == ROCSHMEM_SUCCESS, "split_2d", status, 0);
  check(x, me / 2 * 2 + 1 < n ? std::vector<int>{me / 2 * 2, me / 2 * 2 + 1} : std::vector<int>{me}, "my row");
  check(y, me % 2 == 0 ? evens : odds, "my column");
  use(x, slots, bad, "rows");
  use(y, slots, bad, "columns");
  if (rocshmem_team_n_pes(ROCSHMEM_TEAM_SHARED) == n) check(ROCSHMEM_TEAM_SHARED, all, "this machine");
  for (const rocshmem_team_t team : {y, x, rest, back, odd, even, whole}) rocshmem_team_destroy(team);
  rocshmem_team_destroy(ROCSHMEM_TEAM_WORLD);
  check(ROCSHMEM_TEAM_WORLD, all, "the world stays");
}

// 39 beside the world; a destroyed one makes room.
void as_many_as_there_may_be(int n, int* slots, int* bad) {
  std::vector<rocshmem_team_t> teams(39);
  for (rocshmem_team_t& team : teams) rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 1, n, nullptr, 0, &team);
  rig::expect(teams[38] != ROCSHMEM_TEAM_INVALID, "team 39", 0, 1);
  rocshmem_team_t more;
  int status = rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 1, n, nullptr, 0, &more);
  rig::expect(status != ROCSHMEM_SUCCESS && more == ROCSHMEM_TEAM_INVALID, "team 40", status, ROCSHMEM_ERROR);
  rocshmem_team_destroy(teams[7]);
  status = rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 1, n, nullptr, 0, &teams[7]);
  rig::expect(status == ROCSHMEM_SUCCESS, "in the place of team 8", status, ROCSHMEM_SUCCESS);
  use(teams[7], slots, bad, "in the place of team 8");
  for (const rocshmem_team_t team : teams) rocshmem_team_destroy(team);
}

// One member's wrong arguments are refused at all of them, and nothing is left over.
void refusals(int n, int me) {
  rocshmem_team_t team = ROCSHMEM_TEAM_WORLD;
  int status = rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 1, me == 0 ? n + 1 : n, nullptr, 0, &team);
  rig::expect(status == ROCSHMEM_ERROR && team == ROCSHMEM_TEAM_INVALID, "a member too many", status, ROCSHMEM_ERROR);
  status = rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 0, 2, nullptr, 0, &team);
  rig::expect(status == ROCSHMEM_ERROR, "stride 0", status, ROCSHMEM_ERROR);
  status = rocshmem_team_split_strided(ROCSHMEM_TEAM_INVALID, 0, 1, 1, nullptr, 0, &team);
  rig::expect(status == ROCSHMEM_ERROR, "no parent", status, ROCSHMEM_ERROR);
}

}  // namespace

int main() {
  rocshmem_init();
  const int n = rocshmem_n_pes(), me = rocshmem_my_pe();
  auto* slots = rig::symmetric<int>(static_cast<size_t>(n), 0);
  auto* bad = rig::symmetric<int>(1, 0);
  rocshmem_barrier_all();
  splits(n, me, slots, bad);
  refusals(n, me);
  as_many_as_there_may_be(n, slots, bad);
  rocshmem_barrier(ROCSHMEM_TEAM_WORLD);
  rocshmem_team_sync(ROCSHMEM_TEAM_WORLD);
  return rig::verdict("teams");
}
