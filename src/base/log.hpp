// SPDX-License-Identifier: MIT
// The one log. Lines go to standard error through spdlog, prefixed with the PE once it is known.
// XIO_LOG_LEVEL=error|warn|info|debug|trace (default warn).
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace xio::log {

enum class level { error, warn, info, debug, trace };

void set_level(level most);
bool enabled(level l);
void set_pe(int pe);
void write(level l, std::string_view line);

template <class... Args>
void line(level l, fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(l)) write(l, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  line(level::error, text, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  line(level::warn, text, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  line(level::info, text, std::forward<Args>(args)...);
}
template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  line(level::debug, text, std::forward<Args>(args)...);
}

}  // namespace xio::log
