// SPDX-License-Identifier: MIT
// What a world costs: seconds of xio_init and xio_ctx_create, and memory per PE and per ctx.
//
//   xiorun -n 32 bench/init [CONTEXTS]       (or mpirun -np N)
//
// Memory is what the process has resident and does not share with files (host and, on the host platform, device
// memory); the symmetric heap counts only where it was touched. PE 0 prints the mean and the worst over the PEs.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "xio/xio.h"

namespace {

struct numbers {
  double init_s, ctx_s[3];
  double world_bytes, ctx_bytes[3];
};

void check(xio_status_t s, const char* what) {
  if (s == XIO_OK) return;
  std::fprintf(stderr, "init: %s: %s: %s\n", what, xio_status_name(s), xio_last_error());
  std::exit(1);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// mallinfo(3): bytes in use of every arena, and in mappings of their own.
double allocated_bytes() {
  const auto m = mallinfo2();
  return static_cast<double>(m.uordblks + m.hblkhd);
}

// The first ctx of a route also opens its engine, so it is not counted.
void measure(xio_world_t* w, int route, int count, numbers& n) {
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = static_cast<xio_route_t>(route + 1);
  xio_ctx_t first{};
  if (const xio_status_t s = xio_ctx_create(w, &attr, &first); s != XIO_OK) {
    if (xio_my_pe(w) == 0) std::fprintf(stderr, "init: left out: %s\n", xio_last_error());
    return;
  }
  std::vector<xio_ctx_t> all(static_cast<std::size_t>(count));
  const double bytes = allocated_bytes(), start = now();
  for (auto& c : all) check(xio_ctx_create(w, &attr, &c), "xio_ctx_create");
  n.ctx_s[route] = (now() - start) / count;
  n.ctx_bytes[route] = (allocated_bytes() - bytes) / count;
  for (const auto& c : all) check(xio_ctx_destroy(w, c), "xio_ctx_destroy");
  check(xio_ctx_destroy(w, first), "xio_ctx_destroy");
}

template <class Field>
void print(const std::string& what, const std::vector<numbers>& all, Field&& field) {
  double sum = 0, worst = 0;
  for (const auto& n : all) {
    sum += field(n);
    worst = std::max(worst, field(n));
  }
  std::printf("  %-28s mean %12.6g  worst %12.6g\n", what.c_str(), sum / static_cast<double>(all.size()), worst);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 8;
  if (count < 1 || count > 1000) {
    std::fprintf(stderr, "init: CONTEXTS must be 1 to 1000\n");
    return 2;
  }
  numbers mine{};
  const double bytes = allocated_bytes();
  double start = now();
  xio_world_t* w = nullptr;
  check(xio_init(nullptr, &w), "xio_init");
  mine.init_s = now() - start;
  mine.world_bytes = allocated_bytes() - bytes;
  const int me = xio_my_pe(w), n = xio_n_pes(w);
  for (int route = 0; route < 3; ++route) measure(w, route, count, mine);

  // The PEs' numbers are collected in PE 0's heap.
  void* block = nullptr;
  check(xio_calloc(w, static_cast<std::size_t>(n), sizeof(numbers), &block), "xio_calloc");
  auto* home = static_cast<numbers*>(xio_ptr(w, block, 0));
  if (home == nullptr) {
    std::fprintf(stderr, "init: PE 0 is on another machine; run all PEs on one\n");
    return 1;
  }
  home[me] = mine;
  check(xio_host_barrier(w), "xio_host_barrier");
  start = now();
  for (int i = 0; i < 100; ++i) check(xio_host_barrier(w), "xio_host_barrier");
  const double barrier = (now() - start) / 100;
  if (me == 0) {
    const std::vector<numbers> all(home, home + n);
    std::printf("init: %d PEs, %d contexts per route\n", n, count);
    print("xio_init, s", all, [](const numbers& x) { return x.init_s; });
    print("world, bytes per PE", all, [](const numbers& x) { return x.world_bytes; });
    const char* const names[] = {"direct", "rdma", "sdma"};
    for (int r = 0; r < 3; ++r) {
      if (all[0].ctx_s[r] == 0) continue;
      const std::string ctx = std::string("ctx ") + names[r];
      print(ctx + ", s", all, [r](const numbers& x) { return x.ctx_s[r]; });
      print(ctx + ", bytes per PE", all, [r](const numbers& x) { return x.ctx_bytes[r]; });
    }
    std::printf("  %-28s      %12.6g\n", "host barrier, s", barrier);
  }
  check(xio_host_barrier(w), "xio_host_barrier");
  check(xio_free(w, block), "xio_free");
  start = now();
  check(xio_finalize(w), "xio_finalize");
  if (me == 0) std::printf("  %-28s      %12.6g\n", "xio_finalize, s", now() - start);
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
