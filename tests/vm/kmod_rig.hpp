// SPDX-License-Identifier: MIT
// What the parts of tests/vm/kmod share: checks that go on, opens of /dev/xio, dma-bufs made of a memfd, commands that
// name a device.
#pragma once
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../../kernel/xio/xio_uapi.h"

namespace kmod {

inline int failures = 0;

inline void check(bool good, const char* what, const char* file, int line) {
  if (good) return;
  ++failures;
  std::printf("FAIL %s:%d: %s (errno %d, %s)\n", file, line, what, errno, std::strerror(errno));
}
#define CHECK(x) kmod::check((x), #x, __FILE__, __LINE__)
// The call fails with that errno.
#define REFUSED(call, wanted)                                                          \
  do {                                                                                 \
    errno = 0;                                                                         \
    const bool failed = (call) == -1;                                                  \
    kmod::check(failed&& errno == (wanted), #call " is " #wanted, __FILE__, __LINE__); \
  } while (false)

inline constexpr std::size_t k_page = 4096;

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { reset(); }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  operator int() const { return fd_; }  // NOLINT: is one

 private:
  int fd_;
};

inline descriptor open_module() {
  descriptor fd(open("/dev/xio", O_RDWR | O_CLOEXEC));
  CHECK(fd >= 0);
  return fd;
}

// A dma-buf of the kernel's udmabuf, over memory that this process maps at `memory`.
class buffer {
 public:
  explicit buffer(std::size_t bytes)
      : bytes_(bytes), memfd_(memfd_create("xio-kmod", MFD_ALLOW_SEALING | MFD_CLOEXEC)), dmabuf_(make()) {
    memory_ = static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0));
    CHECK(memory_ != MAP_FAILED);
  }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  ~buffer() { munmap(memory_, bytes_); }
  int fd() const { return dmabuf_; }
  unsigned char* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  int make() {
    CHECK(ftruncate(memfd_, static_cast<off_t>(bytes_)) == 0);
    CHECK(fcntl(memfd_, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    descriptor device(open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
    udmabuf_create request{static_cast<std::uint32_t>(static_cast<int>(memfd_)), UDMABUF_FLAGS_CLOEXEC, 0, bytes_};
    const int fd = ioctl(device, UDMABUF_CREATE, &request);
    CHECK(fd >= 0);
    return fd;
  }
  std::size_t bytes_;
  descriptor memfd_;
  descriptor dmabuf_;
  unsigned char* memory_ = nullptr;
};

// "0000:00:04.0"
inline xio_kmod_pci device_of(const std::string& bdf) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  CHECK(std::sscanf(bdf.c_str(), "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4);
  xio_kmod_pci d{};
  d.domain = domain;
  d.bus = static_cast<__u8>(bus);
  d.slot = static_cast<__u8>(slot);
  d.function = static_cast<__u8>(function);
  return d;
}

inline xio_kmod_pin pin_of(const xio_kmod_pci& device, int dmabuf) {
  xio_kmod_pin a{};
  a.device = device;
  a.dmabuf = dmabuf;
  return a;
}

inline xio_kmod_memory memory_of(const xio_kmod_pci& device, std::uint64_t bytes) {
  xio_kmod_memory a{};
  a.device = device;
  a.bytes = bytes;
  return a;
}

inline int release(int fd, std::uint32_t handle) {
  xio_kmod_release a{handle, 0};
  return ioctl(fd, XIO_KMOD_RELEASE, &a);
}

inline std::vector<xio_kmod_segment> segments(int fd, std::uint32_t handle, std::uint32_t count) {
  std::vector<xio_kmod_segment> list(count + 1, {0x5a5a, 0x5a5a});
  xio_kmod_segments a{};
  a.handle = handle;
  a.count = count;
  a.array = reinterpret_cast<std::uintptr_t>(list.data());
  CHECK(ioctl(fd, XIO_KMOD_SEGMENTS, &a) == 0);
  CHECK(a.count == count);
  CHECK(list[count].address == 0x5a5a && list[count].bytes == 0x5a5a);
  list.pop_back();
  return list;
}

inline void* map(int fd, std::uint64_t offset, std::size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
}

void try_calls(const std::string& bdf, bool translated);         // under another driver
void try_unprivileged(const std::string& bdf, bool translated);  // as somebody else
void try_memlock(const std::string& bdf);                        // as somebody else: what one user may hold
void try_gone(const std::string& bdf);                           // under xio: its registers read as all ones
void try_lockdown(const std::string& bdf, bool translated);      // under xio: as root of a kernel that is locked down
void try_cycles(const std::string& bdf);                         // much that must leave nothing
void try_queues(const std::string& bdf,
                const std::string& path);  // under xio: reads what is in the file, writes the same shifted
void try_loss(const std::string& bdf, const std::string& action);  // what happens to those who hold something
void try_fuzz(const std::string& bdf, unsigned seconds, unsigned seed);

}  // namespace kmod
