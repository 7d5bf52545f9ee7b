// SPDX-License-Identifier: MIT
// A command's data, gathered from bus addresses.
#pragma once
#include <algorithm>

#include "model/nvme/dma.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::model::nvme {

struct segment {
  std::byte* at;
  std::uint64_t bytes;
  dma_map::memory kind;
};

// Neighbours on the bus become one segment.
class gatherer {
 public:
  gatherer(const dma_map& dma, std::vector<segment>& out) : dma_(dma), out_(out) {}

  // SCT<<8 | SC
  std::uint32_t add(std::uint64_t bus, std::uint64_t bytes) {
    while (bytes != 0) {
      if (bus == next_ && room_ != 0) {
        const std::uint64_t n = std::min(bytes, room_);
        out_.back().bytes += n;
        step(bus, bytes, n);
        continue;
      }
      const dma_map::target t = dma_.find(bus);
      if (t.bytes == 0) return wire::nvme::k_data_transfer_error;
      const std::uint64_t n = std::min(bytes, t.bytes);
      out_.push_back(segment{t.at, n, t.kind});
      room_ = t.bytes;
      next_ = bus;
      step(bus, bytes, n);
    }
    return wire::nvme::k_ok;
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

}  // namespace xio::model::nvme
