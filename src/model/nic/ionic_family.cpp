// SPDX-License-Identifier: MIT
// AMD Pensando (ionic) on the software NIC: interface 2 with the collapsed CQE, interface 1 with a completion queue.
#include "model/nic/families.hpp"
#include "model/nic/ionic_queue.hpp"
#include "xio/device/impl/ionic.hpp"

namespace xio::model::rdma {
namespace {

namespace w = xio::wire::ionic;

// Indices have 16 bits, and messages under way must differ from those that ended.
constexpr std::uint32_t k_most_depth = 32768;
// ionic_memory counts as far.
constexpr std::uint32_t k_most_cq_depth = 32768;
constexpr std::uint32_t k_inline_bytes = w::k_inline_bytes;

std::size_t collapsed_bytes(std::uint32_t) { return w::k_cqe_bytes; }
std::size_t queue_bytes(std::uint32_t cq_depth) { return std::size_t{cq_depth} * w::k_cqe_bytes; }
std::size_t aux_bytes(std::uint32_t) { return 0; }

// A completion queue's number is its own, or one in the queue pair's place would go unnoticed.
std::uint32_t cq_number(const dev::rdma_ring& r) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(r.completions) / w::k_cqe_bytes) & 0xffffff;
}

void set_collapsed(dev::rdma_ring& r, const queue_parts&) { r.ionic.version = 2; }
void set_queue(dev::rdma_ring& r, const queue_parts& parts) { r.ionic = {parts.cq_doorbell, cq_number(r), 1}; }

void prepare_any(const dev::ring_view& v, const queue_image& image, dev::ring_state& state, const queue_plan& plan) {
  state.credits = v.depth - 1;
  // A stale entry must have the colour of the lap before.
  if (w::color_of(plan.ticket_start, v.rdma.depth_log2)) return;
  for (std::uint32_t i = 0; i < v.depth; ++i)
    w::put_base(reinterpret_cast<std::uint32_t*>(image.slots) + i * w::k_wqe_dwords, 0, 0, 0, w::flag_color, 0);
}

void prepare_collapsed(const dev::ring_view& v, const queue_image& image, dev::ring_state& state,
                       const queue_plan& plan) {
  prepare_any(v, image, state, plan);
  reinterpret_cast<std::uint32_t*>(image.completion)[w::k_cqe_msn_at] =
      wire::be32(static_cast<std::uint32_t>(plan.ticket_start) & w::k_msn_mask);
}

std::unique_ptr<proxy::wire_queue> decode(const dev::ring_view& v, const queue_plan& plan, std::uint32_t number) {
  auto m = memory_of<ionic_memory>(v, plan);
  m.face = v.rdma.ionic.version == 1 ? w::interface::v1 : w::interface::v2;
  m.depth_log2 = v.rdma.depth_log2;
  m.doorbell = v.rdma.doorbell;
  m.cqes = reinterpret_cast<std::uint32_t*>(v.rdma.completions);
  m.collapsed = v.rdma.cq_depth == 0;
  m.cq_depth_log2 = v.rdma.cq_depth_log2;
  m.cq_doorbell = v.rdma.ionic.cq_doorbell;
  m.cq_number = v.rdma.ionic.cq_id;
  return std::make_unique<ionic_queue>(m, number, plan.max_message);
}

}  // namespace

const family& ionic_family() {
  static const family row{
      "ionic", dev::ring_kind::ionic, w::k_wqe_bytes, k_most_depth,  k_inline_bytes,    k_inline_bytes, 0,
      0,       collapsed_bytes,       aux_bytes,      set_collapsed, prepare_collapsed, decode};
  return row;
}

const family& ionic_v1_family() {
  static const family row{
      "ionic_v1",      dev::ring_kind::ionic, w::k_wqe_bytes, k_most_depth / 2, k_inline_bytes, k_inline_bytes, 0,
      k_most_cq_depth, queue_bytes,           aux_bytes,      set_queue,        prepare_any,    decode};
  return row;
}

}  // namespace xio::model::rdma
