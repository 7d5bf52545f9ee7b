// SPDX-License-Identifier: MIT
#include "config.h"

#ifdef HAVE_UCX
#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.hpp"
#include "bootstrap/ucx_library.hpp"

namespace xio::bootstrap {

#define XIO_DEFINE(name) decltype(&::name) name = nullptr;
XIO_UCX_FUNCTIONS(XIO_DEFINE)
#undef XIO_DEFINE

namespace {

constexpr const char* k_library = "libucp.so.0";  // UCX's one binary interface since 1.0

// The signal handlers of the process, as they were.
class kept_handlers {
 public:
  kept_handlers() {
    for (std::size_t i = 0; i < all_.size(); ++i)
      known_[i] = sigaction(static_cast<int>(i) + 1, nullptr, &all_[i]) == 0;
  }
  kept_handlers(const kept_handlers&) = delete;
  kept_handlers& operator=(const kept_handlers&) = delete;
  ~kept_handlers() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const int signal = static_cast<int>(i) + 1;
      struct sigaction now {};
      if (known_[i] && sigaction(signal, nullptr, &now) == 0 && now.sa_handler != all_[i].sa_handler)
        sigaction(signal, &all_[i], nullptr);
    }
  }

 private:
  std::array<struct sigaction, 64> all_{};
  std::array<bool, 64> known_{};
};

void* open_library() {
  if (std::getenv("UCX_HANDLE_ERRORS") != nullptr) return dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
  const kept_handlers keep;
  return dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
void find(void* library, const char* name, Function& out) {
  void* found = dlsym(library, name);
  if (found == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "the UCX bootstrap: {} has no function {}; install the UCX that libxio was built with, {}.{} or newer, or "
         "choose "
         "another XIO_BOOTSTRAP",
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
