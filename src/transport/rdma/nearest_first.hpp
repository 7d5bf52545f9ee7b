// SPDX-License-Identifier: MIT
// The order in which a PE takes NICs.
#pragma once
#include <algorithm>
#include <vector>

namespace xio::rdma {

// Nearest first. Among equals the local rank decides, so that the PEs of a machine spread.
template <class T, class Distance>
void order_nearest_first(std::vector<T>& all, int local_rank, Distance&& distance) {
  std::ranges::stable_sort(all, [&](const T& a, const T& b) { return distance(a) < distance(b); });
  for (auto from = all.begin(); from != all.end();) {
    const auto to = std::find_if(from, all.end(), [&](const T& c) { return distance(c) != distance(*from); });
    std::rotate(from, from + local_rank % (to - from), to);
    from = to;
  }
}

}  // namespace xio::rdma
