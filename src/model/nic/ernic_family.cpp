// SPDX-License-Identifier: MIT
// AMD's emulated NIC, legacy personality, on the software NIC.
#include "model/nic/ernic_queue.hpp"
#include "model/nic/families.hpp"

namespace xio::model::rdma {
namespace {

namespace w = xio::wire::ernic;

constexpr std::uint32_t k_most_depth = 32768;
constexpr std::uint32_t k_most_cq_depth = 65536;

std::size_t completion_bytes(std::uint32_t cq_depth) {
  return w::k_page_bytes + std::size_t{cq_depth} * w::k_cqe_bytes;
}

std::size_t aux_bytes(std::uint32_t) { return w::k_indices_bytes; }

void set_fields(dev::rdma_ring& r, const queue_parts& parts) {
  r.ernic = {reinterpret_cast<std::uint32_t*>(parts.beside), parts.slots_lkey};
}

void prepare(const dev::ring_view& v, const queue_image& image, dev::ring_state&, const queue_plan& plan) {
  auto* indices = reinterpret_cast<std::uint32_t*>(image.aux);
  indices[w::k_tx_tail] = indices[w::k_tx_head] = w::index_of(plan.ticket_start, v.rdma.depth_log2);
}

std::unique_ptr<proxy::wire_queue> decode(const dev::ring_view& v, const queue_plan& plan, std::uint32_t number) {
  auto m = memory_of<ernic_memory>(v, plan);
  m.indices = v.rdma.ernic.indices;
  m.depth_log2 = v.rdma.depth_log2;
  m.doorbell = reinterpret_cast<std::uint32_t*>(v.rdma.doorbell);
  m.cq = reinterpret_cast<std::uint32_t*>(v.rdma.completions);
  m.cq_depth_log2 = v.rdma.cq_depth_log2;
  return std::make_unique<ernic_queue>(m, number, plan.max_message);
}

}  // namespace

const family& ernic_family() {
  static const family row{
      "ernic",         dev::ring_kind::ernic, w::k_wqe_bytes, k_most_depth, w::k_spare_bytes, w::k_spare_bytes, 0,
      k_most_cq_depth, completion_bytes,      aux_bytes,      set_fields,   prepare,          decode,           true};
  return row;
}

}  // namespace xio::model::rdma
