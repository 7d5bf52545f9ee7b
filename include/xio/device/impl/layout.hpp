// SPDX-License-Identifier: MIT
// The number of the layout that the library writes and kernels read: xio_ctx_t and all that it points to. The library
// has that of its own headers, each file with kernels that of the headers it was compiled with, and worlds are refused
// where they differ. Sizes make a new number by themselves; XIO_CTX_LAYOUT is raised for all that they do not show.
#pragma once
#include <cstddef>
#include <cstdint>

#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

#ifndef XIO_CTX_LAYOUT
#define XIO_CTX_LAYOUT 7
#endif

namespace xio::dev {

constexpr std::uint32_t layout_of(std::uint32_t number) {
  constexpr std::size_t sizes[] = {sizeof(xio_ctx_t),  sizeof(xio_storage_t), sizeof(ctx_view),
                                   sizeof(world_view), sizeof(peer_view),     sizeof(ring_view),
                                   sizeof(ring_state), sizeof(region_view),   sizeof(storage_view),
                                   sizeof(hdp_view),   sizeof(heap_head),     sizeof(call_record)};
  std::uint32_t out = number;
  // FNV-1a, a size at a time.
  for (const std::size_t s : sizes) out = (out ^ static_cast<std::uint32_t>(s)) * 16777619u;
  return out;
}

constexpr std::uint32_t k_layout = layout_of(XIO_CTX_LAYOUT);

}  // namespace xio::dev
