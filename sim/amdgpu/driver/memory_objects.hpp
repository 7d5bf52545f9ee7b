// SPDX-License-Identifier: MIT
// Memory that a process has from the driver: allocated, mapped to GPUs, shared, freed.
#pragma once
#include <memory>
#include <vector>

#include "amdgpu/driver/gate.hpp"
#include "amdgpu/driver/memory_file.hpp"
#include "amdgpu/driver/page_table.hpp"
#include "amdgpu/driver/settings.hpp"

namespace amdgpu {

// Calls return 0 or an errno, as the kernel's would.
class memory_objects {
 public:
  struct request {
    std::uint64_t va, bytes;
    std::uint32_t flags;  // kfd_uapi.hpp
    unsigned gpu;
    std::uint64_t user = 0;  // userptr: where the process has it; doorbells: where lanes' stores go, or 0
  };

  // `mapped` hears of every range that a GPU gains or loses, while no kernel runs.
  using listener = std::function<void(unsigned gpu, const mapping&, bool mapped)>;
  memory_objects(const settings& s, gate& g, std::vector<page_table>& tables, listener l);

  // doorbells: of that GPU, for memory that is its doorbells.
  int allocate(const request& r, int doorbells, std::uint64_t* handle);
  // Takes a file of another process, or of this one; with flags also registers of another device.
  int adopt(unique_fd file, std::uint64_t va, unsigned gpu, std::uint64_t* handle, std::uint32_t foreign_flags = 0);
  int free(std::uint64_t handle);
  // va, flags: of an object that has none yet.
  int map(std::uint64_t handle, unsigned gpu, std::uint64_t va = 0, std::uint32_t flags = 0);
  int unmap(std::uint64_t handle, unsigned gpu);
  // The process is about to unmap this range: registered memory that has a part there is lost to all GPUs, as it is
  // where the kernel cannot pin its pages again.
  void lose(std::uint64_t at, std::uint64_t bytes);
  // Where it is for GPUs; 0 if there is none.
  std::uint64_t base(std::uint64_t handle) const;
  // Its file: borrowed, or -1 if there is none.
  int file(std::uint64_t handle) const;
  // The file of the memory that holds [va, va + bytes), borrowed, and its place there; -1: no one piece does.
  int file_at(std::uint64_t va, std::uint64_t bytes, std::uint64_t* offset) const;
  std::uint64_t available(unsigned gpu) const;

  // mmap of a descriptor of ours at such an offset is for that object.
  static std::uint64_t offset_of(std::uint64_t handle) { return handle << k_offset_shift; }
  // Null and errno.
  void* mmap(void* at, std::uint64_t bytes, int protection, int flags, std::uint64_t offset);

 private:
  static constexpr unsigned k_offset_shift = 38;
  struct object {
    request of;
    unique_fd file;
    std::uint64_t file_bytes = 0;
    std::uint64_t gpus = 0;                           // that it is mapped to, a bit each
    bool in_process = false;                          // this process sees the file at va
    bool adopted = false;                             // another process made it, or it comes back
    bool counted = false;                             // against the GPU's memory
    std::unique_ptr<register_file> device = nullptr;  // of foreign registers
  };
  std::uint64_t keep(object&& o);
  void unmap_all(object& o);
  int show(std::uint64_t handle, object& o);
  mapping mapping_of(const object& o, unsigned gpu) const;

  const settings& settings_;
  gate& gate_;
  std::vector<page_table>& tables_;
  const listener listener_;
  mutable std::mutex lock_;
  std::map<std::uint64_t, object> objects_;
  std::uint64_t next_ = 1;
  std::vector<std::uint64_t> used_;  // bytes, by GPU
};

}  // namespace amdgpu
