// SPDX-License-Identifier: MIT
#include "bootstrap/resolve.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/socket.hpp"

namespace xio::bootstrap {

namespace {

constexpr int k_look_up_again_ms = 100;

struct free_list {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using address_list = std::unique_ptr<addrinfo, free_list>;

// A lookup in flight: the C library reads these fields from a thread of its own.
struct lookup {
  std::string host, service;
  addrinfo hints{};
  gaicb request{};
};

addrinfo hints_with(int flags) {
  addrinfo h{};
  h.ai_family = AF_UNSPEC;
  h.ai_socktype = SOCK_STREAM;
  h.ai_flags = flags | AI_NUMERICSERV;
  return h;
}

#if defined(__has_feature)
#define XIO_HAS_FEATURE(f) __has_feature(f)
#else
#define XIO_HAS_FEATURE(f) 0
#endif

#if defined(__SANITIZE_THREAD__) || XIO_HAS_FEATURE(thread_sanitizer)
// ThreadSanitizer does not survive threads that the C library makes for itself, so there the lookup waits as it likes.
int look_up(const endpoint& where, const deadline&, address_list& out) {
  const addrinfo hints = hints_with(0);
  addrinfo* raw = nullptr;
  const int rc = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &raw);
  out.reset(raw);
  return rc;
}
#else
// getaddrinfo may sit for tens of seconds on a dead name server, hence its asynchronous form.
int look_up(const endpoint& where, const deadline& until, address_list& out) {
  auto l = std::make_unique<lookup>();
  l->host = where.host;
  l->service = std::to_string(where.port);
  l->hints = hints_with(0);
  l->request.ar_name = l->host.c_str();
  l->request.ar_service = l->service.c_str();
  l->request.ar_request = &l->hints;
  gaicb* list[] = {&l->request};
  if (const int rc = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); rc != 0) return rc;
  while (gai_error(&l->request) == EAI_INPROGRESS && !until.passed()) {
    const int ms = until.poll_ms(1000);
    const timespec wait{ms / 1000, (ms % 1000) * 1000000L};
    gai_suspend(list, 1, &wait);
  }
  if (gai_error(&l->request) == EAI_INPROGRESS && gai_cancel(&l->request) == EAI_NOTCANCELED) {
    // The C library still works on it and cannot be stopped; its memory must outlive this call.
    (void)l.release();
    return EAI_AGAIN;
  }
  const int rc = gai_error(&l->request);
  if (rc == 0) out.reset(l->request.ar_result);
  return rc == EAI_CANCELED ? EAI_AGAIN : rc;
}
#endif

// Why no file can be opened now: EMFILE, ENFILE, or 0 if one can.
int lack_of_descriptors() {
  const unique_fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return !probe && no_descriptor(errno) ? errno : 0;
}

// Whether trying again cannot help. A name that is not there may come: that of a service whose machine is being
// started, and name servers and caches that have not heard of it yet.
bool fails_for_good(int rc) {
  return rc == EAI_MEMORY || rc == EAI_BADFLAGS || rc == EAI_FAMILY || rc == EAI_SERVICE || rc == EAI_SOCKTYPE;
}

// Said once it takes long; the name may be wrong.
class patience {
 public:
  void spent_on(const std::string& host, int rc) {
    if (said_ || milliseconds() < k_say_after_ms) return;
    said_ = true;
    log::warn("the host '{}' of XIO_TCP_ROOT has no address yet ({}); it is looked up until XIO_TIMEOUT_MS", host,
              gai_strerror(rc));
  }
  std::int64_t milliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline::clock::now() - since_).count();
  }

 private:
  static constexpr std::int64_t k_say_after_ms = 2000;
  const deadline::clock::time_point since_ = deadline::clock::now();
  bool said_ = false;
};

int look_up_again_and_again(const endpoint& where, const deadline& until, patience& tried, address_list& out) {
  for (;;) {
    const int rc = look_up(where, until, out);
    // Without a descriptor for its files and name servers the C library says that there is no such name.
    const int lack = rc == 0 ? 0 : lack_of_descriptors();
    if (lack == EMFILE && raise_descriptor_limit("a host name is to be looked up")) continue;
    // That the machine has none (ENFILE) may pass while ranks start.
    const bool passes = lack == ENFILE || (lack == 0 && rc != 0 && !fails_for_good(rc));
    if (passes && !until.passed()) {
      tried.spent_on(where.host, rc);
      poll(nullptr, 0, until.poll_ms(k_look_up_again_ms));
      continue;
    }
    if (lack != 0)
      fail(XIO_ERR_IO, "no file descriptor is left to look up the host '{}' of XIO_TCP_ROOT: {}", where.host,
           text_of_no_descriptor(lack));
    return rc;
  }
}

}  // namespace

bool is_numeric_host(const std::string& host) {
  const addrinfo hints = hints_with(AI_NUMERICHOST);
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return false;
  freeaddrinfo(list);
  return true;
}

std::vector<socket_address> resolve(const endpoint& where, const deadline& until) {
  address_list list;
  patience tried;
  int rc = 0;
  if (is_numeric_host(where.host)) {
    const addrinfo hints = hints_with(AI_NUMERICHOST);
    addrinfo* raw = nullptr;
    rc = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &raw);
    list.reset(raw);
  } else {
    rc = look_up_again_and_again(where, until, tried, list);
  }
  if (rc != 0)
    fail(fails_for_good(rc) ? XIO_ERR_CONFIG : XIO_ERR_TIMEOUT,
         "the host '{}' of XIO_TCP_ROOT has no address after {} ms of looking it up: {}; give the name or address of "
         "the host that runs rank 0, or raise XIO_TIMEOUT_MS",
         where.host, tried.milliseconds(), gai_strerror(rc));
  std::vector<socket_address> found;
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    if (a->ai_addrlen > sizeof(sockaddr_storage)) continue;
    socket_address s;
    std::memcpy(&s.bytes, a->ai_addr, a->ai_addrlen);
    s.length = a->ai_addrlen;
    found.push_back(s);
  }
  return found;
}

}  // namespace xio::bootstrap
