// SPDX-License-Identifier: MIT
// Files that hold a GPU's memory: memfds, whose names say what they are, so that a descriptor tells it to every process
// that gets it: as a DMA-buf, or by a handle for IPC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace amdgpu {

class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~unique_fd();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The kind of memory that a file's name says.
struct memory_kind_of_file {
  std::uint32_t gpu_id, flags;  // flags as in kfd_uapi.hpp
};

// An empty descriptor and errno, if the host has no room.
unique_fd make_memory_file(const memory_kind_of_file& kind, std::uint64_t bytes);
std::optional<memory_kind_of_file> kind_of_file(int fd);
std::string name_of_file(int fd);  // as /proc has it
std::uint64_t bytes_of_file(int fd);
// Registers of another device, as their driver has exported them: a memfd of the name `registers`.
bool is_register_file(int fd);

// A handle for IPC: process, descriptor, and the file's number so that a descriptor that was used again is found out.
void name_for_others(int fd, std::uint32_t share[4]);
// Opens what such a handle names; an empty descriptor and errno if it is gone.
unique_fd open_by_name(const std::uint32_t share[4]);

// The kernel's own calls: a library that hooks mmap sees nothing of them. Null, and errno.
void* map_at(std::uint64_t address, std::uint64_t bytes, int protection, int fd, std::uint64_t offset);
void* map_anywhere(std::uint64_t bytes, int fd);

}  // namespace amdgpu
