// SPDX-License-Identifier: MIT
// Memory that a drive of the kernel module reaches: pinned by the module, under the addresses that the drive must use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "transport/nvme/kmod_module.hpp"

namespace xio::nvme {

class kmod_memory {
 public:
  // name: of the storage, for sentences.
  kmod_memory(const kmod_module& module, std::string name) : module_(module), name_(std::move(name)) {}
  ~kmod_memory();
  kmod_memory(const kmod_memory&) = delete;
  kmod_memory& operator=(const kmod_memory&) = delete;

  // Pins it and returns its bus address. Throws where it cannot be pinned, or is not contiguous on the bus.
  std::uint64_t map(void* base, std::size_t bytes);
  // Takes back one map() of that range. `in_use`: whether a command that was posted before this call may still name
  // the memory; it stays pinned until that is false, which is asked at later calls and by the destructor's caller.
  void unmap(void* base, std::size_t bytes, std::function<bool()> in_use);
  std::size_t waiting() const;  // pins that are kept for commands

 private:
  struct pinned {
    void* base;
    std::size_t bytes;
    std::uint32_t handle;
    std::uint64_t address;
    unsigned users;
  };
  struct leaving {
    std::uint32_t handle;
    std::function<bool()> in_use;
  };
  void release_unused();
  std::uint64_t contiguous(const kmod_module::pin& pin, std::uint64_t offset, std::size_t bytes,
                           const void* base) const;

  const kmod_module& module_;
  std::string name_;
  mutable std::mutex lock_;
  std::vector<pinned> pinned_;
  std::vector<leaving> leaving_;
};

}  // namespace xio::nvme
