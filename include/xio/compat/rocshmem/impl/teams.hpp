// SPDX-License-Identifier: MIT
// How the host makes teams. There a split is collective over the members of the parent alone, so it cannot take
// symmetric memory, which every PE of the world would have to ask for. rocshmem_init takes the work memory of all teams
// that the program may have, in parts; the members of a parent agree on parts that are free at each of them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "xio/compat/rocshmem/impl/failure.hpp"
#include "xio/compat/rocshmem/impl/state.hpp"
#include "xio/device/impl/team_layout.hpp"
#include "xio/team.h"

namespace rocshmem::impl {

// A team's handle is its place in the table: 0 is none, then the world and the PEs of this machine.
constexpr std::uint32_t k_team_world = 1, k_team_shared = 2, k_first_split = 3;

struct team_record {
  xio_team_t team{};
  std::vector<int> pes;
  std::uint32_t* list = nullptr;  // on the device
};

struct team_table {
  xio_world_t* world = nullptr;
  int me = -1;
  std::vector<team_record> all;
  xio_team_t* on_device = nullptr;
  unsigned char* memory = nullptr;  // symmetric, a part for each team that may be split off
  std::size_t part_bytes = 0;
  std::uint32_t area_bytes = 0, packets = 0;  // packets: most bytes of a message that goes so
  std::uint64_t* words = nullptr;  // symmetric: free parts as this PE has them, the same of every member, a status
  std::size_t word_count = 0;

