// SPDX-License-Identifier: MIT
#include "proxy/tcp_link.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <bit>
#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::proxy::tcp {

namespace {

constexpr std::size_t k_in_bytes = 512 << 10;
constexpr std::uint64_t k_turn_bytes = 1 << 20;
constexpr int k_vector = 16;
constexpr std::uint64_t k_backlog_most = 64 << 20;
constexpr std::chrono::milliseconds k_poll_period{5};
// Nothing overtakes what the kernel holds and has not sent: as much as goes in this time, within limits. While half of
// it waits for the kernel, queue pairs stand in line.
constexpr std::chrono::milliseconds k_unsent_time{10};
constexpr std::uint64_t k_unsent_least = 128 << 10, k_unsent_most = 4 << 20;
// Buffers of each kind that all links together keep.
constexpr std::size_t k_spare = 16;
// A frame to be overtaken goes anyway if none follows.
constexpr std::chrono::milliseconds k_swap_patience{1};
static_assert(k_in_bytes >= 2 * k_record_max && k_record_max % 8 == 0);

}  // namespace

link::link(int pe, clock::time_point until, frame_faults* faults, link_room& room)
    : pe_(pe), until_(until), faults_(faults), room_(room) {}

void link::open(unique_fd fd, const session& keys, bool is_caller) {
  fd_ = std::move(fd);
  out_seal_.start(is_caller ? keys.from_caller : keys.from_callee);
  in_seal_.start(is_caller ? keys.from_callee : keys.from_caller);
  go_up();
}

void link::go_up() {
  state_ = state::up;
  if (!room_.ready) return;
  epoll_event wanted{EPOLLIN, {.ptr = this}};
  if (epoll_ctl(room_.ready.get(), EPOLL_CTL_ADD, fd_.get(), &wanted) != 0)
    lose(fmt::format("its socket cannot be polled: {}", errno_text(errno)));
}

// Closing alone leaves the socket in the epoll instance while a forked child holds it, and with it a pointer to this
// link.
void link::close() {
  if (fd_ && room_.ready) epoll_ctl(room_.ready.get(), EPOLL_CTL_DEL, fd_.get(), nullptr);
  fd_ = {};
}

void link::lose(const std::string& why) {
  if (state_ == state::lost) return;
  // That is how every world ends, too. A queue pair that has ops under way warns.
  log::info("the link to PE {} is down: {}", pe_, why);
  state_ = state::lost;
  why_ = why;
  close();
  caller_ = nullptr;
  out_.clear();
  held_.clear();
  backlog_ = 0;
  in_begin_ = in_end_ = 0;
}

void link::connect() {
  const step s = caller_ != nullptr ? caller_->go_on() : step::pending;
  if (s == step::done) {
    open(*caller_);
    caller_ = nullptr;
  } else if (s == step::failed) {
    lose(fmt::format("none of its addresses replies as this world's PE {} ({})", pe_, caller_->tried()));
  } else if (clock::now() > until_) {
    lose(caller_ != nullptr ? fmt::format("it did not reply as this world's PE {} in time at {}", pe_, caller_->tried())
                            : "it has not called; its log says why");
  }
}

// --- Out ---------------------------------------------------------------------------------------------

void link::put_by(std::unique_ptr<link_record> r) {
  if (room_.out.size() < k_spare) room_.out.push_back(std::move(r));
}

link_record& link::open_record(std::uint32_t bytes) {
  if (out_.empty() || out_.back()->closed || out_.back()->used + bytes > k_record_max) {
    close_record();
    if (room_.out.empty()) {
      out_.push_back(std::unique_ptr<link_record>(new link_record));
    } else {
      out_.push_back(std::move(room_.out.back()));
      room_.out.pop_back();
    }
    out_.back()->used = sizeof(record_head);
    out_.back()->closed = false;
  }
  return *out_.back();
}

void link::close_record() {
  if (out_.empty() || out_.back()->closed || out_.back()->used == sizeof(record_head)) return;
  link_record& r = *out_.back();
  record_head head{};
  head.bytes = r.used - static_cast<std::uint32_t>(sizeof head);
  out_seal_.put(head, r.bytes + sizeof head);
  std::memcpy(r.bytes, &head, sizeof head);
  r.closed = true;
  backlog_ += r.used;
}

