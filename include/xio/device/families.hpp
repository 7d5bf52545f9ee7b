// SPDX-License-Identifier: MIT
// The NIC families that the RDMA lane speaks. The host chose one when it made the ring; here that is one jump per post
// and per reap, the same for all lanes of a ring. (Pointers to device functions would cost more: the compiler must then
// assume the most registers of all.)
#pragma once
#include <type_traits>

#include "xio/device/bnxt.hpp"
#include "xio/device/ernic.hpp"
#include "xio/device/ionic.hpp"
#include "xio/device/mlx5.hpp"
#include "xio/device/proxy.hpp"
#include "xio/device/selection.hpp"
#include "xio/device/view.hpp"

namespace xio::dev::rdma {

XIO_DEVICE bool is_nic(ring_kind kind) { return k_has_rdma && (kind == ring_kind::mlx5 || kind >= ring_kind::bnxt); }

// A family of those that a program may leave out, and those it has.
template <ring_kind Kind, class Codec>
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
template <ring_kind Kind, class Codec>
using if_chosen = std::conditional_t<has_family(Kind), family_list<family<Kind, Codec>>, family_list<>>;
using chosen_families = decltype(if_chosen<ring_kind::mlx5, mlx5_codec>{} + if_chosen<ring_kind::bnxt, bnxt_codec>{} +
                                 if_chosen<ring_kind::ionic, ionic_codec>{} +
                                 if_chosen<ring_kind::ernic, ernic_codec>{} +
                                 if_chosen<ring_kind::proxy, proxy_codec>{});

// The last one needs no test: the host refuses rings of families that are not there.
template <class First, class... Rest, class Body>
XIO_DEVICE auto with_one_of(family_list<First, Rest...>, const ring_view& r, Body&& body) {
  if constexpr (sizeof...(Rest) == 0) {
    return body(typename First::codec{});
  } else {
    if (r.kind == First::k_kind) return body(typename First::codec{});
    return with_one_of(family_list<Rest...>{}, r, body);
  }
}

// body(codec), a value of the family's codec type, which is empty.
template <class Body>
XIO_DEVICE auto with_family(const ring_view& r, Body&& body) {
  if constexpr (family_words::chosen != 0 && family_words::chosen != family_words::all) {
    return with_one_of(chosen_families{}, r, body);
  } else {
    // A jump by a table waits for the table.
    if (r.kind == ring_kind::mlx5) [[likely]]
      return body(mlx5_codec{});
    switch (r.kind) {
      case ring_kind::bnxt: return body(bnxt_codec{});
      case ring_kind::ionic: return body(ionic_codec{});
      case ring_kind::ernic: return body(ernic_codec{});
      default: return body(proxy_codec{});
    }
  }
}

}  // namespace xio::dev::rdma
