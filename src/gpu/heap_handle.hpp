// SPDX-License-Identifier: MIT
// What every platform checks of a heap handle that a peer sent, before it opens anything by it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace xio::gpu {

// Handle is the platform's own struct, with the members magic and bytes.
template <class Handle>
Handle checked_handle(const std::vector<std::byte>& blob, std::uint64_t magic, std::size_t bytes) {
  Handle h{};
  if (blob.size() != sizeof h)
    fail(XIO_ERR_PEER, "a peer's heap handle has {} bytes, not {}; is it the same XIO?", blob.size(), sizeof h);
  std::memcpy(&h, blob.data(), sizeof h);
  if (h.magic != magic || h.bytes != bytes)
    fail(XIO_ERR_PEER, "a peer's heap handle is for {} bytes, expected {}; give every PE the same XIO_HEAP_SIZE",
         h.bytes, bytes);
  return h;
}

}  // namespace xio::gpu
