// SPDX-License-Identifier: MIT
#include "gpu/lent_file.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace xio::gpu {

namespace {

constexpr int k_backlog = 64;
// Of one borrower, which holds up the others meanwhile.
constexpr int k_borrower_ms = 1000;

struct address {
  sockaddr_un at{};
  socklen_t bytes = 0;
  explicit address(const loan_name& name) {
    const std::string text = fmt::format("xio-loan-{:016x}{:016x}", name[0], name[1]);
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, text.data(), text.size());  // a null first: no file
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }
};

int new_socket(int more = 0) { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | more, 0); }

void limit_waits(int fd, int ms) {
  const timeval t{ms / 1000, ms % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

bool is_my_user(int fd) {
  ucred who{};
  socklen_t bytes = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == geteuid();
}

// A file goes beside a byte.
struct one_byte {
  one_byte() {
    m.msg_iov = &data, m.msg_iovlen = 1;
    m.msg_control = control, m.msg_controllen = sizeof control;
  }
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr m{};
};

}  // namespace

lent_file::lent_file(unique_fd fd)
    : fd_(std::move(fd)), listener_(new_socket(SOCK_NONBLOCK)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (getrandom(name_.data(), sizeof name_, 0) != sizeof name_)
    fail(XIO_ERR_IO, "random bytes to name a lent file: {}", errno_text(errno));
  const address here(name_);
  if (listener_.get() < 0 || stop_.get() < 0 || bind(listener_.get(), here.get(), here.bytes) != 0 ||
      listen(listener_.get(), k_backlog) != 0)
    fail(XIO_ERR_IO, "a socket to lend a dma-buf by: {}; raise ulimit -n", errno_text(errno));
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& e) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    fail(XIO_ERR_IO, "a thread to lend a dma-buf: {}; {}", e.what(), thread_cure());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

lent_file::~lent_file() {
  // A forked child has the object without its thread.
  if (getpid() != pid_) {
    thread_.detach();
    return;
  }
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) != sizeof one) shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void lent_file::serve() {
  pollfd wait[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(wait, 2, -1) < 0 && errno != EINTR) return;
    if (wait[1].revents != 0 || (wait[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;
    if ((wait[0].revents & POLLIN) == 0) continue;
    const unique_fd borrower(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (borrower.get() >= 0)
      hand_out(borrower.get());
    else if (errno == EMFILE || errno == ENFILE)
      usleep(10000);  // until a descriptor is free: the borrower waits in the backlog
  }
}

void lent_file::hand_out(int to) {
  limit_waits(to, k_borrower_ms);
  loan_name said{};
  if (!is_my_user(to) || recv(to, said.data(), sizeof said, 0) != sizeof said || said != name_) return;
  one_byte sent;
  cmsghdr* c = CMSG_FIRSTHDR(&sent.m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = fd_.get();
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  // A borrower that has gone meanwhile is its own matter.
  (void)!sendmsg(to, &sent.m, MSG_NOSIGNAL);
}

unique_fd borrow_file(const loan_name& name, int timeout_ms) {
  const unique_fd s(new_socket());
  const address there(name);
  limit_waits(s.get(), timeout_ms);
  if (s.get() < 0 || connect(s.get(), there.get(), there.bytes) != 0)
    fail(
        XIO_ERR_UNSUPPORTED,
        "the process that lends the dma-buf is not reached: {}; PEs of one machine must run as one user in one network "
        "namespace",
        errno_text(errno));
  if (!is_my_user(s.get())) fail(XIO_ERR_PEER, "a dma-buf is lent by another user's process; it is not taken");
  one_byte got;
  if (send(s.get(), name.data(), sizeof name, MSG_NOSIGNAL) != sizeof name ||
      recvmsg(s.get(), &got.m, MSG_CMSG_CLOEXEC) != 1)
    fail(XIO_ERR_UNSUPPORTED, "the process that lends the dma-buf sent none within {} ms: {}", timeout_ms,
         errno_text(errno));
  const cmsghdr* c = CMSG_FIRSTHDR(&got.m);
  if (c == nullptr || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
    fail(XIO_ERR_UNSUPPORTED, "the process that lends the dma-buf sent no descriptor; raise ulimit -n here");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return unique_fd(fd);
}

}  // namespace xio::gpu
