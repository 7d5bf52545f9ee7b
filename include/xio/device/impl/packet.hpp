// SPDX-License-Identifier: MIT
// How packets are written and read.
#pragma once
#include "xio/device/impl/rma.hpp"
#include "xio/device/impl/wait.hpp"

namespace xio::dev {

constexpr u32 k_packet_bytes = 64;
constexpr u32 k_packet_words = k_packet_bytes / 4;

XIO_DEVICE bool is_message(const void* local, u64 bytes) {
  return bytes != 0 && bytes <= k_packet_bytes && (bytes & 3) == 0 && local != nullptr &&
         (reinterpret_cast<u64>(local) & 3) == 0;
}
XIO_DEVICE bool can_hold_packet(const void* at) { return (reinterpret_cast<u64>(at) & 7) == 0; }

XIO_SLOW_PATH xio_status_t refuse_packet(xio_ctx_t ctx, const void* dst, u64 bytes, int pe) {
  u64 offset = 0;
  const xio_status_t status = check_target(ctx, dst, 2 * bytes, pe, &offset);
  return refuse(ctx, status == XIO_OK ? XIO_ERR_ARG : status, call_of(call_kind::put_packet, dst, nullptr, bytes, pe))
      .status;
}

struct packet_data {
  u32 words[k_packet_words];
};

// Word by word by another way.
XIO_SLOW_PATH xio_status_t put_packet_slow(xio_ctx_t ctx, void* dst, packet_data data, u64 bytes, u32 flag, int pe) {
  u64 offset = 0;
  xio_status_t status = check_target(ctx, dst, 2 * bytes, pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, call_of(call_kind::put_packet, dst, nullptr, bytes, pe)).status;
  for (u32 i = 0; i < bytes / 4 && status == XIO_OK; ++i)
    status = put_scalar<u64>(ctx, static_cast<u64*>(dst) + i, (u64{flag} << 32) | data.words[i], pe);
  return status;
}

// Whether words go two at a time: fewer accesses, each word still whole.
XIO_DEVICE bool packet_pairs(const u64* at) { return k_has_pairs && (reinterpret_cast<u64>(at) & 15) == 0; }

// Four words of a packet from word i on, as far as they are there. `Pairs` where packet_pairs(); nothing is stored if
// not `good`.
template <bool Pairs>
XIO_DEVICE void store_packet_words(bool good, u64* out, u32 i, u32 words, const u64* data) {
  XIO_UNROLL for (u32 k = 0; k < 4; k += 2) {
    if constexpr (Pairs) {
      if (i + k + 1 < words) store_pair_if(good, out + i + k, data[k], data[k + 1]);
      if (i + k + 1 == words) direct::store_if(good, out + i + k, data[k]);
      continue;
    }
    if (i + k < words) direct::store_if(good, out + i + k, data[k]);
    if (i + k + 1 < words) direct::store_if(good, out + i + k + 1, data[k + 1]);
  }
}
template <bool Pairs>
XIO_DEVICE void load_packet_words(const u64* in, u32 i, u32 words, u64* data) {
  XIO_UNROLL for (u32 k = 0; k < 4; k += 2) {
    if constexpr (Pairs) {
      if (i + k + 1 < words) load_pair(in + i + k, data[k], data[k + 1]);
      if (i + k + 1 == words) data[k] = load<scope::system, direct::k_flag_load>(in + i + k);
      continue;
    }
    if (i + k < words) data[k] = load<scope::system, direct::k_flag_load>(in + i + k);
    if (i + k + 1 < words) data[k + 1] = load<scope::system, direct::k_flag_load>(in + i + k + 1);
  }
}

// From src, four words at a time: their loads are under way together.
template <bool Pairs>
XIO_DEVICE void store_packet(bool good, u64* out, const u32* in, u32 words, u32 flag) {
  if (!k_has_predicates && !good) return;
  XIO_UNROLL for (u32 base = 0; base < k_packet_words; base += 4) {
    if (base >= words) break;
    u64 data[4];
    XIO_UNROLL for (u32 k = 0; k < 4; ++k) data[k] = (u64{flag} << 32) | in[base + k < words ? base + k : base];
    store_packet_words<Pairs>(good, out, base, words, data);
  }
}

XIO_DEVICE xio_status_t put_packet(const xio_ctx_t& ctx, void* dst, const void* src, u64 bytes, u32 flag, int pe) {
  // No heap is smaller than a packet, and what is none goes no further.
  const mapped_place mapped = mapped_until(ctx, dst, ctx.arena_bytes - 2 * bytes, pe, can_hold_packet(dst));
  if (!is_message(src, bytes)) [[unlikely]]
    return refuse_packet(ctx, dst, bytes, pe);
  const bool good = mapped.there;
  auto* out = reinterpret_cast<u64*>(mapped.at);
  const auto* in = static_cast<const u32*>(src);
  const u32 words = static_cast<u32>(bytes / 4);
  if (k_has_pairs && words > 1 && packet_pairs(out)) {
    store_packet<k_has_pairs>(good, out, in, words, flag);
  } else {
    store_packet<false>(good, out, in, words, flag);
  }
  if (good) [[likely]]
    return XIO_OK;
  if (!can_hold_packet(dst)) return refuse_packet(ctx, dst, bytes, pe);
  // The message goes on by value: where it stays in registers it has no address that a function could be given.
  packet_data data{};
  XIO_UNROLL for (u32 i = 0; i < k_packet_words; ++i) if (i < words) data.words[i] = in[i];
  return put_packet_slow(ctx, dst, data, bytes, flag, pe);
}

// The words of a packet, four at a time: loads of a batch are under way together, and nothing looks at them before the
// last one was asked for.
struct packet_words {
  u64 at[k_packet_words];

