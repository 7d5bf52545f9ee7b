// SPDX-License-Identifier: MIT
// A command's data pointer, followed and checked by the rules of NVMe base 2.0, 4.1.1.
#pragma once
#include <cstdint>
#include <vector>

#include "model/nvme/dma.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::model::nvme {

struct segment {
  std::byte* at;
  std::uint64_t bytes;
  dma_map::memory kind;
};

// Gathers `bytes` of the command's data; neighbours on the bus become one segment. Answers SCT<<8 | SC.
std::uint32_t follow_prps(const wire::nvme::sqe& command, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                          std::vector<segment>& out);

}  // namespace xio::model::nvme
