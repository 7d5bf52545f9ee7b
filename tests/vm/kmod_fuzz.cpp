// SPDX-License-Identifier: MIT
// Random calls for a bounded time, from three threads at once: the kernel must not mind. The calls' results do not
// matter here.
#include <random>

#include "kmod_queue.hpp"

namespace kmod {
namespace {

class caller {
 public:
  caller(const xio_kmod_pci& device, unsigned seed) : device_(device), random_(seed), data_(4 * k_page) {
    for (auto& fd : fds_) fd = open("/dev/xio", O_RDWR | O_CLOEXEC);
  }
  caller& operator=(caller&&) = delete;
  ~caller() {
    for (const int fd : fds_) close(fd);
  }

  void step() {
    int& fd = fds_[below(2)];
    switch (below(12)) {
      case 0: return reopen(fd);
      case 1: return map_somewhere(fd);
      case 2: return raw(fd);
      case 3: return pin(fd);
      case 4:
      case 5: return memory(fd);
      case 6: return queue_pair(fd);
      case 7: return read_segments(fd);
      case 8: return identify(fd);
      case 9: return noise(fd);
      default: (void)release(fd, handle());
    }
  }
  std::uint64_t good = 0;

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::uint64_t any() {
    static constexpr std::uint64_t k_edges[] = {
        0,    1,        2,          3,          7,          8,          64,         65,    4095,        4096,
        8192, 1u << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 28, 1ull << 32, ~0ull, ~0ull - 4095};
    return below(4) == 0 ? random_() : k_edges[below(std::size(k_edges))];
  }
  std::uint32_t handle() {
    return below(8) == 0 || handles_.empty() ? static_cast<std::uint32_t>(any())
                                             : handles_[below(static_cast<std::uint32_t>(handles_.size()))];
  }
  void keep(std::uint32_t h) {
    ++good;
    if (handles_.size() < 64)
      handles_.push_back(h);
    else
      handles_[below(64)] = h;
  }
  // Sometimes one octet is other than it should be.
  template <class T>
  void spoil(T& argument) {
    if (below(4) == 0)
      reinterpret_cast<unsigned char*>(&argument)[below(sizeof argument)] = static_cast<unsigned char>(random_());
  }
  template <class T>
  bool call(int fd, unsigned long number, T& argument) {
    spoil(argument);
    return ioctl(fd, number, &argument) == 0;
  }

  void reopen(int& fd) {
    if (below(8) != 0) return;
    close(fd);
    fd = open("/dev/xio", O_RDWR | O_CLOEXEC);
  }
  // Mapped pages are read, and memory is written; a doorbell is not rung: the kernel is tried here, not the drive.
  void map_somewhere(int fd) {
    const bool plain = !memories_.empty() && below(2) == 0;
    const std::uint64_t of = plain ? memories_[below(static_cast<std::uint32_t>(memories_.size()))] : handle();
    const std::uint64_t offset = below(4) == 0 ? any() & ~std::uint64_t{4095} : of << 28;
    const std::size_t bytes = k_page << below(6);
    void* p = mmap(nullptr, bytes, below(2) != 0 ? PROT_READ | PROT_WRITE : PROT_READ,
                   below(8) == 0 ? MAP_PRIVATE : MAP_SHARED, fd, static_cast<off_t>(offset));
    if (p == MAP_FAILED) return;
    ++good;
    // The kernel's own copies end with EFAULT where a touch would be SIGBUS.
    (void)!pwrite(scratch_, p, bytes, 0);
    if (plain && offset == of << 28) (void)!pread(scratch_, p, bytes, 0);
    munmap(p, bytes);
  }
  void raw(int fd) {
    unsigned char bytes[256];
    for (auto& b : bytes) b = below(3) == 0 ? static_cast<unsigned char>(random_()) : 0;
    (void)ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, XIO_KMOD_MAGIC, below(9), below(200)), bytes);
  }
  // A whole call of the right number, at an address of any kind.
  void noise(int fd) {
    static constexpr unsigned long k_calls[] = {XIO_KMOD_INFO,    XIO_KMOD_PIN,     XIO_KMOD_SEGMENTS,
                                                XIO_KMOD_MEMORY,  XIO_KMOD_RELEASE, XIO_KMOD_QUEUE_PAIR,
                                                XIO_KMOD_IDENTIFY};
    (void)ioctl(fd, k_calls[below(std::size(k_calls))], any());
  }
  void pin(int fd) {
    const int dmabuf = below(6) == 0 ? static_cast<int>(any()) : data_.fd();
    xio_kmod_pin a = pin_of(device_, dmabuf);
    if (call(fd, XIO_KMOD_PIN, a)) keep(a.handle);
  }
  void memory(int fd) {
    xio_kmod_memory a = memory_of(device_, below(4) == 0 ? any() : k_page << below(4));
    if (!call(fd, XIO_KMOD_MEMORY, a)) return;
    keep(a.handle);
    memories_.push_back(a.handle);
    if (memories_.size() > 16) memories_.erase(memories_.begin());
  }
  void queue_pair(int fd) {
    xio_kmod_queue_pair a{};
    a.device = device_;
    a.sq_memory = handle();
    a.cq_memory = handle();
    a.sq_entries = below(4) == 0 ? static_cast<std::uint32_t>(any()) : 2 + below(63);
    a.cq_entries = below(4) == 0 ? static_cast<std::uint32_t>(any()) : 2 + below(63);
    if (call(fd, XIO_KMOD_QUEUE_PAIR, a)) keep(a.handle);
  }
  void read_segments(int fd) {
    xio_kmod_segment room[16];
    xio_kmod_segments a{};
    a.handle = handle();
    a.first = static_cast<std::uint32_t>(any());
    a.count = below(2) == 0 ? 16 : 1;
    a.array = below(8) == 0 ? any() : reinterpret_cast<std::uintptr_t>(room);
    if (ioctl(fd, XIO_KMOD_SEGMENTS, &a) == 0) ++good;
  }
  void identify(int fd) {
    static thread_local unsigned char page[2 * k_page];
    xio_kmod_identify a{};
    a.device = device_;
    a.cns = below(4);
    a.nsid = static_cast<std::uint32_t>(any());
    a.data = below(4) == 0 ? any() : reinterpret_cast<std::uintptr_t>(page);
    if (ioctl(fd, XIO_KMOD_IDENTIFY, &a) == 0) ++good;
  }

  xio_kmod_pci device_;
  std::mt19937_64 random_;
  buffer data_;
  int fds_[2] = {-1, -1};
  descriptor scratch_{memfd_create("scratch", MFD_CLOEXEC)};
  std::vector<std::uint32_t> handles_, memories_;
};

}  // namespace

void try_fuzz(const std::string& bdf, unsigned seconds, unsigned seed) {
  std::atomic<std::uint64_t> steps{0}, good{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      caller c(device_of(bdf), seed * 3 + t);
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
      while (std::chrono::steady_clock::now() < limit) {
        c.step();
        ++steps;
      }
      good += c.good;
    });
  for (auto& t : threads) t.join();
  std::printf("fuzz: seed %u, %llu calls, %llu of them good\n", seed, static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(good));
  // Nothing good would mean that nothing was reached.
  CHECK(good > 0);
}

}  // namespace kmod
