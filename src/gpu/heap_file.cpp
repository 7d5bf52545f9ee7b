// SPDX-License-Identifier: MIT
#include "gpu/heap_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <deque>
#include <mutex>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "gpu/heap_handle.hpp"
#include "gpu/memory_file.hpp"

namespace xio::gpu {

namespace {

using heap_tag = std::array<std::uint64_t, 2>;

std::string file_name(const heap_tag& tag) { return fmt::format("xio-heap-{:016x}{:016x}", tag[0], tag[1]); }

// The bytes of a handle. Tag (in the memfd's name) and inode prove that the descriptor is still the one announced.
struct heap_handle {
  std::uint64_t magic;
  heap_tag tag;  // random
  std::uint64_t pid;
  std::uint64_t fd;
  std::uint64_t bytes;
  std::uint64_t device;
  std::uint64_t inode;
};
static_assert(sizeof(heap_handle) == 64);
constexpr std::uint64_t k_magic = 0x31706165486f6958;  // "XioHeap1"

class mapped {
 public:
  mapped(int fd, std::size_t bytes, const char* what) : bytes_(bytes) {
    // Room to place it on a multiple of k_alignment; the rest goes back.
    const std::size_t room = bytes + k_alignment;
    void* reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) refuse(errno, bytes, what);
    const auto start = reinterpret_cast<std::uintptr_t>(reserved);
    const auto place = (start + k_alignment - 1) / k_alignment * k_alignment;
    void* at = reinterpret_cast<void*>(place);
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
      const int err = errno;
      munmap(reserved, room);
      refuse(err, bytes, what);
    }
    if (place != start) munmap(reserved, place - start);
    munmap(static_cast<char*>(at) + bytes, start + room - place - bytes);
    data_ = at;
  }
  mapped& operator=(mapped&&) = delete;
  // The addresses stay taken, by nothing: what kernels of the host platform still load or store there by a ctx of a
  // world that was finalized harms nobody, and their quiet says XIO_ERR_STATE.
  ~mapped() {
    if (data_ == nullptr) return;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(data_, bytes_, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
      munmap(data_, bytes_);
    else
      keep(data_, bytes_);
  }
  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  // Of all such addresses the last so many bytes: the oldest go.
  static constexpr std::size_t k_most_kept = std::size_t{1} << 40;
  static void keep(void* data, std::size_t bytes) {
    static std::mutex guard;
    static std::deque<std::pair<void*, std::size_t>> kept;
    static std::size_t all = 0;
    const std::lock_guard lock(guard);
    kept.emplace_back(data, bytes);
    for (all += bytes; all > k_most_kept; kept.pop_front()) {
      munmap(kept.front().first, kept.front().second);
      all -= kept.front().second;
    }
  }

  // The most that xio_align can promise: a huge page, as GPUs give it.
  static constexpr std::size_t k_alignment = std::size_t{2} << 20;

  [[noreturn]] static void refuse(int err, std::size_t bytes, const char* what) {
    fail(err == ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "mapping {} of {} bytes: {}; lower XIO_HEAP_SIZE", what, bytes,
         errno_text(err));
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

class shared_heap final : public heap {
 public:
  explicit shared_heap(std::size_t bytes)
      : bytes_(bytes),
        tag_(make_tag()),
        fd_(make_memory_file(file_name(tag_), whole_pages(bytes), "symmetric heap", "lower XIO_HEAP_SIZE")),
        memory_(fd_.get(), whole_pages(bytes), "a heap") {}
  unsigned char* data() const override { return memory_.data(); }
  std::size_t size() const override { return bytes_; }

  std::vector<std::byte> handle() const override {
    struct stat st {};
    if (fstat(fd_.get(), &st) != 0) fail(XIO_ERR_IO, "the heap's file: {}", errno_text(errno));
    const heap_handle h{k_magic,
                        tag_,
                        static_cast<std::uint64_t>(getpid()),
                        static_cast<std::uint64_t>(fd_.get()),
                        bytes_,
                        static_cast<std::uint64_t>(st.st_dev),
                        static_cast<std::uint64_t>(st.st_ino)};
    std::vector<std::byte> out(sizeof h);
    std::memcpy(out.data(), &h, sizeof h);
    return out;
  }

 private:
  static heap_tag make_tag() {
    heap_tag tag{};
    if (getrandom(tag.data(), sizeof tag, 0) != sizeof tag)
      fail(XIO_ERR_IO, "random bytes to name a heap: {}", errno_text(errno));
    return tag;
  }

  std::size_t bytes_;
  heap_tag tag_;
  unique_fd fd_;
  mapped memory_;
};

class peer_heap final : public mapping {
 public:
  peer_heap(int fd, std::size_t bytes) : memory_(fd, whole_pages(bytes), "a peer's heap") {}
  unsigned char* data() const override { return memory_.data(); }

 private:
  mapped memory_;
};

// A process that is there and keeps its descriptors to itself leaves other routes to its heap.
[[noreturn]] void refuse_peer(std::uint64_t pid, const std::string& path, int err) {
  const bool is_there = kill(static_cast<pid_t>(pid), 0) == 0;
  if (is_there && (err == EACCES || err == EPERM))
    fail(XIO_ERR_UNSUPPORTED,
         "{}: {}: process {} is not dumpable, since its program may not be read (chmod a+r it) or it changed its user",
         path, errno_text(err), pid);
  if (is_there && access("/proc/self/fd", X_OK) != 0)
    fail(XIO_ERR_UNSUPPORTED, "{}: {}: there is no /proc by which PEs find each other's heaps; mount it", path,
         errno_text(err));
  fail(XIO_ERR_PEER, "the heap of process {} ({}): {}; PEs of one machine must run as one user in one PID namespace",
       pid, path, errno_text(err));
}

}  // namespace

std::unique_ptr<heap> make_file_heap(std::size_t bytes) { return std::make_unique<shared_heap>(bytes); }

std::unique_ptr<mapping> map_file_heap(const std::vector<std::byte>& handle, std::size_t bytes) {
  const auto h = checked_handle<heap_handle>(handle, k_magic, bytes);
  const std::string path = fmt::format("/proc/{}/fd/{}", h.pid, h.fd);
  const unique_fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) refuse_peer(h.pid, path, errno);
  // Checked on our own descriptor: what we map is what we looked at.
  char target[128] = {};
  if (readlink(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), target, sizeof target - 1) < 0) target[0] = 0;
  struct stat st {};
  if (std::string_view(target).find(file_name(h.tag)) == std::string_view::npos || fstat(fd.get(), &st) != 0 ||
      st.st_dev != h.device || st.st_ino != h.inode || static_cast<std::uint64_t>(st.st_size) != whole_pages(bytes) ||
      (fcntl(fd.get(), F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    fail(XIO_ERR_PEER, "{} is not the heap that process {} announced; has that process restarted?", path, h.pid);
  return std::make_unique<peer_heap>(fd.get(), bytes);
}

}  // namespace xio::gpu
