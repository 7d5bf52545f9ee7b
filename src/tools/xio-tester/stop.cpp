// SPDX-License-Identifier: MIT
#include "tools/xio-tester/stop.hpp"

#include <time.h>
#include <unistd.h>
#include <csignal>

#include <atomic>

#include "tools/xio-tester/settings.hpp"

namespace xio::tester {
namespace {

std::atomic<std::uint32_t*> word_to_set{nullptr};
std::atomic<std::int64_t> came_at{0};  // 0: not yet
static_assert(std::atomic<std::uint32_t*>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// A program that ends a job often signals the process and its group, at once: a person means one signal.
constexpr std::int64_t k_same_press_ms = 300;

std::int64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

void on_signal(int) {
  const std::int64_t now = now_ms();
  std::int64_t first = 0;
  if (!came_at.compare_exchange_strong(first, now)) {
    if (now - first > k_same_press_ms) _exit(k_exit_interrupted);
    return;
  }
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

bool was_interrupted() { return came_at != 0; }

}  // namespace xio::tester
