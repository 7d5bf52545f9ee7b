// SPDX-License-Identifier: MIT
// Fields of firmware commands, as the Programmer's Reference Manual lays them out: bits from the most significant of
// the first byte. tests/uverbs/fields_test compares the table with Linux include/linux/mlx5/mlx5_ifc.h. Written without
// a look at libxio's own numbers: each is the other's judge.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace uverbs::firmware {

struct field {
  const char* structure;  // of mlx5_ifc.h, without mlx5_ifc_ and _bits
  const char* name;
  std::uint32_t at, bits;
  // Fields of DEVX alone, which the kernel's header leaves reserved; see the manual's cqc, qpc, create_cq, create_qp.
  bool is_for_users = false;
};

namespace head {
inline constexpr field opcode{"create_qp_in", "opcode", 0x00, 0x10}, uid{"create_qp_in", "uid", 0x10, 0x10},
    op_mod{"create_qp_in", "op_mod", 0x30, 0x10}, object{"rst2init_qp_in", "qpn", 0x48, 0x18},
    opt_param_mask{"rst2init_qp_in", "opt_param_mask", 0x80, 0x20};
}
namespace reply {
inline constexpr field status{"create_qp_out", "status", 0x00, 0x8}, syndrome{"create_qp_out", "syndrome", 0x20, 0x20},
    object{"create_qp_out", "qpn", 0x48, 0x18};
}

// Contexts start here in their commands.
inline constexpr field k_cqc{"create_cq_in", "cq_context", 0x80, 0x200}, k_qpc{"create_qp_in", "qpc", 0xc0, 0x740},
    k_queried_qpc{"query_qp_out", "qpc", 0xc0, 0x740}, k_queried_cqc{"query_cq_out", "cq_context", 0x80, 0x200},
    k_path{"qpc", "primary_address_path", 0xc0, 0x160};

namespace create_cq {
inline constexpr field umem_offset{"create_cq_in", "cq_umem_offset", 0x280, 0x40, true},
    umem_id{"create_cq_in", "cq_umem_id", 0x2c0, 0x20, true}, umem_valid{"create_cq_in", "cq_umem_valid", 0x2e0, 0x1};
}
namespace create_qp {
inline constexpr field umem_offset{"create_qp_in", "wq_umem_offset", 0x800, 0x40, true},
    umem_id{"create_qp_in", "wq_umem_id", 0x840, 0x20, true}, umem_valid{"create_qp_in", "wq_umem_valid", 0x860, 0x1};
}

namespace cqc {
inline constexpr field dbr_umem_valid{"cqc", "dbr_umem_valid", 0x6, 0x1}, cqe_sz{"cqc", "cqe_sz", 0x8, 0x3},
    cc{"cqc", "cc", 0xb, 0x1}, oi{"cqc", "oi", 0xe, 0x1}, dbr_umem_id{"cqc", "dbr_umem_id", 0x20, 0x20, true},
    log_cq_size{"cqc", "log_cq_size", 0x63, 0x5}, uar_page{"cqc", "uar_page", 0x68, 0x18},
    c_eqn{"cqc", "c_eqn_or_apu_element", 0xa0, 0x20}, dbr_addr{"cqc", "dbr_addr", 0x1c0, 0x40};
}

namespace qpc {
inline constexpr field state{"qpc", "state", 0x0, 0x4}, st{"qpc", "st", 0x8, 0x8},
    pm_state{"qpc", "pm_state", 0x13, 0x2}, pd{"qpc", "pd", 0x28, 0x18}, mtu{"qpc", "mtu", 0x40, 0x3},
    log_msg_max{"qpc", "log_msg_max", 0x43, 0x5}, log_rq_size{"qpc", "log_rq_size", 0x49, 0x4},
    log_rq_stride{"qpc", "log_rq_stride", 0x4d, 0x3}, log_sq_size{"qpc", "log_sq_size", 0x51, 0x4},
    ts_format{"qpc", "ts_format", 0x58, 0x2}, uar_page{"qpc", "uar_page", 0x68, 0x18},
    user_index{"qpc", "user_index", 0x88, 0x18}, remote_qpn{"qpc", "remote_qpn", 0xa8, 0x18},
    log_sra_max{"qpc", "log_sra_max", 0x388, 0x3}, retry_count{"qpc", "retry_count", 0x38d, 0x3},
    rnr_retry{"qpc", "rnr_retry", 0x390, 0x3}, next_send_psn{"qpc", "next_send_psn", 0x3c8, 0x18},
    cqn_snd{"qpc", "cqn_snd", 0x3e8, 0x18}, log_rra_max{"qpc", "log_rra_max", 0x488, 0x3},
    atomic_mode{"qpc", "atomic_mode", 0x48c, 0x4}, rre{"qpc", "rre", 0x490, 0x1}, rwe{"qpc", "rwe", 0x491, 0x1},
    rae{"qpc", "rae", 0x492, 0x1}, min_rnr_nak{"qpc", "min_rnr_nak", 0x4a3, 0x5},
    next_rcv_psn{"qpc", "next_rcv_psn", 0x4a8, 0x18}, cqn_rcv{"qpc", "cqn_rcv", 0x4e8, 0x18},
    dbr_addr{"qpc", "dbr_addr", 0x500, 0x40}, rq_type{"qpc", "rq_type", 0x565, 0x3},
    dbr_umem_valid{"qpc", "dbr_umem_valid", 0x683, 0x1}, dbr_umem_id{"qpc", "dbr_umem_id", 0x720, 0x20, true};
}

namespace ads {
inline constexpr field pkey_index{"ads", "pkey_index", 0x10, 0x10}, grh{"ads", "grh", 0x28, 0x1},
    rlid{"ads", "rlid", 0x30, 0x10}, ack_timeout{"ads", "ack_timeout", 0x40, 0x5},
    src_addr_index{"ads", "src_addr_index", 0x48, 0x8}, hop_limit{"ads", "hop_limit", 0x58, 0x8},
    tclass{"ads", "tclass", 0x64, 0x8}, rgid{"ads", "rgid_rip", 0x80, 0x80}, dscp{"ads", "dscp", 0x10a, 0x6},
    udp_sport{"ads", "udp_sport", 0x110, 0x10}, eth_prio{"ads", "eth_prio", 0x121, 0x3}, sl{"ads", "sl", 0x124, 0x4},
    vhca_port_num{"ads", "vhca_port_num", 0x128, 0x8}, rmac_47_32{"ads", "rmac_47_32", 0x130, 0x10},
    rmac_31_0{"ads", "rmac_31_0", 0x140, 0x20};
}

// All of them, for the comparison.
std::span<const field> all_fields();

// At most 64 bits of it. `base`: bits before its structure.
std::uint64_t get(const unsigned char* from, const field& f, std::uint32_t base = 0);
void put(unsigned char* to, const field& f, std::uint64_t value, std::uint32_t base = 0);

struct placed {
  const field* what;
  std::uint32_t base;
};
// The first bit that is set outside of the fields that a command takes, or -1.
long first_foreign_bit(const unsigned char* command, std::size_t bytes, std::span<const placed> taken);

}  // namespace uverbs::firmware