  template <bool Pairs>
  XIO_DEVICE void load_from(const u64* in, u32 words) {
    XIO_UNROLL for (u32 base = 0; base < k_packet_words; base += 4) {
      if (base >= words) break;
      load_packet_words<Pairs>(in, base, words, at + base);
    }
  }
  XIO_DEVICE bool carry(u32 flag, u32 words) const {
    u32 wrong = 0;
    XIO_UNROLL for (u32 i = 0; i < k_packet_words; ++i) if (i < words) wrong |= static_cast<u32>(at[i] >> 32) ^ flag;
    return wrong == 0;
  }
  XIO_DEVICE void store_to(u32* out, u32 words) const {
    XIO_UNROLL for (u32 i = 0; i < k_packet_words; ++i) if (i < words) out[i] = static_cast<u32>(at[i]);
  }
};

template <class How>
XIO_DEVICE xio_status_t poll_packet(const xio_ctx_t& ctx, void* dst, const void* packet, u64 bytes, u32 flag) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  if (packet == nullptr || !can_hold_packet(packet) || !is_message(dst, bytes)) [[unlikely]]
    return refuse(ctx, XIO_ERR_ARG, call_of(How::k_kind, packet, bytes)).status;
  const auto* in = static_cast<const u64*>(packet);
  const u32 words = static_cast<u32>(bytes / 4);
  const bool pairs = words > 1 && packet_pairs(in);
  packet_words found{};
  const auto come = [&] {
    if (pairs) {
      found.load_from<true>(in, words);
    } else {
      found.load_from<false>(in, words);
    }
    return found.carry(flag, words);
  };
  const auto take = [&] {
    found.store_to(static_cast<u32*>(dst), words);
    return XIO_OK;
  };
  return How{}(ctx, come, take, [&](u64 since) {
    record_wait({How::k_kind, k_no_pe, packet, 8, XIO_CMP_EQ, words, flag, found.at[0] >> 32}, ctx_of(ctx), since);
    return XIO_ERR_TIMEOUT;
  });
}

// How a packet is waited for: what it says is in its words, so nothing else need become visible.
struct packet_stay {
  static constexpr call_kind k_kind = call_kind::wait_packet;
  template <class Done, class Then, class Late>
  XIO_DEVICE xio_status_t operator()(const xio_ctx_t& ctx, Done&& done, Then&& then, Late&& late) const {
    return poll_then(ctx, done, then, late);
  }
};
struct packet_poll {
  static constexpr call_kind k_kind = call_kind::test_packet;
  template <class Done, class Then, class Late>
  XIO_DEVICE xio_status_t operator()(const xio_ctx_t& ctx, Done&& done, Then&& then, Late&&) const {
    give_way();
    if (done()) return then();
    if (!hdp_is_on(ctx)) return XIO_PENDING;
    if (const xio_status_t status = hdp_flush(ctx); status != XIO_OK) return status;
    return done() ? then() : XIO_PENDING;
  }
};

}  // namespace xio::dev

XIO_DEVICE xio_status_t xio_put_packet(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint32_t flag,
                                       int pe) {
  return xio::dev::put_packet(ctx, dst, src, bytes, flag, pe);
}
XIO_DEVICE xio_status_t xio_wait_packet(const xio_ctx_t& ctx, void* dst, const void* packet, size_t bytes,
                                        uint32_t flag) {
  return xio::dev::poll_packet<xio::dev::packet_stay>(ctx, dst, packet, bytes, flag);
}
XIO_DEVICE xio_status_t xio_test_packet(const xio_ctx_t& ctx, void* dst, const void* packet, size_t bytes,
                                        uint32_t flag) {
  return xio::dev::poll_packet<xio::dev::packet_poll>(ctx, dst, packet, bytes, flag);
}
