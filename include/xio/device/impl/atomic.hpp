// SPDX-License-Identifier: MIT
// How atomics are done.
#pragma once
#include <type_traits>

#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/rma.hpp"

namespace xio::dev {

template <class T>
constexpr bool k_is_atomic_integer =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
constexpr bool k_is_atomic = k_is_atomic_integer<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

// Adds to a float or double by compare-and-swap of its bits. `found` is a first guess, and the old value at the end;
// swap(expected, value, &seen) does one attempt. Some caller's attempt always succeeds.
template <class T, class Swap>
XIO_DEVICE xio_status_t add_by_swaps(T operand, bits_of<T>& found, Swap&& swap) {
  for (;;) {
    const bits_of<T> expected = found;
    const xio_status_t status = swap(expected, bit_copy<bits_of<T>>(bit_copy<T>(expected) + operand), &found);
    if (status != XIO_OK || found == expected) return status;
  }
}

// Adds to a float or double at its mapped address; returns the old value.
template <class T>
XIO_DEVICE T add_float_at(T* at, T operand) {
  if constexpr (k_adds_floats) return fetch_add_float(at, operand);
  auto* bits = reinterpret_cast<bits_of<T>*>(at);
  bits_of<T> found = load<scope::system, order::relaxed>(bits);
  add_by_swaps<T>(operand, found, [&](bits_of<T> expected, bits_of<T> value, bits_of<T>* seen) {
    *seen = expected;
    compare_exchange<scope::system, direct::k_flag_change>(bits, *seen, value);
    return XIO_OK;
  });
  return bit_copy<T>(found);
}

// The same by an engine, which adds integers alone.
template <class T>
XIO_DEVICE xio_status_t add_float_by_engine(const ctx_view& c, route way, u32 pe, u64 offset, T operand, u64* old) {
  xio_status_t status = engine_atomic(c, way, pe, {offset, sizeof(T), amo::fetch, 0, 0}, true, old);
  if (status != XIO_OK) return status;
  auto found = static_cast<bits_of<T>>(*old);
  status = add_by_swaps<T>(operand, found, [&](bits_of<T> expected, bits_of<T> value, bits_of<T>* seen) {
    u64 there = 0;
    const xio_status_t one =
        engine_atomic(c, way, pe, {offset, sizeof(T), amo::compare_swap, value, expected}, true, &there);
    *seen = static_cast<bits_of<T>>(there);
    return one;
  });
  *old = found;
  return status;
}

// Changes the word by loads and stores at its mapped address. Returns the old value, if Fetch.
template <amo Op, bool Fetch, class T>
XIO_DEVICE T change_at(unsigned char* mapped, T operand, T compare) {
  T* at = reinterpret_cast<T*>(mapped);
  if constexpr (Op == amo::set && !Fetch) {
    store<scope::system, direct::k_flag_store>(at, operand);
    return T{};
  } else if constexpr (Op == amo::add && !k_is_atomic_integer<T>) {
    return add_float_at(at, operand);
  } else {
    return direct::atomic<Op>(at, operand, compare);
  }
}

template <amo Op, bool Fetch, class T>
XIO_SLOW_PATH xio_status_t change_slow(XIO_GIVEN(xio_ctx_t) ctx, T* dst, T operand, T compare, int pe, T* old) {
  u64 offset = 0, found = 0;
  constexpr auto kind =
      static_cast<call_kind>(static_cast<u32>(call_kind::atomic) + static_cast<u32>(Op) + (Fetch ? k_call_fetches : 0));
  const call what = call_of(kind, dst, nullptr, sizeof(T), pe);
  xio_status_t status = check_scalar(ctx, dst, sizeof(T), pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, what).status;
  const ctx_view& c = ctx_of(ctx);
  const peer_view& peer = c.peers[pe];
  if (scalar_is_direct(peer, peer.atomic)) {
    *old = change_at<Op, Fetch>(peer.direct + offset, operand, compare);
    return XIO_OK;
  }
  if constexpr (Op == amo::add && !k_is_atomic_integer<T>) {
    status = add_float_by_engine(c, peer.atomic, static_cast<u32>(pe), offset, operand, &found);
  } else {
    status = engine_atomic(c, peer.atomic, static_cast<u32>(pe),
                           {offset, sizeof(T), Op, bit_copy<bits_of<T>>(operand), bit_copy<bits_of<T>>(compare)}, Fetch,
                           &found);
  }
  if (status != XIO_OK) return refuse(ctx, status, what).status;
  *old = bit_copy<T>(static_cast<bits_of<T>>(found));
  return XIO_OK;
}

// Runs one atomic. *old is what was there, if Fetch.
template <amo Op, bool Fetch, class T>
XIO_DEVICE xio_status_t change(const xio_ctx_t& ctx, T* dst, T operand, T compare, int pe, T* old) {
  constexpr bool any_type = Op == amo::fetch || Op == amo::set || Op == amo::add;
  static_assert(any_type ? k_is_atomic<T> : k_is_atomic_integer<T>, "this atomic has no such type");
  if constexpr (Fetch) give_way();
  const mapped_place mapped = mapped_scalar<T>(ctx, dst, pe);
  if (!mapped.there) [[unlikely]] {
    // By a variable of its own: one whose address leaves would not be kept in a register.
    T found{};
    const xio_status_t status = change_slow<Op, Fetch>(ctx, dst, operand, compare, pe, &found);
    if (status == XIO_OK) *old = found;
    return status;
  }
  *old = change_at<Op, Fetch>(mapped.bytes(), operand, compare);
  return XIO_OK;
}

template <amo Op, class T>
XIO_DEVICE T fetch_change(const xio_ctx_t& ctx, T* dst, T operand, T compare, int pe) {
  T old{};
  change<Op, true>(ctx, dst, operand, compare, pe, &old);
  return old;
}

template <amo Op, class T>
XIO_DEVICE xio_status_t just_change(const xio_ctx_t& ctx, T* dst, T operand, int pe) {
  T unused{};
  return change<Op, false>(ctx, dst, operand, T{}, pe, &unused);
}

}  // namespace xio::dev

