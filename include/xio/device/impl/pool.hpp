// SPDX-License-Identifier: MIT
// How workgroups get contexts of a pool.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/sync.hpp"

namespace xio::dev {

// A free place of the pool, now taken; pool_count if there is none.
XIO_DEVICE u32 take_place(const ctx_view& c) {
  for (u32 base = 0; base < c.pool_count; base += 64) {
    u64* word = &c.pool_used[base / 64];
    const u32 here = c.pool_count - base < 64 ? c.pool_count - base : 64;
    const u64 all = here == 64 ? ~u64{0} : (u64{1} << here) - 1;
    for (u64 used = load<scope::agent, order::relaxed>(word); (used & all) != all;) {
      const u32 bit = lowest_bit(~used & all);
      // Acquire: what the last owner did on it is over.
      if (compare_exchange<scope::agent, order::acquire>(word, used, used | (u64{1} << bit))) return base + bit;
    }
  }
  return c.pool_count;
}

template <class Group>
XIO_DEVICE xio_status_t take_ctx(const Group& g, xio_ctx_t parent, xio_ctx_t* own) {
  *own = xio_ctx_t{};
  if (parent.view == nullptr) return XIO_ERR_STATE;
  const ctx_view& c = ctx_of(parent);
  const posted p = by_leader(g, [&] {
    const u32 place = c.pool == nullptr ? c.pool_count : take_place(c);
    return place == c.pool_count ? posted{0, ctx_fail(c, XIO_ERR_NO_MEMORY, call_of(call_kind::ctx_create_wg))}
                                 : posted{place, XIO_OK};
  });
  if (p.status != XIO_OK) return p.status;
  *own = parent;  // the same heaps, other queues
  own->view = &c.pool[p.request];
  return XIO_OK;
}

XIO_DEVICE xio_ctx_t ctx_of_pool(xio_ctx_t parent, u32 index) {
  if (parent.view == nullptr) return xio_ctx_t{};
  const ctx_view& c = ctx_of(parent);
  if (c.pool == nullptr || index >= c.pool_count) return xio_ctx_t{};
  parent.view = &c.pool[index];
  return parent;
}

template <class Group>
XIO_DEVICE xio_status_t give_back(const Group& g, xio_ctx_t parent, xio_ctx_t own) {
  if (parent.view == nullptr || own.view == nullptr) return XIO_ERR_STATE;
  const ctx_view& c = ctx_of(parent);
  const u64 place = static_cast<u64>(&ctx_of(own) - c.pool);
  if (c.pool == nullptr || place >= c.pool_count) return ctx_fail(c, XIO_ERR_ARG, call_of(call_kind::ctx_destroy_wg));
  g.sync();
  if (g.leader()) fetch_and<scope::agent, order::release>(&c.pool_used[place / 64], ~(u64{1} << (place & 63)));
  return XIO_OK;
}

}  // namespace xio::dev

XIO_DEVICE xio_status_t xio_ctx_create_wg(const xio_ctx_t& ctx, xio_ctx_t* own) {
  return xio::dev::take_ctx(xio::dev::workgroup_group::here(), ctx, own);
}
XIO_DEVICE xio_status_t xio_ctx_destroy_wg(const xio_ctx_t& ctx, xio_ctx_t* own) {
  const xio_status_t status = xio_quiet_wg(*own);
  const xio_status_t back = xio::dev::give_back(xio::dev::workgroup_group::here(), ctx, *own);
  *own = xio_ctx_t{};
  return status != XIO_OK ? status : back;
}
XIO_DEVICE xio_ctx_t xio_pool_ctx(const xio_ctx_t& ctx, uint32_t index) { return xio::dev::ctx_of_pool(ctx, index); }
