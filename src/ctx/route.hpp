// SPDX-License-Identifier: MIT
// Which way the ops of a ctx go to each PE.
#pragma once
#include <cstdint>
#include <vector>

#include "ctx/attributes.hpp"
#include "xio/device/view.hpp"

namespace xio {

struct way {
  dev::route small = dev::route::none;
  dev::route bulk = dev::route::none;
  dev::route atomic = dev::route::none;

  std::uint8_t used() const;  // bit per route, as in peer_view::routes_used
  bool uses(dev::route r) const { return (used() >> static_cast<unsigned>(r) & 1) != 0; }
};

struct route_plan {
  std::vector<way> to;  // by PE
  // What ctx_view::bulk_bytes is set to: where no copy engine is wanted no copy is large enough.
  std::uint64_t bulk_bytes = 0;

  bool uses(dev::route r) const;
};

// mapped: by PE, whether its heap is in this address space. Does not ask whether a NIC reaches a PE. Throws
// XIO_ERR_NO_ROUTE for a forced route that cannot be.
route_plan plan_routes(const ctx_choice& choice, const std::vector<bool>& mapped, int me);

const char* route_name(dev::route r);

}  // namespace xio