// --- The calls ---------------------------------------------------------------------------------------

template <class T>
XIO_DEVICE T xio_atomic_fetch(const xio_ctx_t& ctx, const T* src, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::fetch, T>(ctx, const_cast<T*>(src), T{}, T{}, pe);
}
template <class T>
XIO_DEVICE T xio_atomic_compare_swap(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> expected,
                                     std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::compare_swap, T>(ctx, dst, value, expected, pe);
}

#define XIO_DEFINE_CHANGE(name, change)                                                               \
  template <class T>                                                                                  \
  XIO_DEVICE xio_status_t name(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) { \
    return xio::dev::just_change<xio::dev::amo::change, T>(ctx, dst, value, pe);                      \
  }
#define XIO_DEFINE_FETCH(name, change)                                                     \
  template <class T>                                                                       \
  XIO_DEVICE T name(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) { \
    return xio::dev::fetch_change<xio::dev::amo::change, T>(ctx, dst, value, T{}, pe);     \
  }
XIO_DEFINE_CHANGE(xio_atomic_set, set)
XIO_DEFINE_CHANGE(xio_atomic_add, add)
XIO_DEFINE_CHANGE(xio_atomic_and, bit_and)
XIO_DEFINE_CHANGE(xio_atomic_or, bit_or)
XIO_DEFINE_CHANGE(xio_atomic_xor, bit_xor)
XIO_DEFINE_FETCH(xio_atomic_swap, set)
XIO_DEFINE_FETCH(xio_atomic_fetch_add, add)
XIO_DEFINE_FETCH(xio_atomic_fetch_and, bit_and)
XIO_DEFINE_FETCH(xio_atomic_fetch_or, bit_or)
XIO_DEFINE_FETCH(xio_atomic_fetch_xor, bit_xor)
#undef XIO_DEFINE_CHANGE
#undef XIO_DEFINE_FETCH

template <class T>
XIO_DEVICE xio_status_t xio_atomic_inc(const xio_ctx_t& ctx, T* dst, int pe) {
  static_assert(xio::dev::k_is_atomic_integer<T>, "this atomic has no such type");
  return xio_atomic_add(ctx, dst, T{1}, pe);
}
template <class T>
XIO_DEVICE T xio_atomic_fetch_inc(const xio_ctx_t& ctx, T* dst, int pe) {
  static_assert(xio::dev::k_is_atomic_integer<T>, "this atomic has no such type");
  return xio_atomic_fetch_add(ctx, dst, T{1}, pe);
}
