// SPDX-License-Identifier: MIT
// Ctrl-C: the first asks the kernel to come to an end, so that there is a summary; the second ends the program.
#pragma once
#include <cstdint>

namespace xio::tester {

// While one lives, SIGINT and SIGTERM set the word, which the kernel looks at. One at a time.
class stop_on_signal {
 public:
  explicit stop_on_signal(std::uint32_t* word);
  ~stop_on_signal();
  stop_on_signal& operator=(stop_on_signal&&) = delete;
};

// Whether a signal came, at any time.
bool was_interrupted();

}  // namespace xio::tester
