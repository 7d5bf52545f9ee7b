// SPDX-License-Identifier: MIT
// What a platform knows of memory by kind (xio/memory.h): taking it, finding it, exporting it. Implemented by
// host/memory.cpp, and by accelerator_memory.hpp over hip_memory.hpp and cuda_memory.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "xio/memory.h"

namespace xio::gpu {

// One piece of memory of a kind, in whole pages or the units that the platform gives it in.
struct block {
  xio_mem_kind_t kind = XIO_MEM_NONE;
  void* base = nullptr;
  std::size_t bytes = 0;     // usable
  void* range = nullptr;     // what was taken for it: more than [base, base + bytes) where it had to be aligned
  std::size_t whole = 0;     // bytes of range
  std::uint64_t handle = 0;  // VMEM: of the memory behind the addresses
  int file = -1;             // VMEM on the host: likewise
  int device = -1;
};

// "" if the platform has memory of that kind, or the sentence why not.
std::string lacks(xio_mem_kind_t kind);

// Zeroed. bytes is not 0, alignment a power of two of a page at least; both are checked. Throws XIO_ERR_NO_MEMORY and,
// where a driver lacks what the platform has, XIO_ERR_UNSUPPORTED.
block take(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment);
// Gives back a block of take(); a failure goes to the log.
void give_back(const block& b) noexcept;

enum class residence { unknown, host, device, both };

// The GPU runtime's description of an address. unknown: it does not know it. `registered`: host memory that it holds.
struct location {
  residence where = residence::unknown;
  bool registered = false;
  int device = -1;
  void* base = nullptr;  // of the allocation around it, if known
  std::size_t bytes = 0;
};
location locate(const void* address);
// "0000:3b:00.0", or "".
std::string bus_id_of(int device);
// As identity() in gpu.hpp.
std::string identity_of(int device);
// Whether device memory is other memory than the host's.
bool has_device_memory();

// The descriptor of a dma-buf that [base, base + bytes) lies in, the caller's to close, and its place in it. from is
// the block it is in, or null for memory that the library did not take. Throws the reason why there is none.
int export_dmabuf(const block* from, void* base, std::size_t bytes, bool pcie, std::uint64_t* offset);

}  // namespace xio::gpu
