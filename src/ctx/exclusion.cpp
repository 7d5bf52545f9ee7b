// SPDX-License-Identifier: MIT
// How PEs are taken out of contexts. docs/failures.md says what programs see, docs/decisions/0172 why.
#include <algorithm>

#include "base/log.hpp"
#include "ctx/context_book.hpp"
#include "ctx/rings.hpp"
#include "transport/rdma/vendor_text.hpp"

namespace xio {
namespace {

bool is_among(int pe, const std::vector<int>& pes) { return std::ranges::find(pes, pe) != pes.end(); }

// The four bytes of a row that kernels read as one.
struct ways {
  dev::route small, bulk, atomic;
  std::uint8_t by_engine;
};
static_assert(sizeof(ways) == 4);

}  // namespace

// Its addresses stay: a kernel that has just read the old ways uses them.
void context::refuse_peer(std::uint32_t lane, int pe) {
  auto* row = peer_rows_.as<dev::peer_view>() + (has_rings() ? lane * n_pes() : 0) + pe;
  const bool by_engine = plan_.to[static_cast<std::size_t>(pe)].small != dev::route::direct;
  const ways none{dev::route::excluded, dev::route::excluded_bulk, dev::route::excluded, by_engine};
  gpu::put_value(reinterpret_cast<ways*>(&row->small), none);
}

// Whether any op on them was lost, as lose(ring) says.
bool context::lose_rings(std::uint32_t lane, const std::vector<int>& pes, bool (*lose)(const dev::ring_view&)) {
  const std::lock_guard hold(rings_lock_);
  bool lost = false;
  for (std::size_t i = lane * rings_per_lane_; i < (lane + std::size_t{1}) * rings_per_lane_ && i < rings_.size(); ++i)
    if (is_among(ring_peers_[i], pes) && rings_[i].depth != 0) lost |= lose(rings_[i]);
  return lost;
}

void context::stop_queues(const std::vector<int>& pes) noexcept {
  for (const auto& set : queues_.pairs)
    for (const int pe : pes) set->stop_to(pe);
  // In the order in which they were made: lane by lane, PE by PE.
  std::size_t copy = 0;
  for (std::uint32_t lane = 0; lane < lanes(); ++lane)
    for (std::size_t pe = 0; pe < n_pes(); ++pe)
      for (std::uint32_t which = 0; plan_.to[pe].uses(dev::route::sdma) && which < settings_.copy_queues;
           ++which, ++copy)
        if (copy < queues_.copies.size() && is_among(static_cast<int>(pe), pes)) queues_.copies[copy]->stop();
}

void context::exclude(const std::vector<int>& pes) {
  excluded_.insert(excluded_.end(), pes.begin(), pes.end());
  // First what kernels look at, so that they post no more, then the queues.
  std::vector<bool> lost(lanes());
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    if (has_rings() || lane == 0)
      for (const int pe : pes) refuse_peer(lane, pe);
    lost[lane] = !stopped_ && lose_rings(lane, pes, exclude_ring);
  }
  stop_queues(pes);
  for (std::uint32_t lane = 0; lane < lanes() && !stopped_; ++lane) {
    // A kernel may have posted meanwhile, when it had looked before, or a queue pair been made.
    if (lose_rings(lane, pes, [](const auto& r) { return exclude_ring(r) || has_lost_since(r); })) lost[lane] = true;
    std::uint32_t kept = 0;
    if (lost[lane]) gpu::copy(&kept, &view()[lane].error, sizeof kept);
    if (lost[lane] && kept == 0) gpu::put_value(&view()[lane].error, static_cast<std::uint32_t>(XIO_ERR_PEER));
  }
}

std::string context::silence_of(int pe) const {
  for (const auto& set : queues_.pairs)
    if (std::string why = set->silence_of(pe); !why.empty()) return why;
  const counted_queues there = connected_rings();
  for (std::size_t i = 0; i < there.rings.size(); ++i) {
    if (there.peers[i] != pe) continue;
    const std::string why = silence_on(there.rings[i]);
    if (!why.empty()) return why;
  }
  return "";
}

void context_book::exclude(const std::vector<int>& pes) {
  for (const auto& [id, c] : contexts_.live()) c->exclude(pes);
}

std::string context_book::silence_of(int pe) const {
  for (const auto& [id, c] : contexts_.live())
    if (std::string why = c->silence_of(pe); !why.empty()) return why;
  return "";
}

}  // namespace xio
