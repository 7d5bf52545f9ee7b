// SPDX-License-Identifier: MIT
#include "proxy/tcp_handshake.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::proxy::tcp {

namespace {

// One address: a host that swallows packets must not keep the caller from the next.
constexpr std::chrono::seconds k_place_patience{3};
constexpr std::chrono::milliseconds k_between_rounds{100};

}  // namespace

step short_message::receive(int fd, void* to, std::size_t bytes) {
  while (got_ < bytes) {
    const ssize_t n = recv(fd, static_cast<unsigned char*>(to) + got_, bytes - got_, 0);
    if (n > 0)
      got_ += static_cast<std::size_t>(n);
    else if (n < 0 && errno == EINTR)
      continue;
    else
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? step::pending : step::failed;
  }
  got_ = 0;
  return step::done;
}

bool send_short(int fd, const void* from, std::size_t bytes) {
  return send(fd, from, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

// --- Calling -----------------------------------------------------------------------------------------

caller::caller(const tcp_key& key, std::uint32_t me, std::uint32_t them, const identity& target,
               std::vector<place> places)
    : key_(key), me_(me), them_(them), target_(target), places_(std::move(places)), outcomes_(places_.size()) {}

std::string caller::tried() const {
  std::string out;
  for (std::size_t i = 0; i < places_.size(); ++i)
    out += (out.empty() ? "" : ", ") + places_[i].text() + ": " + (outcomes_[i].empty() ? "no reply" : outcomes_[i]);
  return out;
}

step caller::next_place(const std::string& why) {
  if (fd_) {
    log::debug("PE {} does not reply as itself at {}: {}", them_, places_[at_].text(), why);
    heard_ = heard_ || greeted_ || clock::now() > until_;
    fd_ = {};
    outcomes_[at_++] = why;
  }
  for (; at_ < places_.size(); ++at_) {
    int err = 0;
    fd_ = call(places_[at_], err);
    greeted_ = false;
    incoming_ = {};
    until_ = clock::now() + k_place_patience;
    if (fd_) return step::pending;
    outcomes_[at_] = errno_text(err);
  }
  if (!heard_) return step::failed;
  // Silence passes: a process stood still, or had no room for one more visitor.
  at_ = 0;
  heard_ = false;
  until_ = clock::now() + k_between_rounds;
  return step::pending;
}

step caller::go_on() {
  if (clock::now() > until_) return next_place("no reply");
  if (!fd_) return step::pending;
  if (!greeted_) {
    int err = 0;
    const int state = call_state(fd_.get(), err);
    if (state == 0) return step::pending;
    hello_ = make_hello(me_, them_, target_, ephemeral_.emplace());
    if (state < 0) return next_place(errno_text(err));
    if (!send_short(fd_.get(), &hello_, sizeof hello_)) return next_place(errno_text(errno));
    greeted_ = true;
  }
  const step got = incoming_.receive(fd_.get(), &reply_, sizeof reply_);
  if (got == step::pending) return got;
  if (got == step::failed) return next_place("it hangs up");
  if (!is_proven(key_, hello_, reply_) || !agree(key_, hello_, reply_, *ephemeral_, true, session_))
    return next_place("another world or key");
  ephemeral_.reset();
  const proof p = make_proof(key_, hello_, reply_);
  return send_short(fd_.get(), &p, sizeof p) ? step::done : next_place(errno_text(errno));
}

unique_fd caller::take(seal& out, seal& in) {
  out.start(session_.from_caller);
  in.start(session_.from_callee);
  return std::move(fd_);
}

// --- Being called ------------------------------------------------------------------------------------

step visitor::go_on(std::uint32_t me, const identity& mine) {
  if (clock::now() > until_) return step::failed;
  if (!replied_) {
    const step got = incoming_.receive(fd_.get(), &hello_, sizeof hello_);
    // An older caller's hello is shorter: it would be waited for in vain.
    if (incoming_.got() >= k_magic_bytes && !is_hello(hello_)) {
      other_version_ = is_hello_of_another_version(hello_);
      return step::failed;
    }
    if (got != step::done) return got;
    if (!is_hello(hello_) || hello_.callee != me || hello_.caller >= me ||
        std::memcmp(hello_.target, mine.data(), mine.size()) != 0)
      return step::failed;
    try {
      key_ = key_with_(static_cast<int>(hello_.caller));
    } catch (const error& e) {
      log::warn("a call that says it is PE {}'s is refused: {}", hello_.caller, e.what());
      return step::failed;
    }
    reply_ = make_reply(key_, hello_, ephemeral_.emplace());
    if (!send_short(fd_.get(), &reply_, sizeof reply_)) return step::failed;
    replied_ = true;
  }
  const step got = incoming_.receive(fd_.get(), &proof_, sizeof proof_);
  if (got != step::done) return got;
  if (!is_proven(key_, hello_, reply_, proof_) || !agree(key_, hello_, reply_, *ephemeral_, false, session_))
    return step::failed;
  ephemeral_.reset();
  return step::done;
}

unique_fd visitor::take(seal& out, seal& in) {
  out.start(session_.from_callee);
  in.start(session_.from_caller);
  return std::move(fd_);
}

}  // namespace xio::proxy::tcp
