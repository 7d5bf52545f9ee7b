// SPDX-License-Identifier: MIT
#include "amdgpu/driver/descriptors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "amdgpu/driver/memory_file.hpp"

namespace amdgpu {
namespace {

// One file of each kind in a process; 0 until it is made.
std::atomic<ino_t> numbers[3];
std::atomic<int> originals[3];
std::mutex making;

int original_of(device_file kind) {
  const auto k = static_cast<unsigned>(kind);
  const std::lock_guard hold(making);
  if (numbers[k].load() != 0) return originals[k].load();
  unique_fd file(memfd_create(kind == device_file::kfd ? "amdgpu-kfd" : "amdgpu-render", MFD_CLOEXEC));
  if (!file) return -1;
  const int high = fcntl(file.get(), F_DUPFD_CLOEXEC, 200);
  if (high >= 0) file = unique_fd(high);
  struct stat s {};
  // So long that a mapping at any object's offset is one of the file (memory_objects.hpp).
  if (ftruncate(file.get(), off_t{1} << 62) != 0 || fstat(file.get(), &s) != 0) return -1;
  originals[k] = file.release();
  numbers[k] = s.st_ino;
  return originals[k].load();
}

}  // namespace

int open_device_file(device_file kind) {
  const int original = original_of(kind);
  return original < 0 ? -1 : fcntl(original, F_DUPFD_CLOEXEC, 3);
}

int kept_device_file(device_file kind) {
  const auto k = static_cast<unsigned>(kind);
  return numbers[k].load(std::memory_order_acquire) != 0 ? originals[k].load() : -1;
}

device_file device_file_of(int fd) {
  const ino_t kfd = numbers[1].load(std::memory_order_acquire), render = numbers[2].load(std::memory_order_acquire);
  if (fd < 0 || (kfd == 0 && render == 0)) return device_file::none;
  struct stat s {};
  if (fstat(fd, &s) != 0) return device_file::none;
  if (kfd != 0 && s.st_ino == kfd) return device_file::kfd;
  return render != 0 && s.st_ino == render ? device_file::render : device_file::none;
}

}  // namespace amdgpu
