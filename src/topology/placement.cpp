// SPDX-License-Identifier: MIT
#include "topology/placement.hpp"

namespace xio::topology {

placement place(const std::vector<std::string>& machines, const std::vector<std::string>& kernels, int me) {
  placement p{0, 0, 0, std::vector<bool>(machines.size())};
  const auto self = static_cast<std::size_t>(me);
  for (std::size_t pe = 0; pe < machines.size(); ++pe) {
    p.together[pe] = machines[pe] == machines[self];
    const bool one_kernel = !kernels[self].empty() && kernels[pe] == kernels[self];
    if (!p.together[pe] && !one_kernel) continue;
    if (!p.together[pe]) ++p.apart;
    ++p.local_size;
    if (pe < self) ++p.local_rank;
  }
  return p;
}

}  // namespace xio::topology