  std::uint64_t* words_of_all() const { return words + word_count; }
  std::uint64_t* status() const { return words_of_all() + word_count * all[k_team_world].pes.size(); }
};

static __global__ void free_parts_kernel(std::uint32_t parent, std::uint64_t* of_all, const std::uint64_t* own,
                                         std::size_t bytes, std::uint64_t* status) {
  const xio_status_t s = xio_fcollect_wg(resolve(), in_kernels.teams[parent], of_all, own, bytes);
  if (threadIdx.x == 0) *status = static_cast<std::uint64_t>(static_cast<int>(s));
}
static __global__ void team_sync_kernel(std::uint32_t team, std::uint64_t* status) {
  const xio_status_t s = xio_team_sync_wg(resolve(), in_kernels.teams[team]);
  if (threadIdx.x == 0) *status = static_cast<std::uint64_t>(static_cast<int>(s));
}

inline bool went_well(const team_table& t, const char* call) {
  std::uint64_t status = 0;
  must(hipDeviceSynchronize(), call);
  must(hipMemcpy(&status, t.status(), sizeof status, hipMemcpyDeviceToHost), call);
  if (status == XIO_OK) return true;
  std::fprintf(stderr, "%s: the members did not all come: %s\n", call,
               xio_status_name(static_cast<xio_status_t>(static_cast<int>(status))));
  return false;
}

inline void publish(team_table& t, std::uint32_t at) {
  must(hipMemcpy(t.on_device + at, &t.all[at].team, sizeof(xio_team_t), hipMemcpyHostToDevice), "a team");
}

// A part serves any team of this world's PEs, and smaller teams have larger packets.
inline std::size_t part_bytes_for(std::size_t n, std::uint64_t area, std::uint32_t packets) {
  std::size_t most = 0;
  for (const std::size_t members : {std::min<std::size_t>(n, 8), std::min<std::size_t>(n, 32), n})
    most = std::max<std::size_t>(
        most, xio::dev::team_channel_bytes(members, xio::dev::team_packet_bytes(members, packets), area));
  return most;
}

inline int teams_wanted() {
  const char* text = std::getenv("ROCSHMEM_MAX_NUM_TEAMS");
  const int all = text != nullptr ? std::atoi(text) : 40;  // the world is one of them, as there
  return std::clamp(all, 1, 4096) - 1;
}

inline std::vector<int> pes_of(xio_world_t* world, xio_team_t team, xio_team_t all) {
  std::vector<int> pes;
  for (int i = 0; i < xio_team_n_pes(team); ++i) pes.push_back(xio_team_translate(world, team, all, i));
  return pes;
}

inline void start_teams(team_table& t, xio_world_t* world) {
  const char* call = "rocshmem_init";
  t.world = world;
  t.me = xio_my_pe(world);
  xio_team_t everybody{};
  must(xio_team_world(world, &everybody), call);
  // As XIO_TEAM_AREA has it for a team of all, which serves smaller ones too.
  t.area_bytes = everybody.area_bytes;
  // Unless an option gave a team of all less than its size allows, smaller teams may have larger ones.
  const std::uint32_t most = xio::dev::k_most_packet_bytes;
  const bool limited = everybody.packet_bytes < xio::dev::team_packet_bytes(everybody.n_pes, most);
  t.packets = limited ? everybody.packet_bytes : most;
  std::size_t parts = static_cast<std::size_t>(teams_wanted());
  t.part_bytes = part_bytes_for(static_cast<std::size_t>(xio_n_pes(world)), t.area_bytes, t.packets);
  void* memory = nullptr;
  if (parts != 0 && xio_malloc(world, parts * t.part_bytes, &memory) != XIO_OK) {
    if (t.me == 0)
      std::fprintf(stderr,
                   "rocshmem over XIO: no team can be split off: the heap has no room for the work memory of %zu teams "
                   "(%zu bytes); raise ROCSHMEM_HEAP_SIZE or lower ROCSHMEM_MAX_NUM_TEAMS\n",
                   parts, parts * t.part_bytes);
    parts = 0;
  }
  t.memory = static_cast<unsigned char*>(memory);
  t.word_count = (parts + 63) / 64;
  const std::size_t members = static_cast<std::size_t>(xio_n_pes(world));
  must(xio_malloc(world, ((members + 1) * t.word_count + 1) * sizeof(std::uint64_t), &memory), call);
  t.words = static_cast<std::uint64_t*>(memory);
  t.all.assign(k_first_split + parts, {});
  t.all[k_team_world].team = everybody;
  must(xio_team_shared(world, &t.all[k_team_shared].team), call);
  for (const std::uint32_t at : {k_team_world, k_team_shared})
    t.all[at].pes = pes_of(world, t.all[at].team, t.all[k_team_world].team);
  must(hipMalloc(&t.on_device, t.all.size() * sizeof(xio_team_t)), call);
  must(hipMemset(t.on_device, 0, t.all.size() * sizeof(xio_team_t)), call);
  publish(t, k_team_world);
  publish(t, k_team_shared);
}

// The world ends next, and its heap with it.
inline void end_teams(team_table& t) {
  for (const team_record& r : t.all)
    if (r.list != nullptr) (void)hipFree(r.list);
  (void)hipFree(t.on_device);
  t = {};
}

inline bool is_team(const team_table& t, rocshmem_team_t team) {
  return team.index != 0 && team.index < t.all.size() && !t.all[team.index].pes.empty();
}

// The first `wanted` parts that are free at every member of `parent`, as places in the table; none if they are too few,
// at all members alike. A member that refuses gives no free part.
inline std::vector<std::uint32_t> agree_on_parts(team_table& t, std::uint32_t parent, std::size_t wanted, bool refuses,
                                                 const char* call) {
  std::vector<std::uint64_t> words(t.word_count, 0);
  for (std::size_t i = k_first_split; i < t.all.size(); ++i)
    if (!refuses && t.all[i].pes.empty())
      words[(i - k_first_split) / 64] |= std::uint64_t{1} << (i - k_first_split) % 64;
  if (words.empty()) return {};
  const std::size_t bytes = words.size() * sizeof words[0];
  must(hipMemcpy(t.words, words.data(), bytes, hipMemcpyHostToDevice), call);
  hipLaunchKernelGGL(free_parts_kernel, dim3(1), dim3(64), 0, nullptr, parent, t.words_of_all(), t.words, bytes,
                     t.status());
  if (!went_well(t, call)) return {};
  std::vector<std::uint64_t> of_all(words.size() * t.all[parent].pes.size());
  must(hipMemcpy(of_all.data(), t.words_of_all(), bytes * t.all[parent].pes.size(), hipMemcpyDeviceToHost), call);
  for (std::size_t i = 0; i < of_all.size(); ++i) words[i % words.size()] &= of_all[i];
  std::vector<std::uint32_t> found;
  for (std::size_t i = k_first_split; i < t.all.size() && found.size() < wanted; ++i)
    if ((words[(i - k_first_split) / 64] >> (i - k_first_split) % 64 & 1) != 0)
      found.push_back(static_cast<std::uint32_t>(i));
  if (found.size() < wanted) found.clear();
  return found;
}

// The distance of members; 0 if they have none, and a list says who they are.
inline std::uint32_t stride_of(const std::vector<int>& pes) {
  const int stride = pes.size() > 1 ? pes[1] - pes[0] : 1;
  for (std::size_t i = 1; i < pes.size(); ++i)
    if (pes[i] - pes[i - 1] != stride) return 0;
  return static_cast<std::uint32_t>(stride);
}

inline void make_team(team_table& t, std::uint32_t at, const std::vector<int>& pes, const char* call) {
  const std::vector<std::uint32_t> numbers(pes.begin(), pes.end());
  team_record& r = t.all[at];
  const std::size_t bytes = numbers.size() * sizeof numbers[0];
  must(hipMalloc(&r.list, bytes), call);
  must(hipMemcpy(r.list, numbers.data(), bytes, hipMemcpyHostToDevice), call);
  r.pes = pes;
  r.team.list = r.list;
  r.team.work = t.memory + (at - k_first_split) * t.part_bytes;
  r.team.my_pe = static_cast<std::uint32_t>(std::find(pes.begin(), pes.end(), t.me) - pes.begin());
  r.team.n_pes = static_cast<std::uint32_t>(pes.size());
  r.team.first = numbers[0];
  r.team.stride = stride_of(pes);
  r.team.packet_bytes = xio::dev::team_packet_bytes(pes.size(), t.packets);
  r.team.area_bytes = t.area_bytes;
  must(hipMemset(r.team.work, 0, t.part_bytes), call);
  // The world's number above that of the team, by which sentences name it.
  r.team.id = t.all[k_team_world].team.id >> 32 << 32 | at;
  r.team.token = std::random_device{}();
  const std::uint64_t mark = xio::dev::mark_of(r.team.token, r.team.id);
  must(hipMemcpy(static_cast<unsigned char*>(r.team.work) + offsetof(xio::dev::channel_state, team), &mark, sizeof mark,
                 hipMemcpyHostToDevice),
       call);
  publish(t, at);
}

inline void forget_team(team_table& t, std::uint32_t at) {
  if (t.all[at].list != nullptr) (void)hipFree(t.all[at].list);
  t.all[at] = {};
  publish(t, at);
}

inline bool sync_team(team_table& t, std::uint32_t at, const char* call) {
  hipLaunchKernelGGL(team_sync_kernel, dim3(1), dim3(64), 0, nullptr, at, t.status());
  return went_well(t, call);
}

// Makes the teams of this PE out of `parent`, one for each list; an empty list is a team that this PE is not in. All
// members of the parent call. False: none was made.
inline bool split(team_table& t, std::uint32_t parent, const std::vector<std::vector<int>>& lists, bool refuses,
                  rocshmem_team_t* const* out, const char* call) {
  const std::vector<std::uint32_t> places = agree_on_parts(t, parent, lists.size(), refuses, call);
  if (places.empty()) return false;
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (!lists[i].empty()) make_team(t, places[i], lists[i], call);
  // No member sends before the parts of all are cleared.
  const bool good = sync_team(t, parent, call);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].empty()) continue;
    if (good) *out[i] = rocshmem_team_t{places[i]};
    if (!good) forget_team(t, places[i]);
  }
  return good;
}

inline std::vector<int> strided(const std::vector<int>& parent, int me, int start, int stride, int size, bool* good) {
  const auto n = static_cast<long long>(parent.size());
  const long long last = start + (size - 1ll) * stride;
  *good = size >= 1 && (stride != 0 || size == 1) && start >= 0 && start < n && last >= 0 && last < n;
  std::vector<int> pes;
  for (int i = 0; *good && i < size; ++i)
    pes.push_back(parent[static_cast<std::size_t>(start + static_cast<long long>(i) * stride)]);
  return std::find(pes.begin(), pes.end(), me) != pes.end() ? pes : std::vector<int>{};
}

}  // namespace rocshmem::impl
