// SPDX-License-Identifier: MIT
// What a world, a context, a call of the host, a collective, a ping-pong beside idle PEs and a second without work cost
// each PE. bench/scale starts it with 2, 4, 8, ... PEs and makes tables of what it prints, a line a stage and PE:
//
//   STAGE wall_us cpu_us memory_kB messages bytes loopback_bytes switches
//
// all of one call, "-" where it is not known. Loopback bytes, of PE 0 alone, are those of the network namespace. Behind
// each stage is a host barrier, whose bytes are taken off, but for init.
#include <sys/resource.h>
#include <xio/hip.h>
#include <xio/team.h>
#include <xio/xio.h>
#include <xio/xio_device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(xio_status_t s, const char* what) {
  if (s == XIO_OK) return;
  std::fprintf(stderr, "world_costs: %s: %s\n", what, xio_last_error());
  std::exit(1);
}
#define CHECK(call) check((call), #call)

enum class op {
  barrier,
  sync,
  team_sync,
  alltoall,
  alltoallv,
  fcollect,
  collect,
  broadcast,
  reduce,
  reduce_scatter,
  ping_pong
};

struct work {
  xio_ctx_t ctx;
  xio_team_t team;
  int *dst, *src;
  const size_t *offsets, *lengths;  // of blocks of 8 bytes
  uint64_t* flag;                   // symmetric
  uint64_t base;                    // what it has been counted up to
  size_t bytes;
  int times;
  int* status;
};

__device__ xio_status_t turn(const work& w, uint64_t value) {
  const int me = xio_my_pe(w.ctx);
  if (me == 0) {
    if (const xio_status_t s = xio_signal_op(w.ctx, w.flag, value, XIO_SIGNAL_SET, 1); s != XIO_OK) return s;
  }
  const xio_status_t s = xio_signal_wait_until(w.ctx, w.flag, XIO_CMP_EQ, value);
  return s != XIO_OK || me == 0 ? s : xio_signal_op(w.ctx, w.flag, value, XIO_SIGNAL_SET, 0);
}

__device__ xio_status_t call(op o, const work& w, uint64_t i) {
  switch (o) {
    case op::barrier: return xio_barrier_all(w.ctx);
    case op::sync: return xio_sync_all(w.ctx);
    case op::team_sync: return xio_team_sync(w.ctx, w.team);
    case op::alltoall: return xio_alltoall_wg(w.ctx, w.team, w.dst, w.src, w.bytes);
    case op::alltoallv:
      return xio_alltoallv_wg(w.ctx, w.team, w.dst, w.offsets, w.lengths, w.src, w.offsets, w.lengths);
    case op::fcollect: return xio_fcollect_wg(w.ctx, w.team, w.dst, w.src, w.bytes);
    case op::collect: return xio_collect_wg(w.ctx, w.team, w.dst, w.src, w.bytes);
    case op::broadcast: return xio_broadcast_wg(w.ctx, w.team, w.dst, w.src, w.bytes, 0);
    case op::reduce: return xio_reduce_wg<xio_reduction::sum>(w.ctx, w.team, w.dst, w.src, w.bytes / sizeof(int));
    case op::reduce_scatter:
      return xio_reduce_scatter_wg<xio_reduction::sum>(w.ctx, w.team, w.dst, w.src, w.bytes / sizeof(int));
    case op::ping_pong: return turn(w, w.base + i + 1);
  }
  return XIO_OK;
}

__global__ void calls(op o, work w) {
  xio_status_t s = XIO_OK;
  for (int i = 0; i < w.times && s == XIO_OK; ++i) s = call(o, w, static_cast<uint64_t>(i));
  if (s == XIO_OK) s = xio_quiet(w.ctx);
  *w.status = s;
}

struct sample {
  double wall = 0, cpu = 0, memory = 0, messages = 0, bytes = 0, loopback = 0, switches = 0;
};

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

// The number behind a word in a file of the kernel's, 0 if it is not there. at: which of several.
double number_in(const char* file, const std::string& word, int at = 0) {
  std::ifstream from(file);
  for (std::string line; std::getline(from, line);)
    if (const auto found = line.find(word); found != std::string::npos) {
      const char* text = line.c_str() + found + word.size();
      char* end = nullptr;
      double value = std::strtod(text, &end);
      for (; at > 0; --at) value = std::strtod(end, &end);
      return value;
    }
  return 0;
}

struct pe {
  xio_world_t* world = nullptr;
  work w{};
  xio_route_t route = XIO_ROUTE_DIRECT;
  bool has_ctx = false;
  double barrier_bytes = 0;  // on the loopback

  sample now() const {
    sample s;
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    s.cpu = (seconds(used.ru_utime) + seconds(used.ru_stime)) * 1e6;
    s.switches = static_cast<double>(used.ru_nvcsw);
    s.wall = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
    // A page of the heap counts once, where it lies; mappings of others' heaps do not.
    s.memory = number_in("/proc/self/status", "RssAnon:");
    s.loopback = number_in("/proc/net/dev", "lo:");
    xio_engine_stats_t sent = XIO_ENGINE_STATS_INIT;
    if (has_ctx && route == XIO_ROUTE_RDMA) CHECK(xio_ctx_stats(world, w.ctx, XIO_ROUTE_RDMA, &sent));
    s.messages = static_cast<double>(sent.ops);
    s.bytes = static_cast<double>(sent.bytes);
    return s;
  }

