// SPDX-License-Identifier: MIT
#include "ctx/graveyard.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "xio/status.h"

namespace xio::graveyard {
namespace {

constexpr std::size_t k_alignment = 128, k_chunk = 16 << 10;

// All contexts that are gone share a ring that refuses everything, twice, so that fences wait for it, and
// a row of no route to every PE.
class common_grave {
 public:
  common_grave()
      : state_(sizeof(dev::ring_state), gpu::place::device), rings_(2 * sizeof(dev::ring_view), gpu::place::device) {
    gpu::put_value(&state_.as<dev::ring_state>()->failed, static_cast<std::uint32_t>(XIO_ERR_STATE));
    dev::ring_view ring{};
    ring.state = state_.as<dev::ring_state>();
    ring.depth = 1;  // else it would be one that is to be connected
    for (int i = 0; i < 2; ++i) gpu::put_value(rings_.as<dev::ring_view>() + i, ring);
  }

  dev::ctx_view view(dev::world_view* world, std::size_t n_pes) {
    dev::ctx_view v{};
    v.world = world;
    v.peers = rows(n_pes);
    v.rings = v.flush_rings = rings_.as<dev::ring_view>();
    v.ring_count = 2;
    v.flush_ring_count = 1;
    v.ring_first = dev::k_gone;
    v.bulk_bytes = ~std::uint64_t{0};
    v.error = static_cast<std::uint32_t>(XIO_ERR_STATE);
    v.used[0] = 1;
    return v;
  }

 private:
  // Rows that were given out stay: there are fewer bytes of smaller ones than of the largest.
  dev::peer_view* rows(std::size_t n_pes) {
    if (n_pes > count_) {
      count_ = std::max(n_pes, 2 * count_);
      rows_.emplace_back(count_ * sizeof(dev::peer_view), gpu::place::device);
      dev::peer_view row{};
      row.rdma = rings_.as<dev::ring_view>();
      row.rdma_count = 2;
      const std::vector<dev::peer_view> all(count_, row);
      gpu::copy(rows_.back().data(), all.data(), rows_.back().size());
    }
    return rows_.back().as<dev::peer_view>();
  }

  gpu::buffer state_, rings_;
  std::vector<gpu::buffer> rows_;
  std::size_t count_ = 0;
};

// Memory for views of one size.
struct plots {
  std::vector<void*> fresh;
  std::deque<void*> buried;  // the oldest first
};

struct yard {
  std::mutex guard;
  std::vector<gpu::buffer> chunks;
  using shape = std::tuple<int, gpu::purpose, std::size_t>;  // of which device
  std::map<shape, plots> by_shape;
  std::map<int, common_grave> common;
};

// Never destroyed: the device may be gone before static objects are.
yard& all() {
  static yard& one = *new yard;
  return one;
}

std::size_t whole(std::size_t bytes) { return (bytes + k_alignment - 1) / k_alignment * k_alignment; }

void lay(void* view, std::size_t bytes, gpu::purpose what) {
  all().by_shape[{gpu::selected_device(), what, whole(bytes)}].buried.push_back(view);
}

}  // namespace

void* take(std::size_t bytes, gpu::purpose what) {
  yard& y = all();
  const std::lock_guard lock(y.guard);
  const std::size_t each = whole(bytes);
  plots& p = y.by_shape[{gpu::selected_device(), what, each}];
  if (p.fresh.empty() && p.buried.size() * each >= std::max(k_kept_bytes, each)) {
    void* oldest = p.buried.front();
    p.buried.pop_front();
    return oldest;
  }
  if (p.fresh.empty()) {
    const std::size_t count = std::max<std::size_t>(k_chunk / each, 1);
    y.chunks.emplace_back(count * each, gpu::place::device, 256, what);
    for (std::size_t i = 0; i < count; ++i) p.fresh.push_back(y.chunks.back().as<unsigned char>() + i * each);
  }
  void* out = p.fresh.back();
  p.fresh.pop_back();
  return out;
}

void bury(dev::ctx_view* views, std::uint32_t lanes, dev::world_view* world, std::size_t n_pes) noexcept {
  if (views == nullptr) return;
  try {
    const std::lock_guard lock(all().guard);
    const std::vector<dev::ctx_view> gone(lanes, all().common[gpu::selected_device()].view(world, n_pes));
    gpu::copy(views, gone.data(), lanes * sizeof gone[0]);
    lay(views, lanes * sizeof gone[0], gpu::purpose::own);
  } catch (const std::exception& e) {
    log::warn("a ctx that was destroyed is not marked so, and kernels must not use it: {}", e.what());
  }
}

void bury(dev::world_view* view) noexcept {
  if (view == nullptr) return;
  try {
    dev::world_view was{}, gone{};
    gpu::copy(&was, view, offsetof(dev::world_view, regions));
    gone.my_pe = was.my_pe;
    gone.n_pes = was.n_pes;
    gone.ticks_per_ms = was.ticks_per_ms;
    gone.timeout_ticks = was.timeout_ticks;
    gpu::put_value(view, gone);
    const std::lock_guard lock(all().guard);
    lay(view, sizeof gone, gpu::purpose::tables);
  } catch (const std::exception& e) {
    log::warn("a world that was finalized is not marked so, and kernels must not use it: {}", e.what());
  }
}

}  // namespace xio::graveyard
