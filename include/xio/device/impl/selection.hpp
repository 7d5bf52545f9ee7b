// SPDX-License-Identifier: MIT
// Which engines and NIC families the kernels of a program have. All, unless it is compiled with less:
//   -DXIO_ENGINES=direct+rdma -DXIO_FAMILIES=mlx5
//   engines    direct (loads and stores), rdma, sdma, nvme (storage), hdp (flushes of the host data path)
//   families   mlx5, bnxt, ionic, ernic, proxy (of rdma)
// What is left out is not in the kernel: its instructions and registers are not paid for. A world that needs it is
// refused on the host (xio_init, xio_ctx_create, xio_storage_open), never by a kernel that does the wrong thing.
//
// Files of one program may differ on GPUs. On the host platform, where kernels are linked, all have the same.
#pragma once
#include "xio/device/impl/layout.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/internal.h"

#ifndef XIO_ENGINES
#define XIO_ENGINES direct + rdma + sdma + nvme + hdp
#endif
#ifndef XIO_FAMILIES
#define XIO_FAMILIES mlx5 + bnxt + ionic + ernic + proxy
#endif

namespace xio::dev {

// The words that the macros may hold: each a bit, so that a sum is a set.
namespace engine_words {
constexpr u32 direct = XIO_HAS_DIRECT, rdma = XIO_HAS_RDMA, sdma = XIO_HAS_SDMA, nvme = XIO_HAS_NVME;
constexpr u32 hdp = XIO_HAS_HDP;
constexpr u32 all = direct + rdma + sdma + nvme + hdp;
constexpr u32 chosen = XIO_ENGINES;
}  // namespace engine_words
namespace family_words {
constexpr u32 bit(ring_kind kind) { return 1u << static_cast<u32>(kind); }
constexpr u32 mlx5 = bit(ring_kind::mlx5), bnxt = bit(ring_kind::bnxt), ionic = bit(ring_kind::ionic);
constexpr u32 ernic = bit(ring_kind::ernic), proxy = bit(ring_kind::proxy);
constexpr u32 all = mlx5 + bnxt + ionic + ernic + proxy;
constexpr u32 chosen = XIO_FAMILIES;
}  // namespace family_words
static_assert((engine_words::chosen & ~engine_words::all) == 0, "XIO_ENGINES names an engine twice");
static_assert((family_words::chosen & ~family_words::all) == 0, "XIO_FAMILIES names a family twice");

constexpr bool k_has_direct = (engine_words::chosen & engine_words::direct) != 0;
constexpr bool k_has_rdma = (engine_words::chosen & engine_words::rdma) != 0;
constexpr bool k_has_sdma = (engine_words::chosen & engine_words::sdma) != 0;
constexpr bool k_has_nvme = (engine_words::chosen & engine_words::nvme) != 0;
constexpr bool k_flushes_hdp = k_has_hdp && (engine_words::chosen & engine_words::hdp) != 0;
constexpr bool k_has_rings = k_has_rdma || k_has_sdma;
constexpr bool has_family(ring_kind kind) { return (family_words::chosen & family_words::bit(kind)) != 0; }
static_assert(!k_has_rdma || family_words::chosen != 0, "XIO_ENGINES has rdma, and XIO_FAMILIES no family");

#if defined(XIO_HOST_PASS)
// The library learns of it before main(), or when a shared object is loaded.
struct selection_notice {
  selection_notice() { xio_internal_program_has(engine_words::chosen, family_words::chosen); }
};
template <bool Whole>
struct selection_noticed {
  static constexpr bool done = true;
};
template <>
struct selection_noticed<false> {
  selection_notice notice;
};
struct layout_notice {
  explicit layout_notice(u32 layout) { xio_internal_program_layout(layout); }
};
namespace {
// Of each file by itself: files of one program may come from different releases of these headers.
[[maybe_unused]] const layout_notice layout_noticed{k_layout};
[[maybe_unused]] const selection_noticed<engine_words::chosen == engine_words::all &&
                                         family_words::chosen == family_words::all>
    noticed{};
}  // namespace
#endif

}  // namespace xio::dev
