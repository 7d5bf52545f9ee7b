// SPDX-License-Identifier: MIT
#include "model/nvme/segments.hpp"

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

// More than any transfer needs: a driver's mistake must not keep the drive busy for ever.
constexpr std::uint64_t k_most_descriptors = std::uint64_t{1} << 20;

class sgl_walk {
 public:
  sgl_walk(const dma_map& dma, std::uint64_t bytes, bool dwords_only, std::vector<segment>& out)
      : dma_(dma), data_(dma, out), left_(bytes), dwords_only_(dwords_only) {}

  std::uint32_t run(w::sgl_descriptor d) {
    while (is_segment(d)) {
      const bool last = w::sgl_type(d) == static_cast<std::uint32_t>(w::sgl::last_segment);
      if (const std::uint32_t bad = segment_of(d, last, &d); bad != w::k_ok) return bad;
      if (last) return end();
    }
    if (const std::uint32_t bad = block(d); bad != w::k_ok) return bad;
    return end();
  }

 private:
  static bool is_segment(const w::sgl_descriptor& d) {
    const std::uint32_t type = w::sgl_type(d);
    return type == static_cast<std::uint32_t>(w::sgl::segment) ||
           type == static_cast<std::uint32_t>(w::sgl::last_segment);
  }

  // Too short; too long is found in block(). SGLS bit 18 (longer than the data) is not set.
  std::uint32_t end() const { return left_ == 0 ? w::k_ok : w::k_invalid_sgl_length; }

  // The descriptors of one segment; `next` becomes the last of them if it leads on.
  std::uint32_t segment_of(w::sgl_descriptor d, bool last, w::sgl_descriptor* next) {
    const std::uint64_t bytes = w::sgl_bytes(d);
    if (w::sgl_subtype(d) != 0) return w::k_invalid_sgl_type;
    if (bytes == 0 || bytes % sizeof d != 0 || w::sgl_address(d) % 8 != 0 || reserved(d))
      return w::k_invalid_sgl_segment;
    const std::byte* at = dma_.host(w::sgl_address(d), bytes);
    if (at == nullptr) return w::k_data_transfer_error;
    const std::uint64_t count = bytes / sizeof d;
    seen_ += count;
    if (seen_ > k_most_descriptors) return w::k_invalid_sgl_count;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(&d, at + i * sizeof d, sizeof d);
      const bool leads_on = is_segment(d);
      if (leads_on && last) return w::k_invalid_sgl_segment;
      if (leads_on != (!last && i + 1 == count)) return leads_on ? w::k_invalid_sgl_count : not_leading_on(d);
      if (leads_on)
        *next = d;
      else if (const std::uint32_t bad = block(d); bad != w::k_ok)
        return bad;
    }
    return w::k_ok;
  }

  // A segment that is not the last must end in a descriptor of the next.
  static std::uint32_t not_leading_on(const w::sgl_descriptor& d) {
    return w::sgl_type(d) == static_cast<std::uint32_t>(w::sgl::data_block) ? w::k_invalid_sgl_segment
                                                                            : w::k_invalid_sgl_type;
  }

  std::uint32_t block(const w::sgl_descriptor& d) {
    if (w::sgl_type(d) != static_cast<std::uint32_t>(w::sgl::data_block) || w::sgl_subtype(d) != 0)
      return w::k_invalid_sgl_type;
    if (reserved(d)) return w::k_invalid_field;
    if (dwords_only_ && ((w::sgl_address(d) | w::sgl_bytes(d)) & 3) != 0) return w::k_invalid_sgl_granularity;
    if (w::sgl_bytes(d) > left_) return w::k_invalid_sgl_length;
    left_ -= w::sgl_bytes(d);
    return data_.add(w::sgl_address(d), w::sgl_bytes(d));
  }

  static bool reserved(const w::sgl_descriptor& d) { return (d.dw[3] & 0xffffff) != 0; }

  const dma_map& dma_;
  gatherer data_;
  std::uint64_t left_, seen_ = 0;
  bool dwords_only_;
};

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

std::uint32_t follow_sgl(const w::sqe& command, std::uint64_t bytes, bool dwords_only, const dma_map& dma,
                         std::vector<segment>& out) {
  out.clear();
  return sgl_walk(dma, bytes, dwords_only, out).run(w::sgl_of(command));
}

}  // namespace xio::model::nvme
