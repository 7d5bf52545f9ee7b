// SPDX-License-Identifier: MIT
#include "tools/xiorun/output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace xio::run {
namespace {

constexpr std::size_t k_line_max = std::size_t{64} << 20;  // a longer line is passed on in pieces

// O_NONBLOCK belongs to the open file, which the shell and others share, so it is set on one of our own. Pipes and
// terminals can be opened once more; what cannot, for the lack of rights or being a socket, is polled alone.
int open_again(int fd) {
  struct stat s;
  if (fstat(fd, &s) != 0 || (!S_ISFIFO(s.st_mode) && isatty(fd) == 0)) return -1;
  const auto path = "/proc/self/fd/" + std::to_string(fd);
  return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

sink::sink(int fd) : fd_(fd), own_(open_again(fd)) {}

void sink::put(std::string_view text) {
  if (reader_gone_) return;
  text_.append(text);
  write_some();
}

void sink::drop() {
  text_.clear();
  sent_ = 0;
}

bool sink::takes_some() const {
  pollfd p{fd(), POLLOUT, 0};
  return poll(&p, 1, 0) > 0;
}

// A pipe that is ready takes PIPE_BUF bytes without waiting, and keeps them together, pipe(7): so whole lines where
// they fit.
std::size_t sink::next_piece() const {
  const auto left = std::string_view(text_).substr(sent_, PIPE_BUF);
  const auto end = left.rfind('\n');
  return end == std::string_view::npos ? left.size() : end + 1;
}

void sink::write_some() {
  while (waiting() > 0 && takes_some()) {
    const ssize_t n = write(fd(), text_.data() + sent_, next_piece());
    if (n >= 0) {
      sent_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      error_ = errno;
      reader_gone_ = true;
      drop();
    }
  }
  if (waiting() == 0) drop();
}

bool same_file(int one, int other) {
  struct stat a, b;
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
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
