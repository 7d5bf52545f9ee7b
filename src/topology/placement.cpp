// SPDX-License-Identifier: MIT
#include "topology/placement.hpp"

namespace xio::topology {

placement place(const std::vector<std::string>& machines, int me) {
  placement p{0, 0, std::vector<bool>(machines.size())};
  const auto self = static_cast<std::size_t>(me);
  for (std::size_t pe = 0; pe < machines.size(); ++pe) {
    p.together[pe] = machines[pe] == machines[self];
    if (!p.together[pe]) continue;
    ++p.local_size;
    if (pe < self) ++p.local_rank;
  }
  return p;
}

}  // namespace xio::topology
