// SPDX-License-Identifier: MIT
#include "proxy/tcp_handshake.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::proxy::tcp {

namespace {

// One address that takes the call: a host that then says nothing must not keep the caller from the next.
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
               std::vector<socket_address> places, bool trust_network)
    : key_(key),
      me_(me),
      them_(them),
      target_(target),
      trust_network_(trust_network),
      race_(std::move(places)),
      outcomes_(race_.addresses().size()) {}

std::string caller::tried() const {
  std::string out;
  for (std::size_t i = 0; i < outcomes_.size(); ++i)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", race_.addresses()[i].text(),
                       outcomes_[i].empty() ? race_.error_text_of(i) : outcomes_[i]);
  return out;
}

step caller::give_up_place(const std::string& why) {
  log::debug("PE {} does not reply as itself at {}: {}", them_, race_.addresses()[race_.which()].text(), why);
  outcomes_[race_.which()] = why;
  fd_ = {};
  until_ = clock::now();
  return step::pending;
}

// Pending, or failed: nobody listens at any of the addresses.
step caller::connect() {
  if (clock::now() < until_) return step::pending;
  switch (race_.step()) {
    case connect_race::state::running: return step::pending;
    case connect_race::state::over:
      // Silence passes: a process stood still, or had no room for one more visitor, or the network was away.
      if (!heard_ && !race_.may_pass()) return step::failed;
      race_.begin_round();
      heard_ = false;
      until_ = clock::now() + k_between_rounds;
      return step::pending;
    case connect_race::state::connected: break;
  }
  fd_ = race_.take();
  tune(fd_.get());
  heard_ = true;
  incoming_ = {};
  until_ = clock::now() + k_place_patience;
  hello_ = make_hello(me_, them_, target_, ephemeral_.emplace());
  return send_short(fd_.get(), &hello_, sizeof hello_) ? step::pending : give_up_place(errno_text(errno));
}

step caller::go_on() {
  if (!fd_) return connect();
  if (clock::now() > until_) return give_up_place("no reply");
  const step got = incoming_.receive(fd_.get(), &reply_, sizeof reply_);
  if (got == step::pending) return got;
  if (got == step::failed) return give_up_place("it hangs up");
  if (const auto why = crypto::why_not_trusted(fd_.get(), trust_network_); !why.empty()) {
    give_up_place(why);
    return step::failed;
  }
  if (!is_proven(key_, hello_, reply_) || !agree(key_, hello_, reply_, *ephemeral_, true, session_))
    return give_up_place("another world or key");
  ephemeral_.reset();
  const proof p = make_proof(key_, hello_, reply_);
  return send_short(fd_.get(), &p, sizeof p) ? step::done : give_up_place(errno_text(errno));
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
    if (const auto why = crypto::why_not_trusted(fd_.get(), trust_network_); !why.empty()) {
      log::warn("a call that says it is PE {}'s is refused: {}", hello_.caller, why);
      return step::failed;
    }
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
