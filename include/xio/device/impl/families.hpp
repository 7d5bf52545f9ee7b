// SPDX-License-Identifier: MIT
// The NIC families that the RDMA lane speaks. The host chose one when it made the ring; here that is one jump per post
// and per reap, the same for all lanes of a ring. (Pointers to device functions would cost more: the compiler must then
// assume the most registers of all.)
#pragma once
#include <type_traits>

#include "xio/device/impl/bnxt.hpp"
#include "xio/device/impl/ernic.hpp"
#include "xio/device/impl/ionic.hpp"
#include "xio/device/impl/mlx5.hpp"
#include "xio/device/impl/proxy.hpp"
#include "xio/device/impl/selection.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::dev::rdma {

// A family's codec has all that work.hpp asks of it.
template <class Codec>
concept nic_family_codec = held_codec<Codec> && requires(const ring_view& r, u64 ticket, const work& w) {
  typename std::integral_constant<u32, Codec::k_slot_bytes>;
  requires std::is_same_v<decltype(Codec::slots(w)), u32>;
  requires std::is_same_v<decltype(Codec::packets(r, w)), u32>;
  Codec::encode(r, ticket, ticket, true, w);
  requires Codec::k_in_order;  // a queue pair does, and waits stand on it
};
static_assert(nic_family_codec<mlx5_codec>, "mlx5_codec lacks what ring.hpp and work.hpp ask of a family's codec");
static_assert(nic_family_codec<bnxt_codec>, "bnxt_codec lacks what ring.hpp and work.hpp ask of a family's codec");
static_assert(nic_family_codec<ionic_codec>, "ionic_codec lacks what ring.hpp and work.hpp ask of a family's codec");
static_assert(nic_family_codec<ernic_codec>, "ernic_codec lacks what ring.hpp and work.hpp ask of a family's codec");
static_assert(nic_family_codec<proxy_codec>, "proxy_codec lacks what ring.hpp and work.hpp ask of a family's codec");

// A family of those that a program may leave out, and those it has.
template <ring_kind Kind, nic_family_codec Codec>
struct family {
  static constexpr ring_kind k_kind = Kind;
  using codec = Codec;
};
template <class... Families>
struct family_list {};
template <class... Some, class... More>
constexpr family_list<Some..., More...> operator+(family_list<Some...>, family_list<More...>) {
  return {};
}
template <ring_kind Kind, nic_family_codec Codec>
using if_chosen = std::conditional_t<has_family(Kind), family_list<family<Kind, Codec>>, family_list<>>;
using chosen_families = decltype(if_chosen<ring_kind::mlx5, mlx5_codec>{} + if_chosen<ring_kind::bnxt, bnxt_codec>{} +
                                 if_chosen<ring_kind::ionic, ionic_codec>{} +
                                 if_chosen<ring_kind::ernic, ernic_codec>{} +
                                 if_chosen<ring_kind::proxy, proxy_codec>{});

// The last one needs no test: the host refuses rings of families that are not there.
template <class First, class... Rest, class Body>
XIO_DEVICE auto with_one_of(family_list<First, Rest...>, ring_kind kind, Body&& body) {
  if constexpr (sizeof...(Rest) == 0) {
    return body(typename First::codec{});
  } else {
    if (kind == First::k_kind) return body(typename First::codec{});
    return with_one_of(family_list<Rest...>{}, kind, body);
  }
}

// body(codec), a value of the family's codec type, which is empty.
template <class Body>
XIO_DEVICE auto with_kind(ring_kind kind, Body&& body) {
  return with_one_of(chosen_families{}, kind, body);
}
template <class Body>
XIO_DEVICE auto with_family(const ring_view& r, Body&& body) {
  return with_kind(r.kind, body);
}

// Whether a family has entries into which lanes write their own bytes.
template <class Family>
constexpr bool k_gathers = requires(const ring_view& r) {
  Family::inline_at(r, u64{0}, u32{0});
};

// Of those that gather; a ring of another kind has gather_bytes of 0, and nobody asks.
XIO_DEVICE unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
  return with_family(r, [&](auto family) -> unsigned char* {
    if constexpr (k_gathers<decltype(family)>) return decltype(family)::inline_at(r, ticket, i);
    return nullptr;
  });
}

// Several families as one codec: the ring's own code is there once, and only what differs is chosen, by the wave.
template <class... Families>
constexpr bool k_has_serial(family_list<Families...>) {
  return (k_ring_is_serial<typename Families::codec> || ...);
}
struct serial_codec {
  static constexpr bool k_serial = true;
};
struct plain_codec {};
template <class Families>
struct codec_of : std::conditional_t<k_has_serial(Families{}), serial_codec, plain_codec> {
  static constexpr bool k_in_order = true;
  static constexpr bool k_tries = true;
  // The family's own fields travel as words, of which its codec makes fields again.
  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) {
    rdma::take_view(from, to);
    XIO_UNROLL
    for (u32 i = 0; i < sizeof from.rdma.family_words / 8; ++i)
      to->rdma.family_words[i] = view_field(from.rdma.family_words[i]);
  }
  XIO_DEVICE static bool is_serial(const ring_view& r) {
    return chosen(r, [](auto family) { return k_ring_is_serial<decltype(family)>; });
  }
  XIO_DEVICE static bool announce(const ring_view& r, u64 from, u64 to) {
    return chosen(r, [&](auto family) { return ring_announce<decltype(family)>(r, from, to); }) != 0;
  }
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    return chosen(r, [&](auto family) { return decltype(family)::drain(r, completed); });
  }
  XIO_DEVICE static u32 slots(const ring_view& r, const work& w) {
    return chosen(r, [&](auto family) { return decltype(family)::slots(w); });
  }
  XIO_DEVICE static u32 packets(const ring_view& r, const work& w) {
    return chosen(r, [&](auto family) { return decltype(family)::packets(r, w); });
  }
  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64 serial, bool ask, const work& w) {
    chosen(r, [&](auto family) { decltype(family)::encode(r, ticket, serial, ask, w); });
  }

 private:
  template <class Body>
  XIO_DEVICE static auto chosen(const ring_view& r, Body&& body) {
    return with_one_of(Families{}, r.kind, body);
  }
};
using nic_codec = codec_of<chosen_families>;
static_assert(held_codec<nic_codec>, "nic_codec lacks what ring.hpp asks of a codec");

// body(codec): what a leaf posts by. ConnectX has a leaf of its own, all others have one together: with its entries in
// it, too, an op of ConnectX would execute a seventh more (docs/decisions/0131-leaves.md). `kind` is one for all lanes
// that are here.
template <class First, class... Rest, class Body>
XIO_DEVICE auto with_leaf_codec(family_list<First, Rest...>, ring_kind kind, Body&& body) {
  if constexpr (First::k_kind == ring_kind::mlx5 && sizeof...(Rest) != 0) {
    if (kind == ring_kind::mlx5) [[likely]]
      return body(codec_of<family_list<First>>{});
    return body(codec_of<family_list<Rest...>>{});
  } else {
    return body(codec_of<family_list<First, Rest...>>{});
  }
}

}  // namespace xio::dev::rdma
