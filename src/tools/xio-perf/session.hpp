// SPDX-License-Identifier: MIT
// The world that tests run in: contexts by route, memory in the heap, and where kernels write results.
#pragma once
#include <functional>
#include <map>

#include "tools/xio-perf/settings.hpp"

namespace xio::perf {

// Throws xio::error, with xio_last_error()'s sentence.
void checked(xio_status_t status, const char* what);

// Device memory that kernels write and the host reads after them.
class kernel_results {
 public:
  kernel_results() = default;
  ~kernel_results();
  kernel_results& operator=(kernel_results&&) = delete;

  // Room, zeroed, and the pointers into it.
  void prepare(work& w, std::size_t samples, std::size_t spans);
  // Waits for the kernel and fetches what it left. Throws what failed; world and ctx tell more of it. what: "put_lat of
  // 8 bytes".
  void collect(const char* what, xio_world_t* world, xio_ctx_t ctx);

  std::vector<std::uint64_t> samples;
  std::vector<span> spans;

 private:
  void* block_ = nullptr;
  std::size_t bytes_ = 0;
};

struct heap_need {
  std::size_t src = 0, dst = 0, teams = 0;
};

class session {
 public:
  // need: what so many PEs want. n_guess: the launcher's; where the world has others, a second one is made.
  session(const std::function<heap_need(int)>& need, int n_guess);
  ~session();
  session& operator=(session&&) = delete;

  int me() const { return me_; }
  int n_pes() const { return n_; }
  xio_world_t* world() const { return world_; }
  xio_ctx_t ctx(xio_route_t route);  // collective the first time that a route is asked for
  xio_team_t team(int members);      // of the first PEs; collective likewise, the empty team for all others
  // Offsets and lengths of a block for each PE, in device memory.
  const std::size_t* blocks(std::size_t bytes);
  void barrier() { checked(xio_host_barrier(world_), "xio_host_barrier"); }
  // Filled but for the fields that a test sets; the peer is the next PE.
  work blank(xio_route_t route);
  // Collective. The longest that any PE took, time by time. No more than the first 1024 of them.
  std::vector<double> slowest(xio_route_t route, const std::vector<double>& mine);
  void collect(const char* what, const work& w) { results.collect(what, world_, w.ctx); }
  void close();  // collective

  char* src = nullptr;
  char* dst = nullptr;
  kernel_results results;

 private:
  void init(const heap_need& need);

  xio_world_t* world_ = nullptr;
  int me_ = 0, n_ = 0;
  std::map<xio_route_t, xio_ctx_t> contexts_;
  std::map<int, xio_team_t> teams_;
  std::size_t* blocks_ = nullptr;
  words* words_ = nullptr;
  char* exchange_ = nullptr;  // two arrays of k_exchanged: own, and fetched
};

}  // namespace xio::perf
