// SPDX-License-Identifier: MIT
#include "config.h"

#ifdef HAVE_UCX
#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "base/error.hpp"
#include "base/kept_handlers.hpp"
#include "bootstrap/ucx_library.hpp"

namespace xio::bootstrap {

#define XIO_DEFINE(name) decltype(&::name) name = nullptr;
XIO_UCX_FUNCTIONS(XIO_DEFINE)
#undef XIO_DEFINE

namespace {

constexpr const char* k_library = "libucp.so.0";  // UCX's one binary interface since 1.0

void* open_library() {
  const kept_handlers keep(kept_handlers::which::all);
  return dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
void find(void* library, const char* name, Function& out) {
  void* found = dlsym(library, name);
  if (found == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "the UCX bootstrap: {} has no function {}; install the UCX that libxio was built with, {}.{} or newer, or "
         "choose another XIO_BOOTSTRAP",
         k_library, name, UCP_API_MAJOR, UCP_API_MINOR);
  std::memcpy(&out, &found, sizeof out);
}

}  // namespace

// Never unloaded: UCX leaves hooks of its own in the process.
void load_ucx() {
  static std::mutex lock;
  static bool loaded = false;
  const std::lock_guard hold(lock);
  if (loaded) return;
  void* library = open_library();
  if (library == nullptr) {
    const char* why = dlerror();
    fail(XIO_ERR_UNSUPPORTED,
         "the UCX bootstrap cannot load {}: {}; install UCX (on Debian libucx0), or choose another XIO_BOOTSTRAP",
         k_library, why != nullptr ? why : "no reason given");
  }
#define XIO_FIND(name) find(library, #name, name);
  XIO_UCX_FUNCTIONS(XIO_FIND)
#undef XIO_FIND
  loaded = true;
}

}  // namespace xio::bootstrap

#endif
