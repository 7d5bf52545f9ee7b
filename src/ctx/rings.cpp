// SPDX-License-Identifier: MIT
#include "ctx/rings.hpp"

#include <fmt/core.h>

#include <thread>

#include "ctx/failure_text.hpp"
#include "gpu/gpu.hpp"
#include "transport/rdma/vendor_text.hpp"
#include "xio/wire/nvme.hpp"

namespace xio {

const char* engine_name(dev::ring_kind kind) {
  switch (route_of(kind)) {
    case dev::route::rdma: return "rdma";
    case dev::route::sdma: return "sdma";
    default: return kind == dev::ring_kind::nvme ? "nvme" : "";
  }
}

dev::ring_state state_of(const dev::ring_view& ring) {
  dev::ring_state s;
  gpu::copy(&s, ring.state, sizeof s);
  return s;
}

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

// ring_state::failed of a ring to an excluded PE, and its failed_ticket where all ops had been complete.
constexpr auto k_excluded = static_cast<std::uint32_t>(XIO_ERR_PEER);
constexpr std::uint64_t k_none_lost = UINT64_MAX;

// Whether there is a failure, one that stopped the ring if stopped_only.
bool has_failed(const dev::ring_state& s, bool stopped_only) {
  if (s.failed == k_excluded && s.failed_ticket == k_none_lost) return false;
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

// Every command gives one entry of the completion queue, in order of the queue: so many have been posted as the entries
// that were taken from it, those that lie there, and the commands under way.
std::uint64_t under_way(const dev::ring_view& ring, const dev::ring_state& s) {
  const bool even = (s.completed & dev::k_even) != 0;
  const std::uint64_t taken = even ? s.completed & ~(dev::k_reaping | dev::k_even) : s.cq_head;
  std::vector<wire::nvme::cqe> entries(ring.nvme.cq_depth);
  gpu::copy(entries.data(), ring.nvme.completions, entries.size() * sizeof entries[0]);
  std::uint64_t head = taken;
  const auto is_new = [&](std::uint64_t at) {
    const std::uint32_t dw3 = entries[at & (ring.nvme.cq_depth - 1)].dw[3];
    return wire::nvme::cqe_phase(dw3) == (~(at >> ring.nvme.cq_depth_log2) & 1);
  };
  while (head - taken < ring.nvme.cq_depth && is_new(head)) ++head;
  return head < s.issued ? s.issued - head : 0;
}

}  // namespace

bool find_failure(const std::vector<dev::ring_view>& rings, const std::vector<int>& peers, xio_error_info_t& info,
                  std::uint64_t& clock) {
  return find(rings, peers, false, info, clock);
}

bool find_stopped(const std::vector<dev::ring_view>& rings, xio_error_info_t& info, std::uint64_t& clock) {
  return find(rings, {}, true, info, clock);
}

bool commands_end(const std::vector<dev::ring_view>& rings, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (const auto& ring : rings) {
    const std::uint64_t upto = state_of(ring).issued;
    for (;;) {
      // Where kernels of another ctx go on posting it is never empty, but what was there first is complete at last.
      const auto s = state_of(ring);
      if ((s.completed & ~(dev::k_reaping | dev::k_even)) >= upto || under_way(ring, s) == 0) break;
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return true;
}

void fail_rings(const std::vector<dev::ring_view>& rings, xio_status_t status) {
  for (const auto& ring : rings) {
    const auto s = state_of(ring);
    if (s.failed != 0) continue;
    gpu::put_value(&ring.state->failed_ticket, s.completed & ~(dev::k_reaping | dev::k_even));
    gpu::put_value(&ring.state->vendor, std::uint32_t{0});
    gpu::put_value(&ring.state->failed, static_cast<std::uint32_t>(status));
  }
}

std::string silence_on(const dev::ring_view& ring) {
  const auto s = state_of(ring);
  if (s.failed == static_cast<std::uint32_t>(XIO_ERR_TIMEOUT)) return "an op to it has timed out";
  const bool no_reply = s.failed == static_cast<std::uint32_t>(XIO_ERR_TRANSPORT) &&
                        route_of(ring.kind) == dev::route::rdma && rdma::means_silence(ring.kind, s.vendor);
  return no_reply ? "its NIC has not replied to an op" : "";
}

bool exclude_ring(const dev::ring_view& ring) {
  const auto s = state_of(ring);
  if (s.failed == k_excluded) return false;
  const std::uint64_t completed = s.completed & ~(dev::k_reaping | dev::k_even);
  const bool lost = s.failed != 0 || completed < s.issued;
  if (s.failed == 0) gpu::put_value(&ring.state->failed_ticket, lost ? completed : k_none_lost);
  gpu::put_value(&ring.state->failed, k_excluded);
  return lost;
}

bool has_lost_since(const dev::ring_view& ring) {
  const auto s = state_of(ring);
  const std::uint64_t completed = s.completed & ~(dev::k_reaping | dev::k_even);
  if (s.failed != k_excluded || s.failed_ticket != k_none_lost || completed >= s.issued) return false;
  gpu::put_value(&ring.state->failed_ticket, completed);
  return true;
}

void forget_timeouts(const std::vector<dev::ring_view>& rings) {
  for (const auto& ring : rings)
    if (state_of(ring).failed == static_cast<std::uint32_t>(XIO_ERR_TIMEOUT))
      gpu::put_value(&ring.state->failed, std::uint32_t{0});
}

}  // namespace xio
