// SPDX-License-Identifier: MIT
#include "model/nvme/prp.hpp"

#include <algorithm>
#include <cstring>

namespace xio::model::nvme {
namespace {

namespace w = wire::nvme;

class gatherer {
 public:
  gatherer(const dma_map& dma, std::vector<segment>& out) : dma_(dma), out_(out) {}

  std::uint32_t add(std::uint64_t bus, std::uint64_t bytes) {
    while (bytes != 0) {
      if (bus == next_ && room_ != 0) {
        const std::uint64_t n = std::min(bytes, room_);
        out_.back().bytes += n;
        step(bus, bytes, n);
        continue;
      }
      const dma_map::target t = dma_.find(bus);
      if (t.bytes == 0) return w::k_data_transfer_error;
      const std::uint64_t n = std::min(bytes, t.bytes);
      out_.push_back(segment{t.at, n, t.kind});
      room_ = t.bytes;
      next_ = bus;
      step(bus, bytes, n);
    }
    return w::k_ok;
  }

 private:
  void step(std::uint64_t& bus, std::uint64_t& bytes, std::uint64_t n) {
    bus += n;
    bytes -= n;
    room_ -= n;
    next_ = bus;
  }

  const dma_map& dma_;
  std::vector<segment>& out_;
  std::uint64_t next_ = 0;  // bus address after the last segment
  std::uint64_t room_ = 0;  // what its range still holds
};

std::uint32_t follow_list(std::uint64_t list, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                          gatherer& data) {
  while (bytes != 0) {
    if (list % 8 != 0) return w::k_invalid_prp_offset;
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
    if (chained) std::memcpy(&list, memory + here * 8, 8);
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
  if (prp1 % w::k_prp_align != 0) return w::k_invalid_prp_offset;
  const std::uint64_t first = std::min(bytes, page - prp1 % page);
  if (const std::uint32_t bad = data.add(prp1, first); bad != w::k_ok) return bad;
  bytes -= first;
  // Reserved when one entry is enough: a value here is a driver that counted wrong.
  if (bytes == 0) return prp2 == 0 ? w::k_ok : w::k_invalid_field;
  if (bytes > page) return follow_list(prp2, bytes, page, dma, data);
  if (prp2 % page != 0) return w::k_invalid_prp_offset;
  return data.add(prp2, bytes);
}

}  // namespace xio::model::nvme
