// SPDX-License-Identifier: MIT
// Where memory lives: what the GPU's runtime and the kernel say now, held against what was asked.
#pragma once
#include "gpu/memory.hpp"
#include "memory/mappings.hpp"

namespace xio::memory {

// The facts that can be found out about one block.
struct evidence {
  bool has_device_memory = false;  // the platform tells memory of the host from memory of the device
  gpu::location runtime;           // of the GPU's runtime
  std::vector<mapping> mapped;     // of the kernel, around the whole block
  page_state page;                 // of the address that was asked for
};

// "" if the block lives where its kind says, or what is not so.
std::string not_as_asked(const gpu::block& b, const evidence& e);

xio_mem_place_t where(const void* address);

}  // namespace xio::memory
