// SPDX-License-Identifier: MIT
// A command's data pointer as an SGL, followed and checked by the rules of NVMe base 2.0, 4.1.2.
#pragma once
#include "model/nvme/segments.hpp"

namespace xio::model::nvme {

// Gathers exactly `bytes` of the command's data. dwords_only: SGLS 1:0 is 2. Returns SCT<<8 | SC.
std::uint32_t follow_sgl(const wire::nvme::sqe& command, std::uint64_t bytes, bool dwords_only, const dma_map& dma,
                         std::vector<segment>& out);

}  // namespace xio::model::nvme
