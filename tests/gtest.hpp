// SPDX-License-Identifier: MIT
// GoogleTest, and what most tests take from the standard library and the kernel: GoogleTest reads nearly all of it
// anyway.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "each.hpp"

namespace xio::test {

// Runs body(0) to body(count - 1) in threads of their own, and waits for all of them.
template <class Count = int, class Body>
void at_once(Count count, Body&& body) {
  std::vector<std::thread> threads;
  for (Count i = 0; i < count; ++i) threads.emplace_back([&, i] { body(i); });
  for (auto& t : threads) t.join();
}

// Runs body in a child of this process: its result, which the child exits with, or 1000 and the signal that ended it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace xio::test

// EXPECT_PAIRS((got, wanted), ...): EXPECT_EQ(got, wanted) of each, for fields of one thing and numbers of one table.
#define EXPECT_PAIRS(...) XIO_EACH(EXPECT_EQ, __VA_ARGS__)
