// SPDX-License-Identifier: MIT
// What a machine has to have before engines can work by themselves, what of it is missing, and how to get it.
#pragma once
#include "topology/pci_tree.hpp"

namespace xio::topology {

enum class piece_state : std::uint8_t { ok, missing, unknown, not_needed };
const char* state_name(piece_state s);  // "ok", "missing", "unknown", "not needed"

struct piece {
  std::string name;  // "large_bar"
  piece_state is;
  std::string what;  // what was found
  std::string cure;  // of what is missing
};

struct surroundings {
  std::string root;  // in front of /sys, /proc, /dev, /boot: "" or a folder that stands for them
  pci_tree pci;
  std::uint64_t heap_bytes = 0;
  std::string forced_fine_grain;  // HSA_FORCE_FINE_GRAIN_PCIE
};

std::vector<piece> preflight(const surroundings& s);

}  // namespace xio::topology
