// SPDX-License-Identifier: MIT
#include "ctx/route.hpp"
#include "base/error.hpp"
#include "xio/device/impl/request.hpp"

namespace xio {
namespace {

using dev::route;

way way_to(const ctx_settings& settings, bool mapped, bool self, std::size_t pe) {
  if (!mapped && (settings.route == XIO_ROUTE_DIRECT || settings.route == XIO_ROUTE_SDMA))
    fail(XIO_ERR_NO_ROUTE,
         "PE {} is on another machine, which route {} does not reach; set XIO_ROUTE=rdma or auto, or ask the ctx "
         "attribute for it",
         pe, settings.route == XIO_ROUTE_DIRECT ? "direct" : "sdma");
  switch (settings.route) {
    case XIO_ROUTE_DIRECT: return {route::direct, route::direct, route::direct};
    case XIO_ROUTE_RDMA: return {route::rdma, route::rdma, route::rdma};
    // Copy engines do not fetch; their own atomics complete nothing that a caller could read.
    case XIO_ROUTE_SDMA: return {route::sdma, route::sdma, route::direct};
    case XIO_ROUTE_AUTO: break;
  }
  if (!mapped) return {route::rdma, route::rdma, route::rdma};
  return {route::direct, self || settings.bulk_bytes == 0 ? route::direct : route::sdma, route::direct};
}

}  // namespace

std::uint8_t way::used() const {
  unsigned bits = 0;
  for (const route r : {small, bulk, atomic})
    if (r != route::none) bits |= 1u << static_cast<unsigned>(r);
  return static_cast<std::uint8_t>(bits);
}

bool route_plan::uses(route r) const {
  for (const way& w : to)
    if (w.uses(r)) return true;
  return false;
}

route_plan plan_routes(const ctx_settings& settings, const std::vector<bool>& mapped, int me,
                       const std::vector<bool>& excluded) {
  route_plan plan;
  plan.self = me;
  for (std::size_t pe = 0; pe < mapped.size(); ++pe)
    plan.to.push_back(pe < excluded.size() && excluded[pe]
                          ? way{route::excluded, route::excluded_bulk, route::excluded}
                          : way_to(settings, mapped[pe], pe == static_cast<std::size_t>(me), pe));
  // Kernels take a copy of bulk_bytes and more to their slow path, so a ctx without copy engines must have none.
  const bool engines = settings.route == XIO_ROUTE_AUTO && settings.bulk_bytes != 0;
  if (engines)
    plan.bulk_bytes = settings.bulk_bytes;
  else if (settings.route == XIO_ROUTE_AUTO || settings.route == XIO_ROUTE_DIRECT)
    plan.bulk_bytes = UINT64_MAX;
  return plan;
}

std::uint32_t count_rings(const ctx_settings& settings, const route_plan& plan) {
  std::uint64_t rings = 0;
  for (const way& w : plan.to) {
    rings += w.uses(dev::route::rdma) ? settings.queues : 0;
    rings += w.uses(dev::route::sdma) ? settings.copy_queues : 0;
  }
  if (rings > dev::k_storage_ring_base)
    fail(XIO_ERR_CONFIG,
         "a ctx would have {} queues to {} PEs and can have {}; give it fewer for each by XIO_RDMA_QUEUES or "
         "XIO_SDMA_QUEUES",
         rings, plan.to.size(), dev::k_storage_ring_base);
  return static_cast<std::uint32_t>(rings);
}

const char* route_name(route r) {
  switch (r) {
    case route::direct: return "direct";
    case route::rdma: return "rdma";
    case route::sdma: return "sdma";
    case route::excluded:
    case route::excluded_bulk:
    case route::none: break;
  }
  return "none";
}

}  // namespace xio
