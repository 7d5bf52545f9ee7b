// SPDX-License-Identifier: MIT
// Collective calls of the host to which 1, 3 or 5 of the PEs do not come, PE 0 among them or not: the others get
// XIO_ERR_TIMEOUT within 1.2 times the timeout, and a sentence that says whom they waited for.
#include <xio/team.h>
#include <xio/xio.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int k_timeout_ms = 2000;

struct world {
  xio_world_t* handle = nullptr;
  int me = 0, n = 0;
  void* block = nullptr;
  xio_ctx_t ctx{};
  xio_team_t everybody{};
};

using call = xio_status_t (*)(world&);
struct named_call {
  const char* name;
  call make;
};

xio_team_t team, other_team;
xio_ctx_t made;
void* taken;

xio_status_t team_of_all(world& w) {
  std::vector<int> pes;
  for (int pe = 0; pe < w.n; ++pe) pes.push_back(pe);
  return xio_team_create(w.handle, pes.data(), pes.size(), &team);
}
xio_status_t finalize(world& w) {
  xio_world_t* const last = w.handle;
  w.handle = nullptr;
  return xio_finalize(last);
}

const named_call k_calls[] = {
    {"xio_host_barrier", [](world& w) { return xio_host_barrier(w.handle); }},
    {"xio_malloc", [](world& w) { return xio_malloc(w.handle, 64, &taken); }},
    {"xio_free", [](world& w) { return xio_free(w.handle, w.block); }},
    {"xio_ctx_create", [](world& w) { return xio_ctx_create(w.handle, nullptr, &made); }},
    {"xio_ctx_destroy", [](world& w) { return xio_ctx_destroy(w.handle, w.ctx); }},
    {"xio_ctx_recover", [](world& w) { return xio_ctx_recover(w.handle, w.ctx); }},
    {"xio_team_create", team_of_all},
    {"xio_team_same_local_rank", [](world& w) { return xio_team_same_local_rank(w.handle, &team); }},
    {"xio_team_split_2d", [](world& w) { return xio_team_split_2d(w.handle, w.everybody, 2, &team, &other_team); }},
    {"xio_team_destroy", [](world& w) { return xio_team_destroy(w.handle, w.everybody); }},
    {"xio_finalize", finalize},
};

// Milliseconds by which a thread that does nothing but sleep came late: the machine had other work, and so came the
// call late, too.
class lateness {
 public:
  lateness() : thread_([this] { watch(); }) {}
  ~lateness() {
    over_ = true;
    thread_.join();
  }
  double ms() const { return static_cast<double>(late_us_) / 1000; }

 private:
  void watch() {
    using clock = std::chrono::steady_clock;
    constexpr auto nap = std::chrono::milliseconds(5);
    while (!over_) {
      const auto until = clock::now() + nap;
      std::this_thread::sleep_until(until);
      late_us_ += std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - until).count();
    }
  }

  std::atomic<bool> over_{false};
  std::atomic<long> late_us_{0};
  std::thread thread_;
};

bool set_up(world& w) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 4 << 20;
  attr.timeout_ms = k_timeout_ms;
  if (xio_init(&attr, &w.handle) != XIO_OK) return false;
  w.me = xio_my_pe(w.handle), w.n = xio_n_pes(w.handle);
  return xio_malloc(w.handle, 4096, &w.block) == XIO_OK && xio_ctx_create(w.handle, nullptr, &w.ctx) == XIO_OK &&
         xio_team_world(w.handle, &w.everybody) == XIO_OK;
}

// Returns how much was wrong.
int without(const named_call& c, int absent, bool the_first) {
  using clock = std::chrono::steady_clock;
  world w;
  if (!set_up(w)) return std::fprintf(stderr, "FAIL set-up: %s\n", xio_last_error()), 1;
  const auto begin = clock::now();
  const auto passed = [&] { return std::chrono::duration<double, std::milli>(clock::now() - begin).count(); };
  int wrong = 0;
  if (the_first ? w.me >= absent : w.me < w.n - absent) {
    const lateness late;
    const xio_status_t status = c.make(w);
    const double ms = passed() - late.ms();
    const bool named = std::strstr(xio_last_error(), "rank ") != nullptr;
    if (status != XIO_ERR_TIMEOUT || ms > 1.2 * k_timeout_ms || !named) {
      std::fprintf(stderr, "FAIL PE %d, %s without %d%s: %s after %.0f ms: %s\n", w.me, c.name, absent,
                   the_first ? " from PE 0 on" : "", xio_status_name(status), ms, xio_last_error());
      wrong = 1;
    }
  }
  std::this_thread::sleep_until(begin + std::chrono::milliseconds(2 * k_timeout_ms));
  if (w.handle != nullptr) (void)xio_finalize(w.handle);
  return wrong;
}

}  // namespace

int main() {
  int checks = 0, failed = 0;
  for (const named_call& c : k_calls)
    for (const int absent : {1, 3, 5})
      for (const bool the_first : {false, true}) ++checks, failed += without(c, absent, the_first);
  std::printf("absent: %d calls, %d failed\n", checks, failed);
  return failed == 0 ? 0 : 1;
}
