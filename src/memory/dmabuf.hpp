// SPDX-License-Identifier: MIT
// dma-bufs of memory: what of xio_mem_export_dmabuf is the same on every platform.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/unique_fd.hpp"

namespace xio::memory {

struct dmabuf {
  int fd = -1;
  std::uint64_t offset = 0;
};

dmabuf export_dmabuf(void* address, std::size_t bytes, unsigned flags);
void close_dmabuf(int fd);

// The dma-buf by which a PCI device reaches [base, base + bytes): of a GPU's memory as its driver exports it, of host
// memory where it is mapped from a memory file, as the symmetric heap is, and of another device's memory the dma-buf
// that the program has mapped and keeps open. The descriptor is the caller's.
struct device_view {
  unique_fd file;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;  // of those asked for; fewer where the kernel makes no larger one: ask again for the rest
  bool on_gpu = false;
};
device_view view_for_device(void* base, std::size_t bytes);

}  // namespace xio::memory
