// SPDX-License-Identifier: MIT
// What a kernel gets of a ctx by value: the words that every op looks at, taken from the views on the device.
#pragma once
#include "xio/device/impl/layout.hpp"

namespace xio {

// Whether loads and stores are the way of all but bulk copies.
inline bool is_mapped(const dev::peer_view& p) {
  return p.direct != nullptr && p.small == dev::route::direct && p.atomic == dev::route::direct;
}

// The first of the PEs whose arenas a kernel finds among its arguments: those around this one, which lie on its node.
// Where the node has more than there is room for, the ones beside this PE come first: they are neighbours most often.
inline std::uint32_t first_to_find(const dev::world_view& w, const dev::peer_view* peers) {
  std::uint32_t first = 0, end = w.n_pes;
  while (first < w.n_pes && !is_mapped(peers[first])) ++first;
  while (end > first && !is_mapped(peers[end - 1])) --end;
  if (end - first <= XIO_CTX_MAPPED) return first == w.n_pes ? 0 : first;
  const std::uint32_t half = XIO_CTX_MAPPED / 2;
  if (w.my_pe < first + half) return first;
  return w.my_pe - half < end - XIO_CTX_MAPPED ? w.my_pe - half : end - XIO_CTX_MAPPED;
}

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
  ctx.layout = dev::k_layout;
  ctx.my_pe = w.my_pe;
  ctx.n_pes = w.n_pes;
  ctx.flags = dev::ctx_all_mapped;
  if (w.hdp.way != dev::hdp_way::none) ctx.flags |= dev::ctx_flushes_hdp;
  ctx.mapped_first = first_to_find(w, peers);
  for (std::uint32_t pe = 0; pe < w.n_pes; ++pe) {
    if (peers[pe].small == dev::route::excluded) ctx.flags |= dev::ctx_has_holes;
    if (!is_mapped(peers[pe])) {
      ctx.flags &= ~std::uint32_t{dev::ctx_all_mapped};
    } else if (const std::uint32_t place = pe - ctx.mapped_first; place < XIO_CTX_MAPPED) {
      ctx.mapped[pe % XIO_CTX_MAPPED] = peers[pe].direct + sizeof(dev::heap_head);
      ctx.mapped_mask |= 1u << place;
    }
  }
  return ctx;
}

}  // namespace xio
