// SPDX-License-Identifier: MIT
// A command's data pointer, followed and checked by the rules of NVMe base 2.0, 4.1.1.
#pragma once
#include "model/nvme/segments.hpp"

namespace xio::model::nvme {

// Gathers `bytes` of the command's data. Returns SCT<<8 | SC.
std::uint32_t follow_prps(const wire::nvme::sqe& command, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                          std::vector<segment>& out);

// The same of a list by itself, as a queue in pieces has one.
std::uint32_t follow_prp_list(std::uint64_t list, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                              std::vector<segment>& out);

}  // namespace xio::model::nvme
