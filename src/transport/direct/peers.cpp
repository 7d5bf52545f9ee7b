// SPDX-License-Identifier: MIT
#include "transport/direct/peers.hpp"
#include "base/error.hpp"

namespace xio::direct {

peers::peers(int n_pes, int me, gpu::heap& own) : bases_(static_cast<std::size_t>(n_pes)) {
  bases_[static_cast<std::size_t>(me)] = own.data();
}

void peers::map(int pe, const std::vector<std::byte>& handle, std::size_t bytes, gpu::heap_kind kind) {
  try {
    mappings_.push_back(gpu::map_heap(handle, bytes, kind));
  } catch (const error& e) {
    fail(e.status(), "the heap of PE {} on this machine cannot be mapped: {}", pe, e.what());
  }
  bases_[static_cast<std::size_t>(pe)] = mappings_.back()->data();
}

}  // namespace xio::direct
