// SPDX-License-Identifier: MIT
// Worlds among real processes; world.sh starts it. Usage: world MODE. Ends with 0 if all went as it has to.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "xio/hip.h"
#include "xio/memory.h"
#include "xio/xio.h"

namespace {

int g_pe = -1;

void require_at(bool good, const char* what, int line) {
  if (good) return;
  std::fprintf(stderr, "world: PE %d, line %d: not so: %s (last error: %s)\n", g_pe, line, what, xio_last_error());
  std::exit(1);
}
#define REQUIRE(condition) require_at((condition), #condition, __LINE__)
#define REQUIRE_OK(call) require_at((call) == XIO_OK, #call, __LINE__)

bool says(const char* words) { return std::strstr(xio_last_error(), words) != nullptr; }

// Before xio_init, from the launcher.
int launcher_rank() {
  for (const char* variable : {"XIO_RUN_PE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "XIO_TCP_RANK"})
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  return 0;
}

xio_world_t* start(std::size_t heap_bytes = 4 << 20) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = heap_bytes;
  xio_world_t* w = nullptr;
  REQUIRE_OK(xio_init(&attr, &w));
  return w;
}

// Every PE writes to every PE; all check what they got. By the runtime's copies, for a heap may lie where no host
// thread can look.
void exchange(xio_world_t* w, unsigned salt) {
  const int me = xio_my_pe(w), n = xio_n_pes(w);
  constexpr std::size_t k_words = 100;
  const auto word = [salt](int from, int to, std::size_t i) {
    return salt + static_cast<unsigned>(1000 * from + 7 * to) + static_cast<unsigned>(i);
  };
  void* block = nullptr;
  REQUIRE_OK(xio_calloc(w, static_cast<std::size_t>(n) * k_words, sizeof(unsigned), &block));
  for (int pe = 0; pe < n; ++pe) {
    auto* there = static_cast<unsigned*>(xio_ptr(w, block, pe));
    REQUIRE(there != nullptr);
    std::vector<unsigned> words(k_words);
    for (std::size_t i = 0; i < k_words; ++i) words[i] = word(me, pe, i);
    REQUIRE(hipMemcpy(there + static_cast<std::size_t>(me) * k_words, words.data(), k_words * sizeof(unsigned),
                      hipMemcpyDefault) == hipSuccess);
  }
  REQUIRE(hipDeviceSynchronize() == hipSuccess);
  REQUIRE_OK(xio_host_barrier(w));
  std::vector<unsigned> mine(static_cast<std::size_t>(n) * k_words);
  REQUIRE(hipMemcpy(mine.data(), block, mine.size() * sizeof(unsigned), hipMemcpyDefault) == hipSuccess);
  for (int from = 0; from < n; ++from)
    for (std::size_t i = 0; i < k_words; ++i)
      REQUIRE(mine[static_cast<std::size_t>(from) * k_words + i] == word(from, me, i));
  REQUIRE_OK(xio_free(w, block));
}

int life() {
  for (unsigned round = 0; round < 3; ++round) {
    xio_world_t* w = start();
    g_pe = xio_my_pe(w);
    exchange(w, round);
    REQUIRE_OK(xio_finalize(w));
  }
  xio_world_t* a = start(4 << 20);
  xio_world_t* b = start(2 << 20);
  exchange(a, 100);
  exchange(b, 200);
  REQUIRE_OK(xio_finalize(a));
  exchange(b, 300);
  REQUIRE_OK(xio_finalize(b));
  return 0;
}

int heap() {
  xio_world_t* w = start(1 << 20);
  g_pe = xio_my_pe(w);
  const bool first = g_pe == 0;
  void *a = nullptr, *b = nullptr;
  REQUIRE(xio_malloc(w, 2 << 20, &a) == XIO_ERR_NO_MEMORY && says("raise XIO_HEAP_SIZE"));
  REQUIRE(xio_malloc(w, first ? 64 : 2 << 20, &a) == XIO_ERR_NO_MEMORY);
  REQUIRE(xio_malloc(w, first ? 64 : 65, &a) == XIO_ERR_NOT_SYMMETRIC && says("the size is 64 on PE 0 but 65 on PE 1"));
  REQUIRE(a == nullptr);
  REQUIRE_OK(xio_malloc(w, 1000, &a));
  REQUIRE_OK(xio_align(w, 4096, 1000, &b));
  REQUIRE(reinterpret_cast<std::uintptr_t>(b) % 4096 == 0);
  REQUIRE(xio_free(w, first ? a : b) == XIO_ERR_NOT_SYMMETRIC);
  REQUIRE(xio_free(w, first ? a : nullptr) == XIO_ERR_NOT_SYMMETRIC);
  REQUIRE(xio_free(w, first ? a : static_cast<char*>(a) + 1) == XIO_ERR_ARG);
  REQUIRE_OK(xio_free(w, a));
  REQUIRE(xio_free(w, a) == XIO_ERR_STATE && says("freed already"));
  REQUIRE((first ? xio_malloc(w, 64, &a) : xio_host_barrier(w)) == XIO_ERR_STATE && says("same order"));
  REQUIRE_OK(xio_free(w, b));
  REQUIRE_OK(xio_malloc(w, 1 << 20, &a));
  REQUIRE_OK(xio_finalize(w));
  return 0;
}

int mismatch() {
  g_pe = launcher_rank();
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = g_pe == 1 ? 3 << 20 : 2 << 20;
  xio_world_t* w = nullptr;
  REQUIRE(xio_init(&attr, &w) == XIO_ERR_CONFIG && says("'2097152' on PE 0 but '3145728' on PE 1"));
  // Too much for the machine on one PE is an error on all.
  attr.heap_bytes = std::size_t{1} << 40;
  REQUIRE(xio_init(&attr, &w) == XIO_ERR_NO_MEMORY && says("lower XIO_HEAP_SIZE"));
  // One PE's bad variable is told to all.
  if (g_pe == 1) setenv("XIO_ROUTE", "pigeon", 1);
  REQUIRE(xio_init(nullptr, &w) == XIO_ERR_CONFIG && says("XIO_ROUTE='pigeon'"));
  REQUIRE(w == nullptr);
  unsetenv("XIO_ROUTE");
  REQUIRE_OK(xio_finalize(start()));
  return 0;
}

int contexts() {
  xio_world_t* w = start();
  g_pe = xio_my_pe(w);
  const int other = (g_pe + 1) % xio_n_pes(w);
  for (int round = 0; round < 3; ++round)
    for (const auto& [route, name] : {std::pair{XIO_ROUTE_AUTO, "direct"},
                                      {XIO_ROUTE_DIRECT, "direct"},
                                      {XIO_ROUTE_RDMA, "rdma"},
                                      {XIO_ROUTE_SDMA, "sdma"}}) {
      xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
      attr.route = route;
      attr.pool = static_cast<uint32_t>(round);
      xio_ctx_t c{};
      REQUIRE_OK(xio_ctx_create(w, &attr, &c));
      for (const int pe : {g_pe, other}) REQUIRE(std::strcmp(xio_route_name(w, c, 64, pe), name) == 0);
      if (round != 2) REQUIRE_OK(xio_ctx_destroy(w, c));  // the last are finalize's
    }
  exchange(w, 5);
  REQUIRE_OK(xio_finalize(w));
  return 0;
}

using clock = std::chrono::steady_clock;

// XIO_TIMEOUT_MS, and some seconds for a busy machine.
bool in_time(clock::time_point since) {
  const char* limit = std::getenv("XIO_TIMEOUT_MS");
  return clock::now() - since <
         std::chrono::milliseconds(limit != nullptr ? std::atoi(limit) : 30000) + std::chrono::seconds(8);
}

bool is_loss(xio_status_t s) { return s == XIO_ERR_PEER || s == XIO_ERR_TIMEOUT; }

int death_in_init() {
  g_pe = launcher_rank();
  if (g_pe == 1) _exit(0);
  const auto since = clock::now();
  xio_world_t* w = nullptr;
  REQUIRE(is_loss(xio_init(nullptr, &w)));
  REQUIRE(in_time(since) && w == nullptr);
  return 0;
}

int death() {
  xio_world_t* w = start();
  g_pe = xio_my_pe(w);
  xio_ctx_t c{};
  REQUIRE_OK(xio_ctx_create(w, nullptr, &c));
  REQUIRE_OK(xio_host_barrier(w));
  if (g_pe == 1) raise(SIGKILL);
  const auto since = clock::now();
  void* p = nullptr;
  REQUIRE(is_loss(xio_host_barrier(w)));
  REQUIRE(is_loss(xio_malloc(w, 64, &p)));
  REQUIRE(is_loss(xio_ctx_destroy(w, c)));
  REQUIRE(is_loss(xio_finalize(w)));
  REQUIRE(in_time(since));
  std::printf("PE %d survived\n", g_pe);
  return 0;
}

// PE 1 may make no thread while a ctx wants one; the world goes on. Root has no such limit and becomes another user.
int no_thread() {
  xio_world_t* w = start();
  g_pe = xio_my_pe(w);
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_RDMA;
  xio_ctx_t c{};
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_NPROC, &usual) == 0);
  if (g_pe == 1) {
    if (geteuid() == 0) REQUIRE(setresuid(65533, 65533, 65533) == 0);
    const rlimit none{1, usual.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NPROC, &none) == 0);
  }
  REQUIRE(xio_ctx_create(w, &attr, &c) == XIO_ERR_NO_MEMORY && says("no thread could be made") && says("ulimit -u"));
  REQUIRE(g_pe == 1 || says("PE 1: "));
  attr.route = XIO_ROUTE_DIRECT;
  REQUIRE_OK(xio_ctx_create(w, &attr, &c));
  if (g_pe == 1) REQUIRE(setrlimit(RLIMIT_NPROC, &usual) == 0);
  attr.route = XIO_ROUTE_RDMA;
  REQUIRE_OK(xio_ctx_create(w, &attr, &c));
  REQUIRE_OK(xio_host_barrier(w));
  REQUIRE_OK(xio_finalize(w));
  return 0;
}

