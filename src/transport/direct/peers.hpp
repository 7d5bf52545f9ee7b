// SPDX-License-Identifier: MIT
// The direct route: heaps of the PEs on this machine, mapped into this address space.
#pragma once
#include "gpu/gpu.hpp"

namespace xio::direct {

class peers {
 public:
  // own: this PE's heap. Nobody else is mapped yet.
  peers(int n_pes, int me, gpu::heap& own);

  // Maps PE pe's heap. Throws with the PE and the cure where this process or its GPU cannot reach it.
  void map(int pe, const std::vector<std::byte>& handle, std::size_t bytes, gpu::heap_kind kind);

  // Start of PE pe's heap here, or null where it is not mapped.
  unsigned char* base(int pe) const { return bases_[static_cast<std::size_t>(pe)]; }
  const std::vector<unsigned char*>& bases() const { return bases_; }

 private:
  std::vector<unsigned char*> bases_;
  std::vector<std::unique_ptr<gpu::mapping>> mappings_;
};

}  // namespace xio::direct
