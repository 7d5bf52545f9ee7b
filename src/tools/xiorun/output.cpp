// SPDX-License-Identifier: MIT
#include "tools/xiorun/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace xio::run {
namespace {
constexpr std::size_t k_line_max = std::size_t{64} << 20;  // a longer line is passed on in pieces
}

tagged_output::tagged_output(std::string tag, int from, sink& to, line_filter keeps)
    : keeps_(std::move(keeps)), tag_(std::move(tag)), from_(from), to_(&to) {}

void tagged_output::pass_on() {
  char buffer[16 * 1024];
  const ssize_t n = read(from_.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  const std::size_t before = line_.size();
  if (n > 0) line_.append(buffer, static_cast<std::size_t>(n));
  ended_ = n <= 0;
  write_lines(before, ended_);
}

std::string tagged_output::tagged(std::size_t from, std::size_t length) const {
  return tag_ + line_.substr(from, length) + '\n';
}

void tagged_output::write_lines(std::size_t looked_at, bool all) {
  std::string lines;
  std::size_t from = 0;
  for (auto end = line_.find('\n', looked_at); end != std::string::npos; end = line_.find('\n', from)) {
    if (!keeps_ || !keeps_(std::string_view(line_).substr(from, end - from))) lines += tagged(from, end - from);
    from = end + 1;
  }
  line_.erase(0, from);
  if (!line_.empty() && (all || line_.size() >= k_line_max)) {
    lines += tagged(0, line_.size());
    line_.clear();
  }
  to_->put(lines);
}

}  // namespace xio::run
