// SPDX-License-Identifier: MIT
// A program that loads libxio late: library_load LIBRARY [BOOTSTRAP]. Its signal handlers stay its own, when the
// library is loaded and when a world is made, and nothing of UCX is loaded unless BOOTSTRAP is ucx.
#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "xio/xio.h"

namespace {

constexpr int k_signals = 64;
constexpr int k_mine[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGUSR1, SIGXFSZ};

void handler(int) {}

using handlers = std::array<void (*)(int), k_signals>;
handlers installed() {
  handlers all{};
  for (int s = 1; s < k_signals; ++s) {
    struct sigaction now {};
    if (sigaction(s, nullptr, &now) == 0) all[static_cast<std::size_t>(s)] = now.sa_handler;
  }
  return all;
}

int expect_unchanged(const handlers& before, const char* when) {
  int changed = 0;
  const handlers now = installed();
  for (std::size_t s = 1; s < now.size(); ++s)
    if (now[s] != before[s]) {
      std::fprintf(stderr, "library_load: the handler of signal %zu is another %s\n", s, when);
      ++changed;
    }
  return changed;
}

bool is_loaded(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

template <class Function>
Function* found(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string bootstrap = argc > 2 ? argv[2] : "local";
  for (const int s : k_mine) signal(s, handler);
  const handlers before = installed();
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "library_load: %s\n", dlerror());
    return 2;
  }
  int failures = expect_unchanged(before, "after dlopen");
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = bootstrap.c_str();
  attr.heap_bytes = 1 << 20;
  xio_world_t* world = nullptr;
  if (found<decltype(xio_init)>(library, "xio_init")(&attr, &world) != XIO_OK) {
    std::fprintf(stderr, "library_load: xio_init: %s\n", found<decltype(xio_last_error)>(library, "xio_last_error")());
    return 1;
  }
  failures += expect_unchanged(before, "after xio_init");
  if (is_loaded("/libucp.so") != (bootstrap == "ucx")) {
    std::fprintf(stderr, "library_load: UCX is%s loaded with the bootstrap %s\n", bootstrap == "ucx" ? " not" : "",
                 bootstrap.c_str());
    ++failures;
  }
  if (found<decltype(xio_finalize)>(library, "xio_finalize")(world) != XIO_OK) ++failures;
  return failures != 0 ? 1 : 0;
}
