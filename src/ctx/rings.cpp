// SPDX-License-Identifier: MIT
#include "ctx/rings.hpp"

#include <fmt/format.h>

#include "ctx/failure_text.hpp"
#include "gpu/gpu.hpp"

namespace xio {

namespace {

const char* engine_name(dev::ring_kind kind) {
  switch (route_of(kind)) {
    case dev::route::rdma: return "rdma";
    case dev::route::sdma: return "sdma";
    default: return kind == dev::ring_kind::nvme ? "nvme" : "";
  }
}

// Kernels may be changing it: each word is a value it once had, not all of the same moment.
dev::ring_state state_of(const dev::ring_view& ring) {
  dev::ring_state s;
  gpu::copy(&s, ring.state, sizeof s);
  return s;
}

}  // namespace

dev::route route_of(dev::ring_kind kind) {
  switch (kind) {
    case dev::ring_kind::mlx5:
    case dev::ring_kind::bnxt:
    case dev::ring_kind::ionic:
    case dev::ring_kind::ernic:
    case dev::ring_kind::proxy: return dev::route::rdma;
    case dev::ring_kind::sdma: return dev::route::sdma;
    case dev::ring_kind::nvme:
    case dev::ring_kind::none: break;
  }
  return dev::route::none;
}

void add_stats(const std::vector<dev::ring_view>& rings, xio_engine_stats_t& out) {
  for (const auto& ring : rings) {
    const auto s = state_of(ring);
    out.ops += s.ops;
    out.doorbells += s.doorbells + s.cq_doorbells;
    out.bytes += s.bytes;
  }
}

namespace {

// Whether there is a failure, one that stopped the ring if stopped_only.
bool has_failed(const dev::ring_state& s, bool stopped_only) {
  return s.failed != 0 || (!stopped_only && s.op_errors != 0);
}

bool find(const std::vector<dev::ring_view>& rings, const std::vector<int>& peers, bool stopped_only,
          xio_error_info_t& info, std::uint64_t& clock) {
  std::size_t last = rings.size();
  dev::ring_state s{};
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const dev::ring_state one = state_of(rings[i]);
    if (!has_failed(one, stopped_only) || (last != rings.size() && one.failed_at <= s.failed_at)) continue;
    last = i;
    s = one;
  }
  if (last == rings.size()) return false;
  const dev::ring_view& ring = rings[last];
  // A ring that completes out of order goes on after an op has failed, and only counts it.
  const bool stopped = s.failed != 0;
  info.status = stopped ? static_cast<xio_status_t>(static_cast<std::int32_t>(s.failed)) : XIO_ERR_STORAGE;
  info.engine = engine_name(ring.kind);
  info.queue = ring.id;
  info.vendor = s.vendor;
  info.ticket = s.failed_ticket;
  clock = s.failed_at;
  put_sentence(info,
               failure_text(ring, info, stopped, last < peers.size() ? fmt::format(" to PE {}", peers[last]) : ""));
  return true;
}

}  // namespace

bool find_failure(const std::vector<dev::ring_view>& rings, const std::vector<int>& peers, xio_error_info_t& info,
                  std::uint64_t& clock) {
  return find(rings, peers, false, info, clock);
}

bool find_stopped(const std::vector<dev::ring_view>& rings, xio_error_info_t& info, std::uint64_t& clock) {
  return find(rings, {}, true, info, clock);
}

}  // namespace xio
