// SPDX-License-Identifier: MIT
#include "tools/xio-tester/stop.hpp"

#include <unistd.h>
#include <csignal>

#include <atomic>

#include "tools/xio-tester/settings.hpp"

namespace xio::tester {

namespace {

std::atomic<std::uint32_t*> word_to_set{nullptr};
std::atomic<bool> came{false};
static_assert(std::atomic<std::uint32_t*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  if (came.exchange(true)) _exit(k_exit_interrupted);
  if (std::uint32_t* word = word_to_set.load()) __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
}

void handle(void (*how)(int)) {
  struct sigaction action {};
  action.sa_handler = how;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace

stop_on_signal::stop_on_signal(std::uint32_t* word) {
  word_to_set = word;
  handle(on_signal);
}

stop_on_signal::~stop_on_signal() {
  handle(SIG_DFL);
  word_to_set = nullptr;
}

bool was_interrupted() { return came; }

}  // namespace xio::tester
