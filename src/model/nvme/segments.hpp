// SPDX-License-Identifier: MIT
// A command's data, gathered from bus addresses as its pointer names them.
#pragma once
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

// Gather `bytes` of a command's data pointer, by the rules of NVMe base 2.0, 4.1.1 and 4.1.2. Return SCT<<8 | SC.
std::uint32_t follow_prps(const wire::nvme::sqe& command, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                          std::vector<segment>& out);
// Of a PRP list by itself, as a queue in pieces has one.
std::uint32_t follow_prp_list(std::uint64_t list, std::uint64_t bytes, std::uint64_t page, const dma_map& dma,
                              std::vector<segment>& out);
// Exactly `bytes`. dwords_only: SGLS 1:0 is 2.
std::uint32_t follow_sgl(const wire::nvme::sqe& command, std::uint64_t bytes, bool dwords_only, const dma_map& dma,
                         std::vector<segment>& out);

}  // namespace xio::model::nvme
