// SPDX-License-Identifier: MIT
// The model's log, here without the library's: a preloaded library brings as little as it can into other programs.
// XIO_SIM_NAME is of the machine that it is compiled for.
#include <cstdio>

#include "base/log.hpp"
#include "base/sleeper.hpp"
#include "base/trace.hpp"

namespace xio::log {

bool enabled(level l) { return l <= level::warn; }
void write(level, std::string_view line) {
  std::fprintf(stderr, XIO_SIM_NAME ": %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace xio::log

// Its threads do not sleep by the library's words.
void xio::wake_sleepers() {}

// No spans of time are kept.
std::atomic<bool> xio::trace::g_on{false};
void xio::trace::keep(const span&, std::uint64_t) noexcept {}
