// SPDX-License-Identifier: MIT
// dma-bufs of memory: what of xio_mem_export_dmabuf is the same on every platform.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xio::memory {

struct dmabuf {
  int fd = -1;
  std::uint64_t offset = 0;
};

dmabuf export_dmabuf(void* address, std::size_t bytes, unsigned flags);
void close_dmabuf(int fd);

}  // namespace xio::memory