bool link::has_turn(const void* who) {
  // Replies to the peer's reads go without a turn: they alone keep no request back.
  const bool is_full = backlog_ > std::max(k_unsent_least, unsent_) / 2 && granted_at_ >= went_;
  if (!line_.empty() || is_full) {
    if (!stands_in_line(who)) line_.push_back(who);
    if (is_full || line_.front() != who) return false;
    line_.pop_front();
  }
  granted_at_ = went_ + backlog_;
  return true;
}

std::uint64_t link::taken() const {
  int waiting = 0;
  ioctl(fd_.get(), SIOCOUTQ, &waiting);
  return went_ - static_cast<std::uint64_t>(waiting);
}

clock::time_point link::moved_at(clock::time_point now) {
  if (state_ != state::up || now - polled_at_ < k_poll_period) return moved_at_;
  polled_at_ = now;
  const std::uint64_t moved = taken() + came_;
  if (std::exchange(moved_, moved) != moved) moved_at_ = now;
  return moved_at_;
}

unsigned char* link::begin(const frame_head& h) {
  if (state_ != state::up) return nullptr;
  const std::uint32_t bytes = payload_of(h);
  begun_ = static_cast<std::uint32_t>(sizeof h) + padded(bytes);
  link_record& r = open_record(begun_);
  unsigned char* at = r.bytes + r.used;
  std::memcpy(at, &h, sizeof h);
  std::memset(at + begun_ - (padded(bytes) - bytes), 0, padded(bytes) - bytes);
  return at + sizeof h;
}

void link::put() {
  link_record& r = *out_.back();
  const std::uint32_t bytes = begun_;
  r.used += bytes;
  if (faults_ != nullptr) judge(r, bytes);
  if (!out_.empty() && !out_.back()->closed && out_.back()->used >= k_record_full) close_record();
}

// Loses, repeats, holds back the frame that stands last in `r`.
void link::judge(link_record& r, std::uint32_t bytes) {
  const unsigned char* at = r.bytes + r.used - bytes;
  frame_head h;
  std::memcpy(&h, at, sizeof h);
  const frame_fate fate = faults_->next_frame(h.from);
  const std::vector<unsigned char> copy(at, at + bytes);
  const bool hold = fate.wait.count() != 0 || fate.swap;
  if (fate.drop || hold) r.used -= bytes;
  if (!fate.drop && hold)
    held_.push_back({clock::now() + (fate.wait.count() != 0 ? fate.wait : k_swap_patience), fate.swap, copy});
  const bool goes = !fate.drop && !hold;
  if (!fate.drop && fate.twice) append(copy);
  if (goes) release_held(true);
  // A record without frames is none.
  if (!out_.empty() && !out_.back()->closed && out_.back()->used == sizeof(record_head)) {
    put_by(std::move(out_.back()));
    out_.pop_back();
  }
}

void link::append(const std::vector<unsigned char>& bytes) {
  link_record& r = open_record(static_cast<std::uint32_t>(bytes.size()));
  std::memcpy(r.bytes + r.used, bytes.data(), bytes.size());
  r.used += static_cast<std::uint32_t>(bytes.size());
}

void link::release_held(bool one_went) {
  const auto now = clock::now();
  for (auto i = held_.begin(); i != held_.end();) {
    if (i->not_before <= now || (one_went && i->after_next)) {
      append(i->bytes);
      i = held_.erase(i);
    } else {
      ++i;
    }
  }
}

void link::limit_unsent() {
  const auto now = clock::now();
  if (now - limited_at_ < k_unsent_time) return;
  const std::uint64_t now_taken = taken();
  const double share = std::chrono::duration<double>(k_unsent_time) / (now - std::exchange(limited_at_, now));
  // Of a socket within this machine the kernel counts more than the bytes, so they may become fewer.
  const auto since = static_cast<std::int64_t>(now_taken - std::exchange(limited_taken_, now_taken));
  const auto bytes = std::clamp<double>(share * static_cast<double>(since), k_unsent_least, k_unsent_most);
  const std::uint64_t wanted = std::bit_ceil(static_cast<std::uint64_t>(bytes));
  if (std::exchange(unsent_, wanted) == wanted) return;
  const auto limit = static_cast<int>(wanted);
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof limit);
}

