// SPDX-License-Identifier: MIT
// How copies through shared memory are done.
#pragma once
#include "xio/device/impl/rma.hpp"

namespace xio::dev {

// Memory of the caller's workgroup through which a copy goes.
struct stage_memory {
  void* at;
  u64 bytes;
};

#if defined(XIO_HAS_BULK_COPY)

constexpr u64 k_least_stage = 4096;

template <direct::source From>
XIO_DEVICE xio_status_t staged_copy(const xio_ctx_t& ctx, unsigned char* to, const unsigned char* from, u64 bytes,
                                    const stage_memory& stage) {
  const thread_group me = thread_group::here();
  const bool fits = stage.at != nullptr && stage.bytes >= k_least_stage &&
                    (reinterpret_cast<u64>(stage.at) & 127) == 0 &&
                    ((reinterpret_cast<u64>(to) ^ reinterpret_cast<u64>(from)) & 15) == 0;
  u64 head = (16 - (reinterpret_cast<u64>(to) & 15)) & 15;
  if (!fits || bytes < head + 512) {
    direct::move<From>(me, to, from, bytes);
    return XIO_OK;
  }
  const u64 middle = (bytes - head) / 16 * 16;
  direct::move<From>(me, to, from, head);
  direct::move<From>(me, to + head + middle, from + head + middle, bytes - head - middle);
  return bulk::copy([&] { return deadline::in(world_of(ctx)); }, to + head, from + head, middle,
                    {static_cast<unsigned char*>(stage.at), stage.bytes},
                    From == direct::source::peer ? bulk::k_ahead_of_peer : bulk::k_ahead_of_own);
}

XIO_DEVICE xio_status_t put_staged(const xio_ctx_t& ctx, call_copy a, int pe, const stage_memory& stage) {
  const mapped_place mapped = mapped_address(ctx, a.dst, a.bytes, pe);
  if (!mapped.there || a.bytes == 0 || a.src == nullptr) return put(thread_group::here(), ctx, a, pe, true).status;
  const auto* from = static_cast<const unsigned char*>(a.src);
  const xio_status_t status = staged_copy<direct::source::own>(ctx, mapped.bytes(), from, a.bytes, stage);
  return status == XIO_OK ? status : refuse(ctx, status, call_of(call_kind::put, a.dst, a.src, a.bytes, pe)).status;
}

XIO_DEVICE xio_status_t get_staged(const xio_ctx_t& ctx, call_copy a, int pe, const stage_memory& stage) {
  const mapped_place mapped = mapped_address(ctx, a.src, a.bytes, pe);
  if (!mapped.there || a.bytes == 0 || a.dst == nullptr) return get(thread_group::here(), ctx, a, pe, true).status;
  auto* to = static_cast<unsigned char*>(a.dst);
  const xio_status_t status = staged_copy<direct::source::peer>(ctx, to, mapped.bytes(), a.bytes, stage);
  return status == XIO_OK ? status : refuse(ctx, status, call_of(call_kind::get, a.src, a.dst, a.bytes, pe)).status;
}

#else

XIO_DEVICE xio_status_t put_staged(const xio_ctx_t& ctx, call_copy a, int pe, const stage_memory&) {
  return put(thread_group::here(), ctx, a, pe, true).status;
}
XIO_DEVICE xio_status_t get_staged(const xio_ctx_t& ctx, call_copy a, int pe, const stage_memory&) {
  return get(thread_group::here(), ctx, a, pe, true).status;
}

#endif

}  // namespace xio::dev

XIO_DEVICE xio_status_t xio_put_staged(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, void* stage,
                                       size_t stage_bytes, int pe) {
  return xio::dev::put_staged(ctx, {dst, src, bytes}, pe, {stage, stage_bytes});
}
XIO_DEVICE xio_status_t xio_get_staged(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, void* stage,
                                       size_t stage_bytes, int pe) {
  return xio::dev::get_staged(ctx, {dst, src, bytes}, pe, {stage, stage_bytes});
}
