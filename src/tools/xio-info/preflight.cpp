// SPDX-License-Identifier: MIT
// What the machine has to have, what of it is missing, and the cure.
#include "topology/preflight.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "tools/xio-info/section.hpp"
#include "topology/pci_reader.hpp"

namespace xio::info {

section preflight_section(const heap_options& o, const std::string& root, const std::string& dump) {
  topology::surroundings s;
  s.root = root;
  s.heap_bytes = o.heap_size;
  if (const char* forced = set_variable("HSA_FORCE_FINE_GRAIN_PCIE")) s.forced_fine_grain = forced;
  section out{"preflight", "Preflight", {}};
  // A dump that was asked for has to be one; a machine that cannot be examined is a result.
  if (!dump.empty())
    s.pci = topology::read_pci_tree(dump);
  else if (guard([&] { s.pci = topology::read_pci_tree(""); }) != XIO_OK)
    out.rows.push_back({"pci", std::string("unknown"), last_error()});
  for (const topology::piece& p : topology::preflight(s)) {
    out.rows.push_back({p.name, std::string(topology::state_name(p.is)), p.what});
    if (!p.cure.empty()) out.rows.push_back({p.name + "_cure", p.cure, ""});
  }
  return out;
}

bool lacks_something(const section& preflight) {
  const value missing = std::string(topology::state_name(topology::piece_state::missing));
  return std::ranges::any_of(preflight.rows, [&](const row& r) { return r.is == missing; });
}

}  // namespace xio::info
