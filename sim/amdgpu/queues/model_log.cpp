// SPDX-License-Identifier: MIT
// The model's log, here without the library's: a preloaded library brings as little as it can into other programs.
#include <cstdio>

#include "base/log.hpp"
#include "base/sleeper.hpp"

namespace xio::log {

bool enabled(level l) { return l <= level::warn; }
void write(level, std::string_view line) {
  std::fprintf(stderr, "software AMD GPU: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace xio::log

// Its threads do not sleep by the library's words.
void xio::wake_sleepers() {}
