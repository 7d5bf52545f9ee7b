// SPDX-License-Identifier: MIT
// The firmware commands that make an mlx5 queue pair whose rings lie in memory of our choice, as bytes. Pure;
// mlx5_direct sends them. Bit offsets count from the most significant bit of the first byte, as in the Programmer's
// Reference Manual and in rdma-core providers/mlx5/mlx5_ifc.h; of create_cq, Linux include/linux/mlx5/mlx5_ifc.h (cqc,
// create_cq_in).
#pragma once
#include <cstddef>

#include "proxy/verbs_address.hpp"

namespace xio::rdma::mlx5 {

struct field {
  std::uint32_t at, bits;
};
void put(unsigned char* from, field f, std::uint64_t value);
std::uint64_t get(const unsigned char* from, field f);

// create_cq_in, create_qp_in and the three modifications all have this many bytes; what comes back has 16.
constexpr std::size_t k_command_bytes = 0x880 / 8;
constexpr std::size_t k_reply_bytes = 0x80 / 8;
using command = std::array<unsigned char, k_command_bytes>;
using reply = std::array<unsigned char, k_reply_bytes>;

// mlx5_ifc.h: MLX5_CMD_OP_*
enum opcode : std::uint32_t {
  op_create_cq = 0x400,
  op_create_qp = 0x500,
  op_rst2init_qp = 0x502,
  op_init2rtr_qp = 0x503,
  op_rtr2rts_qp = 0x504
};

// Registered memory (DEVX umem), and bytes into it.
struct place {
  std::uint32_t umem;
  std::uint64_t offset;
};

struct cq_plan {
  std::uint32_t log_entries;
  std::uint32_t uar_page, event_queue;
  std::uint32_t entries_umem;  // from its start
  place doorbell_record;
  // Every completion overwrites entry 0, and there is no overrun, so that no consumer index is ever told.
  bool collapsed = true;
};
command create_cq(const cq_plan& p);

struct qp_plan {
  std::uint32_t log_slots;  // of 64 bytes
  std::uint32_t uar_page, protection_domain, cq;
  std::uint32_t slots_umem;  // from its start
  place doorbell_record;
  bool default_clock;  // ts_format 1; devices without the choice want 0
  // A receive queue of entries of 16 bytes lies in front of the slots; without a completion queue for it there is none.
  std::uint32_t log_receives = 0, receive_cq = 0;
};
// RC, and no results scattered into completions.
command create_qp(const qp_plan& p);
// How a command ended: byte 0 of its reply, 0 for success (Linux include/linux/mlx5/device.h: MLX5_CMD_STAT_*).
constexpr std::uint32_t k_bad_parameter = 0x3;
std::uint32_t status_of(const reply& a);
// "exceeds a limit (status 0x8, syndrome 0x...)", and the cure for it.
std::string text_of(const reply& a);
const char* cure_of(const reply& a);
// Of both: cqn or qpn.
std::uint32_t made_number(const reply& a);

struct path_plan {
  std::uint8_t port;
  std::uint16_t pkey_index;
  std::uint8_t mtu;  // enum ibv_mtu
  std::uint8_t sl, traffic_class, hop_limit;
  std::uint8_t timeout, retry, rnr_retry;
  std::uint8_t responder_depth, initiator_depth;  // powers of two are used
  std::uint16_t source_port;                      // UDP, of RoCE v2
  std::array<unsigned char, 6> remote_mac;
  bool needs_grh;  // InfiniBand: the port sends nothing without one (IBV_QPF_GRH_REQUIRED)
};
command rst2init(std::uint32_t qpn, const path_plan& p);
command init2rtr(std::uint32_t qpn, const path_plan& p, const proxy::verbs_address& mine,
                 const proxy::verbs_address& remote);
command rtr2rts(std::uint32_t qpn, const path_plan& p, std::uint32_t first_psn);

}  // namespace xio::rdma::mlx5
