// SPDX-License-Identifier: MIT
// One GPU's view of the process: the memory mapped to it, and how each piece is cached. A range that find() allows is
// read and written in place, at mapping::host.
#pragma once
#include <cstdint>

namespace amdgpu {

// A device whose registers a test maps: each store that arrives is reported to it.
class register_file {
 public:
  virtual ~register_file() = default;
  virtual void written(std::uint64_t address, std::uint64_t value) = 0;
};

// One piece of memory that is mapped to the GPU.
struct mapping {
  enum class place { local, peer, host, doorbell, registers };
  enum class caching { coarse, fine, uncached };

  std::uint64_t base = 0, bytes = 0;
  // Where the process sees it. The same as base but for memory that a program registers (a userptr), which a GPU sees
  // at an address of its own.
  std::uint64_t host = 0;
  place where = place::local;
  caching how = caching::coarse;
  bool writable = true;
  unsigned owner = 0;               // the GPU whose memory it is, where place is local or peer
  register_file* device = nullptr;  // where place is registers, or null
};

// The page table of one GPU, as far as kernels are concerned. Calls come from every thread that runs waves.
class address_space {
 public:
  virtual ~address_space() = default;

  // The mapping that holds ADDRESS; null if none is mapped to this GPU, which makes an access a memory fault. The
  // pointer stays valid until generation() changes.
  virtual const mapping* find(std::uint64_t address) const = 0;

  // Changes when any mapping goes or comes. Cached results of find() are dropped then.
  virtual std::uint64_t generation() const = 0;
};

}  // namespace amdgpu
