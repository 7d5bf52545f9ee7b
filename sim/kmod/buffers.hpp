// SPDX-License-Identifier: MIT
// dma-bufs of this process: memory of the AMD GPU in software, whose export is its memory file (tests/amdgpu), and what
// /dev/udmabuf makes of a memory file.
#pragma once
#include <linux/udmabuf.h>

#include <cstdint>

#include "base/unique_fd.hpp"

namespace kmod_sim {

struct buffer {
  xio::unique_fd file;
  std::uint64_t offset = 0, bytes = 0;
  bool of_gpu = false;
};

// 0, or the errno of dma_buf_get (drivers/dma-buf/dma-buf.c).
int find_buffer(int fd, buffer& out);
// As UDMABUF_CREATE (drivers/dma-buf/udmabuf.c): a descriptor, or -1 and errno. The memory file stays open until the
// process ends, as nobody hears of the descriptor's end.
int make_udmabuf(const udmabuf_create& wish);

}  // namespace kmod_sim
