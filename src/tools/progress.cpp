// SPDX-License-Identifier: MIT
#include "tools/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "tools/size_text.hpp"

namespace xio::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto k_terminal_pause = 250ms;
constexpr auto k_log_pause = 10s;
constexpr auto k_log_pause_max = 600s;

std::string time_left(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

}  // namespace

progress::progress(std::string what, std::string unit, std::uint64_t total, std::uint64_t bytes_each)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      bytes_each_(bytes_each),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(clock::now()),
      pause_(terminal_ ? clock::duration(k_terminal_pause) : clock::duration(k_log_pause)) {
  next_ = start_ + (terminal_ ? clock::duration(1s) : pause_);
}

void progress::clear() {
  if (terminal_ && shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

std::string progress::line(std::uint64_t done, double seconds) const {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = what_ + ":";
  if (total_ != 0)
    text += fmt::format(" {:.0f}% {}/{} {}", 100.0 * static_cast<double>(done) / static_cast<double>(total_), done,
                        total_, unit_);
  else
    text += fmt::format(" {} {}", done, unit_);
  text += fmt::format(", {:.0f} {}/s", rate, unit_);
  if (bytes_each_ != 0) text += ", " + rounded_size(rate * static_cast<double>(bytes_each_)) + "/s";
  if (total_ != 0 && rate > 0 && done <= total_) text += ", " + time_left(static_cast<double>(total_ - done) / rate);
  return text;
}

void progress::update(std::uint64_t done, clock::time_point now) {
  if (now < next_) return;
  const std::string text = line(done, std::chrono::duration<double>(now - start_).count());
  if (terminal_) {
    std::fprintf(stderr, "\r%s\033[K", text.c_str());
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
    // A night's log need not be a long one.
    if (pause_ < k_log_pause_max) pause_ += pause_ / 2;
  }
  std::fflush(stderr);
  shown_ = true;
  next_ = now + pause_;
}

}  // namespace xio::tools
