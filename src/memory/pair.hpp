// SPDX-License-Identifier: MIT
// The same bytes twice, in memory of the host and of the device (xio/memory.h: xio_mem_pair_t).
#pragma once
#include <cstddef>

#include "xio/memory.h"

namespace xio::memory {

xio_mem_pair_t make_pair(xio_mem_kind_t host, xio_mem_kind_t device, std::size_t bytes, std::size_t alignment);
enum class direction { to_device, to_host };
void mirror(const xio_mem_pair_t& pair, direction way, std::size_t offset, std::size_t bytes);
void free_pair(xio_mem_pair_t& pair);

}  // namespace xio::memory