// Processes that keep their descriptors to themselves: RDMA serves, and a forced direct route is refused with the
// cause.
int not_readable() {
  xio_world_t* w = start();
  g_pe = xio_my_pe(w);
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  xio_ctx_t c{};
  REQUIRE_OK(xio_ctx_create(w, &attr, &c));
  REQUIRE(std::strcmp(xio_route_name(w, c, 64, 1 - g_pe), "rdma") == 0);
  attr.route = XIO_ROUTE_DIRECT;
  REQUIRE(xio_ctx_create(w, &attr, &c) == XIO_ERR_UNSUPPORTED && says("is not dumpable"));
  REQUIRE_OK(xio_finalize(w));
  return 0;
}

// Calls of exit handlers, after the thread_local objects of the thread have ended: statuses and sentences as ever.
void call_at_exit() {
  const auto good = [](bool yes) {
    if (!yes) _exit(3);
  };
  good(xio_finalize(nullptr) == XIO_ERR_ARG && says("world is null"));
  xio_world_t* w = nullptr;
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = "local";
  attr.heap_bytes = 1 << 20;
  good(xio_init(&attr, &w) == XIO_OK && xio_host_barrier(w) == XIO_OK && xio_finalize(w) == XIO_OK);
  good(xio_host_barrier(w) == XIO_ERR_STATE && says("was finalized"));
}

