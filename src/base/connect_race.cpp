// SPDX-License-Identifier: MIT
#include "base/connect_race.hpp"

#include <algorithm>
#include <cerrno>

#include "base/descriptors.hpp"
#include "base/error.hpp"

namespace xio {
namespace {

constexpr std::chrono::milliseconds k_apart_least{10};  // RFC 8305 section 5

std::chrono::milliseconds apart_for(std::size_t addresses) {
  if (addresses < 2) return connect_race::k_apart;
  const auto share = connect_race::k_all_begun / static_cast<int>(std::min<std::size_t>(addresses - 1, 1000));
  return std::clamp(share, k_apart_least, connect_race::k_apart);
}

// The addresses that this machine has no way to, or that it cannot use at all.
bool says_no_way(int err) {
  return err == ENETUNREACH || err == EADDRNOTAVAIL || err == EAFNOSUPPORT || err == EACCES || err == EPERM;
}

}  // namespace

connect_race::connect_race(std::vector<socket_address> where)
    : where_(std::move(where)), apart_(apart_for(where_.size())), errors_(where_.size()) {
  begin_round();
}

void connect_race::begin_round() {
  running_.clear();
  waiting_.clear();
  for (std::size_t i = 0; i < where_.size(); ++i) waiting_.push_back(i);
  next_ = run_clock::now();
}

// The others are dropped, so that the host there sees one connection. They come next, should this one be of no use.
void connect_race::win(attempt& a) {
  which_ = a.which;
  won_ = std::move(a.fd);
  errors_[which_] = 0;
  for (auto i = running_.rbegin(); i != running_.rend(); ++i)
    if (i->which != which_) waiting_.push_front(i->which);
  running_.clear();
  next_ = run_clock::now();
}

void connect_race::begin_next() {
  int err = 0;
  unique_fd fd = stream_socket(where_[waiting_.front()].family(), err);
  next_ = std::max(next_, run_clock::now() - apart_) + apart_;  // a busy machine does not delay all that follow
  if (no_descriptor(err) && !running_.empty()) return;          // those have some
  attempt a{waiting_.front(), std::move(fd), run_clock::now() + k_attempt};
  waiting_.pop_front();
  if (err == 0 && connect(a.fd.get(), where_[a.which].get(), where_[a.which].length) != 0) err = errno;
  if (err == 0 || err == EINPROGRESS || err == EINTR) {
    running_.push_back(std::move(a));
  } else {
    fail(a.which, err);
    next_ = run_clock::now();
  }
}

// False: it has failed.
bool connect_race::look_at(attempt& a, short events) {
  if (events == 0) {
    if (run_clock::now() < a.until) return true;
    fail(a.which, ETIMEDOUT);
    return false;
  }
  int err = 0;
  socklen_t length = sizeof err;
  if (getsockopt(a.fd.get(), SOL_SOCKET, SO_ERROR, &err, &length) != 0) err = errno;
  // With both ends on one host and nobody listening, TCP may connect a socket to itself.
  if (err == 0 && bound_address(a.fd.get()) == where_[a.which]) err = ECONNREFUSED;
  if (err == 0) return true;
  fail(a.which, err);
  next_ = run_clock::now();
  return false;
}

connect_race::state connect_race::step() {
  while (!waiting_.empty() && run_clock::now() >= next_) {
    const std::size_t before = running_.size();
    begin_next();
    if (running_.size() > before) break;
  }
  std::vector<pollfd> polled;
  add_to(polled);
  poll(polled.data(), polled.size(), 0);
  for (std::size_t i = 0; i < running_.size();) {
    if (!look_at(running_[i], polled[i].revents)) {
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      polled.erase(polled.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (polled[i++].revents != 0) {
      win(running_[i - 1]);
      return state::connected;
    }
  }
  return running_.empty() && waiting_.empty() ? state::over : state::running;
}

void connect_race::add_to(std::vector<pollfd>& polled) const {
  for (const attempt& a : running_) polled.push_back({a.fd.get(), POLLOUT, 0});
}

int connect_race::poll_ms(int most) const {
  auto due = run_clock::now() + std::chrono::milliseconds(most);
  if (!waiting_.empty()) due = std::min(due, next_);
  for (const attempt& a : running_) due = std::min(due, a.until);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - run_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, most));
}

bool connect_race::refused() const {
  const bool one = std::ranges::find(errors_, ECONNREFUSED) != errors_.end();
  return one && std::ranges::all_of(errors_, [](int err) { return err == ECONNREFUSED || says_no_way(err); });
}

bool connect_race::may_pass() const {
  return std::ranges::any_of(
      errors_, [](int err) { return err == ETIMEDOUT || err == EHOSTUNREACH || err == EHOSTDOWN || err == ENETDOWN; });
}

std::string connect_race::error_text_of(std::size_t i) const {
  return errors_[i] == 0 || errors_[i] == ETIMEDOUT ? "no reply" : errno_text(errors_[i]);
}

std::string connect_race::errors() const {
  if (where_.size() == 1) return error_text_of(0);
  std::string out;
  for (std::size_t i = 0; i < where_.size(); ++i)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", where_[i].text(), error_text_of(i));
  return out;
}

}  // namespace xio
