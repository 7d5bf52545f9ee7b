// SPDX-License-Identifier: MIT
#include "amdgpu/driver/descriptors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>

#include "amdgpu/driver/memory_file.hpp"

namespace amdgpu {
namespace {

std::mutex lock;
// Never destroyed: threads still call at exit.
auto& kept = *new std::vector<int>;

}  // namespace

std::uint64_t number_of_file(int fd) {
  struct stat s {};
  return fd >= 0 && fstat(fd, &s) == 0 ? s.st_ino : 0;
}

int open_device_file(device_file kind) {
  // As the link in /proc/self/fd has it of the true file.
  unique_fd file(memfd_create(kind == device_file::kfd ? "amdgpu-kfd" : "dri/renderD", MFD_CLOEXEC));
  // So long that a mapping at any object's offset is one of the file (memory_objects.hpp).
  if (!file || ftruncate(file.get(), off_t{1} << 62) != 0) return -1;
  if (kind == device_file::kfd) keep_device_file(file.get());
  return file.release();
}

void keep_device_file(int fd) {
  const std::lock_guard hold(lock);
  kept.push_back(fcntl(fd, F_DUPFD_CLOEXEC, 200));  // out of the way of programs that count on low numbers
}

std::vector<int> kept_device_files() {
  const std::lock_guard hold(lock);
  return kept;
}

device_file device_file_of(int fd) {
  const std::string name = fd < 0 ? "" : name_of_file(fd);
  if (name.starts_with("/memfd:amdgpu-kfd")) return device_file::kfd;
  return name.starts_with("/memfd:dri/renderD") ? device_file::render : device_file::none;
}

}  // namespace amdgpu
