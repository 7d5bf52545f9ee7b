// SPDX-License-Identifier: MIT
// Which way the ops of a ctx go to each PE.
#pragma once
#include "ctx/attributes.hpp"
#include "xio/device/impl/view.hpp"

namespace xio {

struct way {
  dev::route small = dev::route::none;
  dev::route bulk = dev::route::none;
  dev::route atomic = dev::route::none;

  std::uint8_t used() const;  // bit per route
  bool uses(dev::route r) const { return (used() >> static_cast<unsigned>(r) & 1) != 0; }
};

struct route_plan {
  std::vector<way> to;  // by PE
  int self = 0;         // this PE
  // What ctx_view::bulk_bytes is set to: where no copy engine is wanted no copy is large enough.
  std::uint64_t bulk_bytes = 0;
  // The engine by which kernels flush the HDP, or none. It gets rings of its own: behind an op that waits for this PE a
  // flush would wait for itself.
  dev::route flush = dev::route::none;

  bool uses(dev::route r) const;  // for ops
  bool needs(dev::route r) const { return flush == r || uses(r); }
};

// By PE: whether its heap is in this address space, and whether it has left the world, so that no way leads there. Does
// not ask whether a NIC reaches a PE. Throws XIO_ERR_NO_ROUTE for a forced route that cannot be.
route_plan plan_routes(const ctx_settings& settings, const std::vector<bool>& mapped, int me,
                       const std::vector<bool>& excluded = {});

// How many rings a ctx of that plan has, each of its pool as many. Throws XIO_ERR_CONFIG for more than requests can
// name. PEs of unequal nodes differ in it.
std::uint32_t count_rings(const ctx_settings& settings, const route_plan& plan);

const char* route_name(dev::route r);

}  // namespace xio
