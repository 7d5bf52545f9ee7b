// SPDX-License-Identifier: MIT
// A file that `lspci -xxxx` wrote.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace xio::topology {

struct described_function {
  std::string bus_id;                // "0000:3b:00.0"
  std::vector<std::uint8_t> config;  // from offset 0 to the last byte that is described; ones where none is
};

// Throws XIO_ERR_ARG naming file, line and what is wrong with it.
std::vector<described_function> read_pci_dump(const std::string& file);

}  // namespace xio::topology
