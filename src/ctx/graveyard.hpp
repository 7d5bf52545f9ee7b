// SPDX-License-Identifier: MIT
// What kernels find of contexts that were destroyed and of worlds that were finalized: their views stay, and say so.
// docs/decisions/0173 has what that costs.
#pragma once
#include "gpu/memory_choice.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::graveyard {

// Memory for views, of the selected device. It is never given back to the device: what is buried is used again when
// k_kept_bytes of its size have been buried since.
constexpr std::size_t k_kept_bytes = std::size_t{8} << 20;
void* take(std::size_t bytes, gpu::purpose what);

// The views of a ctx, one a lane, taken as purpose::own; null: nothing. No kernel may be using them.
void bury(dev::ctx_view* views, std::uint32_t lanes, dev::world_view* world, std::size_t n_pes) noexcept;
// Of a world, taken as purpose::tables.
void bury(dev::world_view* view) noexcept;
struct burial {
  void operator()(dev::world_view* view) const noexcept { bury(view); }
};

}  // namespace xio::graveyard
