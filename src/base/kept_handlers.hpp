// SPDX-License-Identifier: MIT
// The signal handlers of the process, put back as they were when an object goes: UCX, which MPIs load as well, takes
// over those of faults when it is loaded. Where the user has set UCX_HANDLE_ERRORS, what UCX does stays.
#pragma once
#include <signal.h>

#include <array>
#include <cstdlib>

namespace xio {

class kept_handlers {
 public:
  // all: nothing that is loaded may change one; always: the same, also where the user has set that variable. program:
  // faults that the program handles itself stay its own, and all else is for the one that is called to choose.
  enum class which { all, program, always };
  explicit kept_handlers(which kept) {
    if (kept != which::always && std::getenv("UCX_HANDLE_ERRORS") != nullptr) return;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const int signal = static_cast<int>(i) + 1;
      known_[i] = sigaction(signal, nullptr, &all_[i]) == 0 &&
                  (kept != which::program || (is_fault(signal) && all_[i].sa_handler != SIG_DFL));
    }
  }
  kept_handlers& operator=(kept_handlers&&) = delete;
  ~kept_handlers() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const int signal = static_cast<int>(i) + 1;
      struct sigaction now {};
      if (known_[i] && sigaction(signal, nullptr, &now) == 0 && now.sa_handler != all_[i].sa_handler)
        sigaction(signal, &all_[i], nullptr);
    }
  }

 private:
  static bool is_fault(int s) { return s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL || s == SIGHUP; }
  std::array<struct sigaction, 64> all_{};
  std::array<bool, 64> known_{};
};

}  // namespace xio
