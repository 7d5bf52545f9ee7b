// SPDX-License-Identifier: MIT
// Memory that a drive of the kernel module reaches: pinned by the module, under the addresses that the drive must use.
#pragma once
#include <mutex>

#include "gpu/gpu.hpp"
#include "transport/nvme/kmod_module.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::nvme {

// Memory in several parts as kernels find it: the rows of xio/device/impl/bus_rows.hpp, in their memory. Equal ones are
// one table, so that drives that see memory alike share it.
class row_table {
 public:
  // runs: the first begins at 0. bytes: where the last ends.
  static std::shared_ptr<const row_table> of(const std::vector<kmod_module::run>& runs, std::uint64_t bytes);
  row_table(std::vector<std::uint64_t> rows, std::uint32_t shift);
  std::uint64_t word() const;  // as region_view::rows
  std::uint64_t address_of(std::uint64_t offset) const { return rows_[offset >> shift_] + (dev::k_in_runs | offset); }
  const std::vector<std::uint64_t>& rows() const { return rows_; }
  std::uint32_t shift() const { return shift_; }

 private:
  std::vector<std::uint64_t> rows_;
  std::uint32_t shift_;
  gpu::buffer for_kernels_;
};

class kmod_memory {
 public:
  // name: of the storage, for sentences.
  kmod_memory(const kmod_module& module, std::string name) : module_(module), name_(std::move(name)) {}
  ~kmod_memory();
  kmod_memory& operator=(kmod_memory&&) = delete;

  // Pins it and returns its bus address as controller::map. Throws where it cannot be pinned.
  std::uint64_t map(void* base, std::size_t bytes);
  std::uint64_t rows_of(void* base, std::size_t bytes) const;  // as controller::rows_of
  // Bus address of `at`, which is in that range.
  std::uint64_t address_of(void* at, void* base, std::size_t bytes) const;
  // Takes back one map() of that range. `in_use`: whether a command that was posted before this call may still name
  // the memory; it stays pinned until that is false, which is asked at later calls and by the destructor's caller.
  void unmap(void* base, std::size_t bytes, std::function<bool()> in_use);
  std::size_t waiting() const;  // pins that are kept for commands
  std::string trouble() const;  // "" or what happened to a pin

 private:
  struct pinned {
    void* base;
    std::size_t bytes;
    std::vector<std::uint32_t> handles;  // of as many pins as it takes
    std::uint64_t address;
    std::shared_ptr<const row_table> table;  // of memory in parts
    unsigned users;
    bool on_gpu;
  };
  struct leaving {
    std::vector<std::uint32_t> handles;
    std::shared_ptr<const row_table> table;
    std::function<bool()> in_use;
  };
  void release_unused();
  // Memory as its pins have it, one behind the other.
  struct joined {
    std::vector<std::uint32_t> handles;
    std::vector<kmod_module::run> runs;
    std::uint64_t offset;  // of the memory in the first
    bool on_gpu;
  };
  joined pin_all(void* base, std::size_t bytes) const;
  void add(joined& to, const kmod_module::pin& pin) const;
  void release(const std::vector<std::uint32_t>& handles) const;
  pinned place(const joined& whole, void* base, std::size_t bytes) const;

  const kmod_module& module_;
  std::string name_;
  mutable std::mutex lock_;
  std::vector<pinned> pinned_;
  std::vector<leaving> leaving_;
};

}  // namespace xio::nvme