std::uint64_t link::send() {
  if (state_ != state::up) return 0;
  if (!held_.empty()) release_held(false);
  close_record();
  limit_unsent();
  std::uint64_t went = 0;
  while (!out_.empty() && out_.front()->closed && went < 2 * k_turn_bytes) {
    iovec pieces[k_vector];
    int count = 0;
    for (const auto& r : out_) {
      if (count == k_vector || !r->closed) break;
      const std::uint32_t skip = count == 0 ? sent_ : 0;
      pieces[count++] = {r->bytes + skip, r->used - skip};
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = static_cast<std::size_t>(count);
    const ssize_t n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      lose(n < 0 ? errno_text(errno) : "nothing can be sent");
      put_buffer_by();  // nothing is received any more, and half a record may lie in it
      return went + 1;
    }
    went += static_cast<std::uint64_t>(n);
    went_ += static_cast<std::uint64_t>(n);
    backlog_ -= static_cast<std::uint64_t>(n);
    for (auto left = static_cast<std::uint32_t>(n); left != 0;) {
      const std::uint32_t piece = std::min(left, out_.front()->used - sent_);
      left -= piece;
      sent_ += piece;
      if (sent_ != out_.front()->used) break;
      sent_ = 0;
      put_by(std::move(out_.front()));
      out_.pop_front();
    }
  }
  return went;
}

// --- In ----------------------------------------------------------------------------------------------

bool link::handle_frames(const unsigned char* body, std::uint32_t bytes, const sink& take) {
  while (bytes != 0) {
    frame_head h;
    if (bytes < sizeof h) return false;
    std::memcpy(&h, body, sizeof h);
    const std::uint32_t payload = payload_of(h);
    if (h.bytes > k_segment || payload > bytes - sizeof h || padded(payload) > bytes - sizeof h) return false;
    if (!take(h, body + sizeof h)) return false;
    const auto whole = static_cast<std::uint32_t>(sizeof h) + padded(payload);
    body += whole;
    bytes -= whole;
  }
  return true;
}

// All whole records. False if the link is lost.
bool link::handle_records(const sink& take) {
  for (;;) {
    const std::size_t have = in_end_ - in_begin_;
    const unsigned char* at = in_.data() + in_begin_;
    record_head head;
    std::size_t whole = sizeof head;
    if (have >= sizeof head) {
      std::memcpy(&head, at, sizeof head);
      if (head.zero != 0 || head.bytes == 0 || head.bytes % 8 != 0 || head.bytes > k_record_max - sizeof head) {
        lose(fmt::format("it sent a record of {} bytes, which cannot be", head.bytes));
        return false;
      }
      whole += head.bytes;
    }
    if (have < whole || have < sizeof head) {
      if (have == 0) {
        in_begin_ = in_end_ = 0;
      } else if (in_begin_ + whole > in_.size()) {
        std::memmove(in_.data(), at, have);
        in_begin_ = 0;
        in_end_ = have;
      }
      return true;
    }
    if (!in_seal_.check(head, at + sizeof head)) {
      lose("a record is not authentic: it was altered on its way");
      return false;
    }
    if (!handle_frames(at + sizeof head, head.bytes, take)) {
      lose("it sent a frame that makes no sense; run the same XIO on every PE");
      return false;
    }
    if (state_ != state::up) return false;
    in_begin_ += whole;
  }
}

void link::take_buffer() {
  if (!in_.empty()) return;
  if (room_.in.empty()) {
    in_.resize(k_in_bytes);
  } else {
    in_ = std::move(room_.in.back());
    room_.in.pop_back();
  }
}

void link::put_buffer_by() {
  if (in_.empty() || in_begin_ != in_end_) return;
  if (room_.in.size() < k_spare) room_.in.push_back(std::move(in_));
  in_ = {};
  in_begin_ = in_end_ = 0;
}

std::uint64_t link::receive(const sink& take) {
  if (state_ == state::waiting) connect();
  // A peer that asks and does not read is not read from until it has taken what waits for it. One that follows this
  // protocol never gets so far: the data of reads stops at 32 MiB, and requests long before.
  if (state_ != state::up || backlog_ > k_backlog_most) return 0;
  take_buffer();
  const std::uint64_t got = read(take);
  put_buffer_by();
  return got;
}

std::uint64_t link::read(const sink& take) {
  std::uint64_t got = 0;
  while (got < k_turn_bytes) {
    const std::size_t room = in_.size() - in_end_;
    const ssize_t n = recv(fd_.get(), in_.data() + in_end_, room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      lose(n < 0 ? errno_text(errno) : "the peer has closed it");
      return got + 1;
    }
    in_end_ += static_cast<std::size_t>(n);
    got += static_cast<std::uint64_t>(n);
    came_ += static_cast<std::uint64_t>(n);
    if (!handle_records(take)) return got;
    if (static_cast<std::size_t>(n) < room) break;  // that was all
  }
  return got;
}

}  // namespace xio::proxy::tcp
