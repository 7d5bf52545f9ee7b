// SPDX-License-Identifier: MIT
#include "model/nvme/prp.hpp"

#include <algorithm>
#include <cstring>

namespace xio::model::nvme {
namespace {

namespace w = wire::nvme;

std::uint32_t follow_list(std::uint64_t list, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                          gatherer& data) {
  if (list % 8 != 0) return w::k_invalid_prp_offset;
  while (bytes != 0) {
    const std::uint64_t entries = (page - list % page) / 8;
    const std::uint64_t wanted = (bytes + page - 1) / page;
    const bool chained = wanted > entries;
    const std::uint64_t here = chained ? entries - 1 : wanted;
    const std::byte* memory = dma.host(list, (chained ? entries : wanted) * 8);
    if (memory == nullptr) return w::k_data_transfer_error;
    for (std::uint64_t i = 0; i < here; ++i) {
      std::uint64_t entry;
      std::memcpy(&entry, memory + i * 8, 8);
      if (entry % page != 0) return w::k_invalid_prp_offset;
      const std::uint64_t n = std::min(bytes, page);
      if (const std::uint32_t bad = data.add(entry, n); bad != w::k_ok) return bad;
      bytes -= n;
    }
    if (!chained) break;
    std::memcpy(&list, memory + here * 8, 8);
    // Only the first list may begin inside a page. A list of one entry could otherwise lead to itself for ever.
    if (list % page != 0) return w::k_invalid_prp_offset;
  }
  return w::k_ok;
}

}  // namespace

std::uint32_t follow_prps(const w::sqe& command, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                          std::vector<segment>& out) {
  out.clear();
  gatherer data(dma, out);
  const std::uint64_t prp1 = w::prp1_of(command);
  const std::uint64_t prp2 = w::prp2_of(command);
  if (prp1 % w::k_prp_align != 0 && !w::is_of_bytes(command)) return w::k_invalid_prp_offset;
  const std::uint64_t first = std::min(bytes, page - prp1 % page);
  if (const std::uint32_t bad = data.add(prp1, first); bad != w::k_ok) return bad;
  bytes -= first;
  // Reserved when one entry is enough: a value here is a driver that counted wrong.
  if (bytes == 0) return prp2 == 0 ? w::k_ok : w::k_invalid_field;
  if (bytes > page) return follow_list(prp2, bytes, page, dma, data);
  if (prp2 % page != 0) return w::k_invalid_prp_offset;
  return data.add(prp2, bytes);
}

std::uint32_t follow_prp_list(std::uint64_t list, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                              std::vector<segment>& out) {
  out.clear();
  gatherer data(dma, out);
  return follow_list(list, bytes, page, dma, data);
}

}  // namespace xio::model::nvme
