// SPDX-License-Identifier: MIT
// What a kernel gets of a ctx by value: the words that every op looks at, taken from the views on the device.
#pragma once
#include <cstdint>

#include "xio/device/view.hpp"
#include "xio/xio.h"

namespace xio {

// `view` is where the ctx lies on the device; the rest are copies that the host can read, peers one row for each PE.
inline xio_ctx_t ctx_value(dev::ctx_view* view, std::uint64_t id, const dev::ctx_view& c, const dev::world_view& w,
                           const dev::peer_view* peers) {
  xio_ctx_t ctx{};
  ctx.view = view;
  ctx.id = id;
  ctx.world = c.world;
  if (w.heap != nullptr) {
    ctx.arena = w.heap + sizeof(dev::heap_head);
    ctx.arena_bytes = w.heap_bytes - sizeof(dev::heap_head);
  }
  ctx.bulk_bytes = c.bulk_bytes;
  ctx.my_pe = w.my_pe;
  ctx.n_pes = w.n_pes;
  ctx.flags = dev::ctx_all_mapped;
  if (w.hdp.way != dev::hdp_way::none) ctx.flags |= dev::ctx_flushes_hdp;
  for (std::uint32_t pe = 0; pe < w.n_pes; ++pe) {
    const dev::peer_view& p = peers[pe];
    if (p.direct == nullptr || p.small != dev::route::direct || p.atomic != dev::route::direct) {
      ctx.flags &= ~std::uint32_t{dev::ctx_all_mapped};
    } else if (pe < XIO_CTX_NEAR) {
      ctx.near[pe] = p.direct + sizeof(dev::heap_head);
      ctx.near_mask |= 1u << pe;
    }
  }
  return ctx;
}

}  // namespace xio
