// SPDX-License-Identifier: MIT
// The addresses that drives behind vfio see: one IOMMU domain for all of a process, so that memory has the same address
// for each of its drives. Linux, Documentation/driver-api/vfio.rst; type 1.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/allocator.hpp"

namespace xio::nvme {

// Addresses that the IOMMU takes, handed out.
class iova_ranges {
 public:
  struct range {
    std::uint64_t first;
    std::uint64_t last;  // inclusive, as the kernel tells them
  };
  // page: a power of two. Page 0 is never handed out.
  iova_ranges(const std::vector<range>& ranges, std::uint64_t page);

  // bytes are whole pages. From 2 MiB on the address keeps its place in 2 MiB, so that the IOMMU can use large pages.
  // Throws XIO_ERR_NO_MEMORY.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t address);
  void give_back(std::uint64_t iova);

 private:
  struct part {
    std::uint64_t begin, end;
    memory::allocator free;
  };
  std::list<part> parts_;
  std::uint64_t page_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  // what was answered, and the block around it
};

// From the answer of VFIO_IOMMU_GET_INFO; what every x86 IOMMU has where the kernel does not say.
std::vector<iova_ranges::range> read_iova_ranges(const std::vector<std::byte>& info);

class vfio_space {
 public:
  // The one that some controller holds, or a new one. Throws when vfio is not there.
  static std::shared_ptr<vfio_space> get(const std::string& name);
  ~vfio_space();
  vfio_space(const vfio_space&) = delete;
  vfio_space& operator=(const vfio_space&) = delete;

  // Lets the devices of an opened group reach what is mapped.
  void join(int group, const std::string& name);
  // Answers the address of base for every device that joined. May be given the same range again, by another controller.
  std::uint64_t map(void* base, std::size_t bytes);
  // Takes back one map() of that base, of the shortest range if several begin there.
  void unmap(void* base);

 private:
  struct mapping {
    std::uintptr_t base;
    std::size_t bytes;
    std::uint64_t iova;  // of the page that base is in
    std::uint64_t mapped_bytes;
    unsigned users;
  };
  explicit vfio_space(const std::string& name);
  std::uint64_t map_pages(std::uint64_t first, std::uint64_t bytes);

  int container_ = -1;
  std::mutex lock_;
  std::unique_ptr<iova_ranges> addresses_;  // from the first group on
  std::vector<mapping> mappings_;
};

}  // namespace xio::nvme
