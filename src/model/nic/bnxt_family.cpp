// SPDX-License-Identifier: MIT
// Broadcom bnxt_re (Thor2) on the software NIC.
#include "model/nic/bnxt_queue.hpp"
#include "model/nic/families.hpp"
#include "xio/device/impl/bnxt.hpp"

namespace xio::model::rdma {
namespace {

namespace w = xio::wire::bnxt;

// Completions tell 16 bits of an index, and 0xffff is none.
constexpr std::uint32_t k_most_depth = 32768;
// 8-byte compare-swap and fetch-add alone: bnxt_re-abi.h has no other opcodes.
constexpr std::uint32_t k_atomics = 0;
constexpr std::uint32_t k_most_cq_depth = 65536;

std::size_t completion_bytes(std::uint32_t cq_depth) { return std::size_t{cq_depth} * w::k_cqe_bytes; }

std::size_t aux_bytes(std::uint32_t depth) { return std::size_t{depth} * sizeof(std::uint64_t); }

// A completion queue's number is its own and not the queue pair's, or one in the other's place would go unnoticed.
std::uint32_t cq_number(const dev::rdma_ring& r) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(r.completions) / w::k_cqe_bytes) & w::k_queue_mask;
}

void set_fields(dev::rdma_ring& r, const queue_parts& parts) {
  r.bnxt = {reinterpret_cast<std::uint64_t*>(parts.beside),
            parts.cq_doorbell,
            cq_number(r),
            static_cast<std::uint16_t>(parts.path_mtu),
            1,
            0};
}

void prepare(const dev::ring_view&, const queue_image&, dev::ring_state& state, const queue_plan& plan) {
  // Ticket and PSN in one word; see ring_take_tickets.
  constexpr unsigned k_ticket_bits = 40;
  const std::uint64_t psn = plan.first_psn + (plan.ticket_start >> k_ticket_bits);
  state.serial = (psn << k_ticket_bits) | (plan.ticket_start & ((std::uint64_t{1} << k_ticket_bits) - 1));
}

std::unique_ptr<proxy::wire_queue> decode(const dev::ring_view& v, const queue_plan& plan, std::uint32_t number) {
  auto m = memory_of<bnxt_memory>(v, plan);
  m.msns = v.rdma.bnxt.msn_table;
  m.depth_log2 = v.rdma.depth_log2;
  m.doorbell = v.rdma.doorbell;
  m.cqes = reinterpret_cast<std::uint32_t*>(v.rdma.completions);
  m.cq_depth_log2 = v.rdma.cq_depth_log2;
  m.cq_doorbell = v.rdma.bnxt.cq_doorbell;
  m.cq_number = v.rdma.bnxt.cq_id;
  m.first_psn = plan.first_psn;
  m.path_mtu = plan.path_mtu;
  m.by_slots = v.rdma.bnxt.unit != 1;
  return std::make_unique<bnxt_queue>(m, number, plan.max_message);
}

}  // namespace

const family& bnxt_family() {
  static const family row{
      "bnxt",    dev::ring_kind::bnxt, w::k_wqe_bytes,   k_most_depth, w::k_inline_bytes, w::k_inline_bytes,
      k_atomics, k_most_cq_depth,      completion_bytes, aux_bytes,    set_fields,        prepare,
      decode};
  return row;
}

}  // namespace xio::model::rdma