int at_exit() {
  std::atexit(call_at_exit);
  REQUIRE(xio_finalize(nullptr) == XIO_ERR_ARG);
  REQUIRE_OK(xio_finalize(start()));
  REQUIRE(xio_finalize(nullptr) == XIO_ERR_ARG);
  return 0;
}

// A forked child of PE 0 uses the world that it inherited. Its exit() runs the destructors and exit handlers
// of a program that ends, and one of them finalizes the world.
xio_world_t* g_inherited = nullptr;

int child_of_fork() {
  static const struct at_exit {
    ~at_exit() { (void)xio_finalize(g_inherited); }
  } finalizes;
  const auto refused = [](xio_status_t s) { return s == XIO_ERR_STATE && says("was forked"); };
  void* p = nullptr;
  xio_world_t* another = nullptr;
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = "local";
  REQUIRE(refused(xio_host_barrier(g_inherited)));
  REQUIRE(refused(xio_malloc(g_inherited, 64, &p)));
  REQUIRE(refused(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 64, nullptr, &p)));
  REQUIRE(refused(xio_init(&attr, &another)));
  REQUIRE(refused(xio_finalize(g_inherited)));
  REQUIRE(xio_my_pe(g_inherited) == -1 && xio_n_pes(g_inherited) == -1);
  return 0;
}

// PE 0 forks, and comes late to the barrier that its child must not have taken part in.
int fork_children() {
  constexpr auto k_late = std::chrono::milliseconds(700);
  xio_world_t* w = start();
  g_pe = xio_my_pe(w);
  REQUIRE_OK(xio_host_barrier(w));
  const auto since = clock::now();
  if (g_pe == 0) {
    g_inherited = w;
    const pid_t child = fork();
    if (child == 0) std::exit(child_of_fork());
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    std::this_thread::sleep_until(since + k_late);
  }
  REQUIRE_OK(xio_host_barrier(w));
  REQUIRE(clock::now() - since > k_late / 2);
  exchange(w, 9);
  xio_ctx_t c{};
  REQUIRE_OK(xio_ctx_create(w, nullptr, &c));
  REQUIRE_OK(xio_finalize(w));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "life") return life();
  if (mode == "heap") return heap();
  if (mode == "mismatch") return mismatch();
  if (mode == "contexts") return contexts();
  if (mode == "death_in_init") return death_in_init();
  if (mode == "death") return death();
  if (mode == "no_thread") return no_thread();
  if (mode == "not_readable") return not_readable();
  if (mode == "at_exit") return at_exit();
  if (mode == "fork") return fork_children();
  std::fprintf(stderr, "world: unknown mode '%s'\n", mode.c_str());
  return 2;
}
