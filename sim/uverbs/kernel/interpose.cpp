// SPDX-License-Identifier: MIT
// The calls that the preloaded library handles in place of the C library: those that open the device's file, and those
// on its descriptors. All others go on.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "uverbs/kernel/context.hpp"

#define UVERBS_SHOWN extern "C" __attribute__((visibility("default")))

namespace {

constexpr const char* k_file = "/dev/infiniband/uverbs0";

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_ours(const char* path) {
  return path != nullptr && std::strcmp(path, k_file) == 0 && std::getenv("XIO_TEST_UVERBS_SESSION") != nullptr;
}

// Never destroyed: threads still call at exit.
struct table {
  std::mutex lock;
  std::map<int, std::shared_ptr<uverbs::context>> files;
  std::vector<int> events;  // where to write them
};
table& files() {
  static table* const t = new table;
  return *t;
}
std::shared_ptr<uverbs::context> context_of(int fd) {
  const std::lock_guard hold(files().lock);
  const auto found = files().files.find(fd);
  return found == files().files.end() ? nullptr : found->second;
}

int open_ours() {
  uverbs::device* d = uverbs::device::current();
  if (d == nullptr || d->chosen().host == 0) {
    errno = ENODEV;
    return -1;
  }
  const int fd = memfd_create("uverbs0", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const std::lock_guard hold(files().lock);
  files().files[fd] = std::make_shared<uverbs::context>(*d);
  return fd;
}

int stat_ours(struct stat* s) {
  *s = {};
  s->st_mode = S_IFCHR | 0666;
  s->st_rdev = 0xe7c0;  // 231:192, as sysfs says
  return 0;
}

// Events come by orders of the test alone. A process that has closed its end hears none any more.
int open_events(const uverbs::call& c) {
  ib_uverbs_attr* a = c.find(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
  int ends[2];
  if (a == nullptr) return EINVAL;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return EMFILE;
  const std::lock_guard hold(files().lock);
  files().events.push_back(ends[1]);
  a->data_s64 = ends[0];
  a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

void send_event(std::uint32_t type) {
  // Of a port: which one. No event of a queue is made.
  const ib_uverbs_async_event_desc event{1, type, 0};
  const std::lock_guard hold(files().lock);
  for (const int fd : files().events) send(fd, &event, sizeof event, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// enum rdma_driver_id
std::uint32_t driver_of(uverbs::nic_kind nic) {
  switch (nic) {
    case uverbs::nic_kind::mlx5: return 1;
    case uverbs::nic_kind::bnxt: return 6;
    case uverbs::nic_kind::ionic: break;
  }
  return 21;
}

int call_ours(uverbs::context& context, unsigned long request, void* argument) {
  auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
  if (request != RDMA_VERBS_IOCTL) return ENOTTY;
  if (header->length != sizeof *header + header->num_attrs * sizeof(ib_uverbs_attr) || header->reserved1 != 0 ||
      header->reserved2 != 0)
    return EINVAL;
  if (header->driver_id != driver_of(uverbs::device::current()->chosen().nic)) return EINVAL;
  const uverbs::call c(header);
  if (c.object() == UVERBS_OBJECT_ASYNC_EVENT && c.method() == UVERBS_METHOD_ASYNC_EVENT_ALLOC) return open_events(c);
  const int err = context.handle(c);
  if (err != 0 && uverbs::device::current()->chosen().log)
    std::fprintf(stderr, "simulated kernel: object %#x method %#x: %s\n", c.object(), c.method(), std::strerror(err));
  return err;
}

}  // namespace

// See tests/uverbs/orders.hpp. 0, or -1 where the process has no device.
UVERBS_SHOWN int xio_test_uverbs_order(const char* what) {
  uverbs::device* d = uverbs::device::current();
  if (d == nullptr) return -1;
  const std::string order = what;
  if (order.rfind("event:", 0) == 0) {
    send_event(static_cast<std::uint32_t>(std::stoul(order.substr(6))));
    return 0;
  }
  const auto hold = d->lock();
  d->set_faults(order);
  return 0;
}

UVERBS_SHOWN unsigned xio_test_uverbs_pages(std::uint32_t type) {
  uverbs::device* d = uverbs::device::current();
  if (d == nullptr) return 0;
  const auto hold = d->lock();
  return d->pages_asked(type);
}

#define UVERBS_OPEN(NAME)                                                                       \
  UVERBS_SHOWN int NAME(const char* path, int flags, ...) {                                     \
    va_list more;                                                                               \
    va_start(more, flags);                                                                      \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;        \
    va_end(more);                                                                               \
    if (is_ours(path)) return open_ours();                                                      \
    static const auto real = next(static_cast<int (*)(const char*, int, ...)>(nullptr), #NAME); \
    return real(path, flags, mode);                                                             \
  }
UVERBS_OPEN(open)
UVERBS_OPEN(open64)

#define UVERBS_STAT(NAME, KIND)                                                                     \
  UVERBS_SHOWN int NAME(const char* path, struct KIND* s) {                                         \
    if (is_ours(path)) return stat_ours(reinterpret_cast<struct stat*>(s));                         \
    static const auto real = next(static_cast<int (*)(const char*, struct KIND*)>(nullptr), #NAME); \
    return real(path, s);                                                                           \
  }
static_assert(sizeof(struct stat) == sizeof(struct stat64));
UVERBS_STAT(stat, stat)
UVERBS_STAT(stat64, stat64)

UVERBS_SHOWN int fstat(int fd, struct stat* s) {
  if (context_of(fd) != nullptr) return stat_ours(s);
  static const auto real = next(static_cast<int (*)(int, struct stat*)>(nullptr), "fstat");
  return real(fd, s);
}

UVERBS_SHOWN int ioctl(int fd, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void* argument = va_arg(more, void*);
  va_end(more);
  const auto context = context_of(fd);
  if (context == nullptr) {
    static const auto real = next(static_cast<int (*)(int, unsigned long, ...)>(nullptr), "ioctl");
    return real(fd, request, argument);
  }
  const int err = call_ours(*context, request, argument);
  if (err == 0) return 0;
  errno = err;
  return -1;
}

#define UVERBS_MMAP(NAME)                                                                                       \
  UVERBS_SHOWN void* NAME(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {            \
    static const auto real = next(static_cast<void* (*)(void*, size_t, int, int, int, off_t)>(nullptr), #NAME); \
    const auto context = fd < 0 ? nullptr : context_of(fd);                                                     \
    if (context == nullptr) return real(at, bytes, protection, flags, fd, offset);                              \
    return context->map(static_cast<std::uint64_t>(offset), bytes, protection, flags);                          \
  }
UVERBS_MMAP(mmap)
UVERBS_MMAP(mmap64)

UVERBS_SHOWN int munmap(void* at, size_t bytes) {
  static const auto real = next(static_cast<int (*)(void*, size_t)>(nullptr), "munmap");
  uverbs::forget_doorbell_pages(at, bytes);
  return real(at, bytes);
}

UVERBS_SHOWN int close(int fd) {
  static const auto real = next(static_cast<int (*)(int)>(nullptr), "close");
  std::shared_ptr<uverbs::context> context;
  if (fd >= 0) {
    const std::lock_guard hold(files().lock);
    if (const auto found = files().files.find(fd); found != files().files.end()) {
      context = std::move(found->second);
      files().files.erase(found);
    }
  }
  return real(fd);
}

// Devices of this machine's kernel are not listed: libibverbs falls back to sysfs, which is the session's.
UVERBS_SHOWN int socket(int domain, int type, int protocol) {
  static const auto real = next(static_cast<int (*)(int, int, int)>(nullptr), "socket");
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && std::getenv("XIO_TEST_UVERBS_SESSION") != nullptr) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return real(domain, type, protocol);
}
