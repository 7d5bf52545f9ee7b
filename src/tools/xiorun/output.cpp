// SPDX-License-Identifier: MIT
#include "tools/xiorun/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace xio::run {

namespace {
constexpr std::size_t k_line_max = 64 * 1024;  // a longer line is passed on in pieces
}

tagged_output::tagged_output(int pe, int from, int to) : tag_("[" + std::to_string(pe) + "] "), from_(from), to_(to) {}

tagged_output::tagged_output(tagged_output&& other) noexcept
    : tag_(std::move(other.tag_)),
      line_(std::move(other.line_)),
      from_(std::exchange(other.from_, -1)),
      to_(other.to_),
      reader_gone_(other.reader_gone_) {}

tagged_output::~tagged_output() {
  if (from_ >= 0) close(from_);
}

bool tagged_output::pass_on() {
  char buffer[16 * 1024];
  const ssize_t n = read(from_, buffer, sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n > 0) line_.append(buffer, static_cast<std::size_t>(n));
  write_lines(n <= 0);
  return n > 0 && !reader_gone_;
}

void tagged_output::write_lines(bool all) {
  std::size_t from = 0;
  for (auto end = line_.find('\n'); end != std::string::npos; end = line_.find('\n', from)) {
    write_line(line_.data() + from, end - from);
    from = end + 1;
  }
  line_.erase(0, from);
  if (!line_.empty() && (all || line_.size() >= k_line_max)) {
    write_line(line_.data(), line_.size());
    line_.clear();
  }
}

void tagged_output::write_line(const char* text, std::size_t length) {
  std::string whole = tag_;
  whole.append(text, length).push_back('\n');
  for (std::size_t sent = 0; sent < whole.size() && !reader_gone_;) {
    const ssize_t n = write(to_, whole.data() + sent, whole.size() - sent);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd p{to_, POLLOUT, 0};
      poll(&p, 1, 1000);
    } else if (errno != EINTR) {
      reader_gone_ = true;
    }
  }
}

}  // namespace xio::run
