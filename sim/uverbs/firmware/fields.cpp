// SPDX-License-Identifier: MIT
#include "uverbs/firmware/fields.hpp"

#include <array>
#include <vector>

namespace uverbs::firmware {

std::span<const field> all_fields() {
  const auto of = [](auto... f) { return std::array<field, sizeof...(f)>{f...}; };
  static const auto rows =
      of(head::opcode, head::uid, head::op_mod, head::object, head::opt_param_mask, reply::status, reply::syndrome,
         reply::object, k_cqc, k_qpc, k_queried_qpc, k_queried_cqc, k_path, create_cq::umem_offset, create_cq::umem_id,
         create_cq::umem_valid, create_qp::umem_offset, create_qp::umem_id, create_qp::umem_valid, cqc::dbr_umem_valid,
         cqc::cqe_sz, cqc::cc, cqc::oi, cqc::dbr_umem_id, cqc::log_cq_size, cqc::uar_page, cqc::c_eqn, cqc::dbr_addr,
         qpc::state, qpc::st, qpc::pm_state, qpc::pd, qpc::mtu, qpc::log_msg_max, qpc::log_rq_size, qpc::log_rq_stride,
         qpc::log_sq_size, qpc::ts_format, qpc::uar_page, qpc::user_index, qpc::remote_qpn, qpc::log_sra_max,
         qpc::retry_count, qpc::rnr_retry, qpc::next_send_psn, qpc::cqn_snd, qpc::log_rra_max, qpc::atomic_mode,
         qpc::rre, qpc::rwe, qpc::rae, qpc::min_rnr_nak, qpc::next_rcv_psn, qpc::cqn_rcv, qpc::dbr_addr, qpc::rq_type,
         qpc::dbr_umem_valid, qpc::dbr_umem_id, ads::pkey_index, ads::grh, ads::rlid, ads::ack_timeout,
         ads::src_addr_index, ads::hop_limit, ads::tclass, ads::rgid, ads::dscp, ads::udp_sport, ads::eth_prio, ads::sl,
         ads::vhca_port_num, ads::rmac_47_32, ads::rmac_31_0);
  return rows;
}

std::uint64_t get(const unsigned char* from, const field& f, std::uint32_t base) {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < f.bits; ++i) {
    const std::uint32_t bit = base + f.at + i;
    value = value << 1 | (from[bit / 8] >> (7 - bit % 8) & 1u);
  }
  return value;
}

void put(unsigned char* to, const field& f, std::uint64_t value, std::uint32_t base) {
  for (std::uint32_t i = 0; i < f.bits; ++i) {
    const std::uint32_t bit = base + f.at + i;
    const unsigned mask = 0x80u >> (bit % 8);
    const bool set = (value >> (f.bits - 1 - i) & 1) != 0;
    to[bit / 8] = static_cast<unsigned char>(set ? to[bit / 8] | mask : to[bit / 8] & ~mask);
  }
}

long first_foreign_bit(const unsigned char* command, std::size_t bytes, std::span<const placed> taken) {
  std::vector<bool> known(bytes * 8);
  for (const placed& p : taken)
    for (std::uint32_t i = 0; i < p.what->bits; ++i)
      if (const std::uint32_t bit = p.base + p.what->at + i; bit < known.size()) known[bit] = true;
  for (std::size_t bit = 0; bit < bytes * 8; ++bit)
    if (!known[bit] && (command[bit / 8] >> (7 - bit % 8) & 1) != 0) return static_cast<long>(bit);
  return -1;
}

}  // namespace uverbs::firmware
