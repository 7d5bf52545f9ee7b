// SPDX-License-Identifier: MIT
#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <string>

namespace xio::log {
namespace {

std::atomic<int> g_most{static_cast<int>(level::warn)};

spdlog::logger& logger() {
  // Leaked on purpose: destructors of other statics may still log.
  static spdlog::logger* one = [] {
    auto* l = new spdlog::logger("xio", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    l->set_level(spdlog::level::trace);
    l->flush_on(spdlog::level::trace);
    l->set_pattern("xio %^%l%$: %v");
    return l;
  }();
  return *one;
}

spdlog::level::level_enum to_spdlog(level l) {
  switch (l) {
    case level::error: return spdlog::level::err;
    case level::warn: return spdlog::level::warn;
    case level::info: return spdlog::level::info;
    case level::debug: return spdlog::level::debug;
    case level::trace: break;
  }
  return spdlog::level::trace;
}

}  // namespace

void set_level(level most) { g_most.store(static_cast<int>(most), std::memory_order_relaxed); }
bool enabled(level l) { return static_cast<int>(l) <= g_most.load(std::memory_order_relaxed); }
void set_pe(int pe) { logger().set_pattern("xio " + std::to_string(pe) + " %l: %v"); }
void write(level l, std::string_view text) {
  logger().log(to_spdlog(l), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace xio::log
