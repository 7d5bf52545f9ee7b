// SPDX-License-Identifier: MIT
// XIO's neutral entries: what any verbs device can carry.
#include "proxy/family.hpp"
#include "proxy/proxy_queue.hpp"

namespace xio::proxy {

namespace w = wire::proxy;

namespace {

constexpr std::uint32_t k_most_depth = 32768;
// Every word of an entry says by itself that it is there, so lanes that fill one together would have to know words.
constexpr std::uint32_t k_gather_bytes = 0;
constexpr std::uint32_t k_atomics = dev::nic_masked | dev::nic_native_4;

std::size_t completion_bytes(std::uint32_t) { return w::k_completion_bytes; }
std::size_t aux_bytes(std::uint32_t) { return 0; }

void set_fields(dev::rdma_ring&, const queue_parts&) {}

void prepare(const dev::ring_view& v, const queue_image& image, dev::ring_state&, const queue_plan& plan) {
  *reinterpret_cast<std::uint64_t*>(image.completion) = plan.ticket_start;
  // Slots begin with the generation that a lap before the first would have left.
  const std::uint32_t before = w::generation(plan.ticket_start, v.rdma.depth_log2) - 1;
  auto* words = reinterpret_cast<std::uint64_t*>(image.slots);
  std::fill_n(words, std::size_t{v.depth} * w::k_entry_words, w::word(before, 0));
}

std::unique_ptr<wire_queue> decode(const dev::ring_view& v, const queue_plan& plan, std::uint32_t) {
  proxy_memory m{};
  m.slots = reinterpret_cast<const std::uint64_t*>(v.slots);
  m.depth_log2 = v.rdma.depth_log2;
  m.completion = reinterpret_cast<std::uint64_t*>(v.rdma.completions);
  m.start = plan.ticket_start;
  m.entries = plan.entries;
  m.completions = plan.completions;
  return std::make_unique<proxy_queue>(m, plan.max_message);
}

}  // namespace

const family& proxy_family() {
  static const family row{
      "proxy", dev::ring_kind::proxy, w::k_entry_bytes, k_most_depth, w::k_inline_bytes, k_gather_bytes, k_atomics,
      0,       completion_bytes,      aux_bytes,        set_fields,   prepare,           decode};
  return row;
}

}  // namespace xio::proxy