  template <class Body>
  void stage(const std::string& name, int times, Body&& body) {
    const sample a = now();
    for (int i = 0; i < times; ++i) body();
    sample b = now();
    if (world != nullptr) CHECK(xio_host_barrier(world));
    b.loopback = now().loopback;
    print(name, times, a, b);
  }

  void print(const std::string& name, int times, const sample& a, const sample& b) const {
    const bool first = world != nullptr && xio_my_pe(world) == 0, network = has_ctx && route == XIO_ROUTE_RDMA;
    const auto text = [&](double value, bool known) { return known ? std::to_string(value / times) : "-"; };
    std::printf("%s %s %s %s %s %s %s %s\n", name.c_str(), text(b.wall - a.wall, true).c_str(),
                text(b.cpu - a.cpu, true).c_str(), text(b.memory - a.memory, true).c_str(),
                text(b.messages - a.messages, network).c_str(), text(b.bytes - a.bytes, network).c_str(),
                text(std::max(b.loopback - a.loopback - barrier_bytes, 0.0), first).c_str(),
                text(b.switches - a.switches, true).c_str());
    std::fflush(stdout);
  }

  void launch(op o, size_t bytes, int times) {
    w.bytes = bytes;
    w.times = times;
    hipLaunchKernelGGL(calls, dim3(1), dim3(1), 0, nullptr, o, w);
    int status = XIO_OK;
    if (hipMemcpy(&status, w.status, sizeof status, hipMemcpyDeviceToHost) != hipSuccess) status = XIO_ERR_INTERNAL;
    check(static_cast<xio_status_t>(status), "a kernel's call");
  }

  void collective(const char* name, op o, size_t bytes) {
    const int times = xio_n_pes(world) < 32 ? 4 : 2;
    launch(o, bytes, 1);
    CHECK(xio_host_barrier(world));
    const sample a = now();
    launch(o, bytes, times);
    sample b = now();
    CHECK(xio_host_barrier(world));
    b.loopback = now().loopback;
    print(bytes != 0 ? name + (" of " + std::to_string(bytes) + " B") : name, times, a, b);
  }
};

template <class T>
T* symmetric(xio_world_t* world, size_t bytes) {
  void* block = nullptr;
  CHECK(xio_calloc(world, 1, bytes, &block));
  return static_cast<T*>(block);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t k_large = size_t{1} << 20;
  pe p;
  if (argc > 1 && std::string(argv[1]) == "rdma") p.route = XIO_ROUTE_RDMA;
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = size_t{16} << 20;
  p.stage("init", 1, [&] { CHECK(xio_init(&attr, &p.world)); });
  const double before = p.now().loopback;
  CHECK(xio_host_barrier(p.world));
  p.barrier_bytes = p.now().loopback - before;
  xio_ctx_attr_t how = XIO_CTX_ATTR_INIT;
  how.route = p.route;
  p.stage("ctx", 1, [&] { CHECK(xio_ctx_create(p.world, &how, &p.w.ctx)); });
  p.has_ctx = true;
  void* block = nullptr;
  p.stage("malloc", 4, [&] { CHECK(xio_malloc(p.world, 4096, &block)); });
  p.stage("host barrier", 4, [&] { CHECK(xio_host_barrier(p.world)); });
  p.stage("team", 1, [&] { CHECK(xio_team_world(p.world, &p.w.team)); });
  const int n = xio_n_pes(p.world), me = xio_my_pe(p.world);
  p.w.dst = symmetric<int>(p.world, k_large);
  p.w.src = symmetric<int>(p.world, k_large);
  p.w.flag = symmetric<uint64_t>(p.world, 128);
  std::vector<size_t> blocks(2 * static_cast<size_t>(n), 8);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) blocks[i] = i * 8;
  size_t* lists = nullptr;
  if (hipMalloc(&p.w.status, sizeof(int)) != hipSuccess ||
      hipMalloc(&lists, blocks.size() * sizeof blocks[0]) != hipSuccess ||
      hipMemcpy(lists, blocks.data(), blocks.size() * sizeof blocks[0], hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  p.w.offsets = lists;
  p.w.lengths = lists + n;
  p.collective("barrier", op::barrier, 0);
  p.collective("sync", op::sync, 0);
  p.collective("team sync", op::team_sync, 0);
  p.collective("alltoall", op::alltoall, 8);
  p.collective("alltoallv", op::alltoallv, 8);
  p.collective("fcollect", op::fcollect, 8);
  p.collective("collect", op::collect, 8);
  p.collective("broadcast", op::broadcast, 8);
  p.collective("broadcast", op::broadcast, k_large);
  p.collective("reduce", op::reduce, 8);
  p.collective("reduce", op::reduce, 4096);
  p.collective("reduce", op::reduce, k_large);
  p.collective("reduce_scatter", op::reduce_scatter, 8);
  constexpr int k_turns = 200;
  if (n > 1 && me < 2) {
    sample best;
    for (int i = 0; i < 5; ++i) {
      const sample a = p.now();
      p.launch(op::ping_pong, 0, k_turns);
      const sample b = p.now();
      p.w.base += k_turns;
      if (i == 0 || b.wall - a.wall < best.wall) best = {b.wall - a.wall, b.cpu - a.cpu, 0, 0, 0, 0, 0};
    }
    p.print("half a round trip beside idle PEs", 2 * k_turns, {}, best);
  }
  p.stage("a second without work", 1, [] { std::this_thread::sleep_for(std::chrono::seconds(1)); });
  CHECK(xio_finalize(p.world));
  return 0;
}
