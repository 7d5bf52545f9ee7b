// SPDX-License-Identifier: MIT
// The orders of a test to a fake hipFile or cuFile, and the calls that it has seen.
#pragma once
#include <atomic>

struct fake_files {
  int open = 0, file = 0, buffer = 0;  // codes that these calls return; 0: well
  std::atomic<int> moves{0};           // reads and writes that go wrong
  long how = 0;                        // -errno, a code below -5000, or the bytes of a short one
  unsigned major = 0;
  std::atomic<int> drivers{0}, files{0}, buffers{0}, reads{0}, writes{0};  // open ones, calls
  std::atomic<const char*> wrong{nullptr};                                 // the first rule that was broken
};
