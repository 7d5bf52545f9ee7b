// SPDX-License-Identifier: MIT
#include "transport/rdma/mlx5/commands.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.hpp"

namespace xio::rdma::mlx5 {

namespace {

// Headers of commands and replies.
constexpr field f_opcode{0x00, 16}, f_object{0x48, 24}, f_optional{0x80, 32};
constexpr field f_made{0x48, 24};

// cqc, at 0x80 of create_cq_in
constexpr std::uint32_t k_cqc = 0x80;
constexpr field f_cq_record_is_umem{k_cqc + 0x06, 1}, f_cq_collapsed{k_cqc + 0x0b, 1},
    f_cq_ignores_overrun{k_cqc + 0x0e, 1}, f_cq_record_umem{k_cqc + 0x20, 32}, f_cq_log_size{k_cqc + 0x63, 5},
    f_cq_uar{k_cqc + 0x68, 24}, f_cq_event_queue{k_cqc + 0xb8, 8}, f_cq_record{k_cqc + 0x1c0, 64};
constexpr field f_cq_umem{0x2c0, 32}, f_cq_umem_valid{0x2e0, 1};

// qpc, at 0xc0 of create_qp_in and of the modifications
constexpr std::uint32_t k_qpc = 0xc0;
constexpr field f_service{k_qpc + 0x08, 8}, f_path_migration{k_qpc + 0x13, 2}, f_pd{k_qpc + 0x28, 24},
    f_mtu{k_qpc + 0x40, 3}, f_log_message{k_qpc + 0x43, 5}, f_log_receives{k_qpc + 0x49, 4},
    f_log_slots{k_qpc + 0x51, 4}, f_clock{k_qpc + 0x58, 2}, f_uar{k_qpc + 0x68, 24}, f_user_index{k_qpc + 0x88, 24},
    f_remote_qpn{k_qpc + 0xa8, 24}, f_log_initiator{k_qpc + 0x388, 3}, f_retry{k_qpc + 0x38d, 3},
    f_rnr_retry{k_qpc + 0x390, 3}, f_send_psn{k_qpc + 0x3c8, 24}, f_send_cq{k_qpc + 0x3e8, 24},
    f_log_responder{k_qpc + 0x488, 3}, f_atomic_mode{k_qpc + 0x48c, 4}, f_remote_read{k_qpc + 0x490, 1},
    f_remote_write{k_qpc + 0x491, 1}, f_remote_atomic{k_qpc + 0x492, 1}, f_rnr_timer{k_qpc + 0x4a3, 5},
    f_receive_psn{k_qpc + 0x4a8, 24}, f_receive_cq{k_qpc + 0x4e8, 24}, f_record{k_qpc + 0x500, 64},
    f_receive_kind{k_qpc + 0x565, 3}, f_record_is_umem{k_qpc + 0x683, 1}, f_record_umem{k_qpc + 0x720, 32};
constexpr field f_slots_umem{0x840, 32}, f_slots_umem_valid{0x860, 1};

// ads, at 0xc0 of qpc
constexpr std::uint32_t k_ads = k_qpc + 0xc0;
constexpr field f_pkey_index{k_ads + 0x10, 16}, f_grh{k_ads + 0x28, 1}, f_remote_lid{k_ads + 0x30, 16},
    f_timeout{k_ads + 0x40, 5}, f_gid_index{k_ads + 0x48, 8}, f_hop_limit{k_ads + 0x58, 8},
    f_traffic_class{k_ads + 0x64, 8}, f_dscp{k_ads + 0x10a, 6}, f_source_port{k_ads + 0x110, 16},
    f_ethernet_priority{k_ads + 0x121, 3}, f_sl{k_ads + 0x124, 4}, f_port{k_ads + 0x128, 8},
    f_remote_mac_high{k_ads + 0x130, 16}, f_remote_mac_low{k_ads + 0x140, 32};
constexpr std::uint32_t k_remote_gid = k_ads + 0x80;  // 16 bytes

constexpr std::uint32_t k_service_rc = 0;    // MLX5_QPC_ST_RC
constexpr std::uint32_t k_migrated = 3;      // MLX5_QPC_PM_STATE_MIGRATED
constexpr std::uint32_t k_receives = 0;      // MLX5_QPC_RQ_TYPE_REGULAR
constexpr std::uint32_t k_no_receives = 3;   // MLX5_QPC_RQ_TYPE_ZERO_SIZE_RQ
constexpr std::uint32_t k_atomics_to_8 = 3;  // MLX5_QPC_ATOMIC_MODE_UP_TO_8B
constexpr std::uint32_t k_no_index = 0xffffff;
constexpr std::uint32_t k_log_message = 30;  // 1 GiB
constexpr std::uint32_t k_rnr_timer = 12;    // 0.64 ms
// Linux include/linux/mlx5/qp.h: MLX5_QP_OPTPAR_RRE, _RAE, _RWE
constexpr std::uint32_t k_may_access = 0x2 | 0x4 | 0x8;

std::uint32_t log2_of(std::uint32_t n) { return n == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(n)) - 1; }

command begin(opcode op, std::uint32_t object) {
  command c{};
  put(c.data(), f_opcode, op);
  put(c.data(), f_object, object);
  return c;
}

void open_to_peer(command& c) {
  put(c.data(), f_remote_read, 1);
  put(c.data(), f_remote_write, 1);
  put(c.data(), f_remote_atomic, 1);
  put(c.data(), f_atomic_mode, k_atomics_to_8);
}

}  // namespace

void put(unsigned char* from, field f, std::uint64_t value) {
  for (std::uint32_t i = 0; i < f.bits; ++i) {
    const std::uint32_t bit = f.at + f.bits - 1 - i;
    const unsigned mask = 0x80u >> (bit % 8);
    const unsigned old = from[bit / 8] & ~mask;
    from[bit / 8] = static_cast<unsigned char>((value >> i & 1) != 0 ? old | mask : old);
  }
}

std::uint64_t get(const unsigned char* from, field f) {
  std::uint64_t value = 0;
  for (std::uint32_t bit = f.at; bit < f.at + f.bits; ++bit) value = value << 1 | (from[bit / 8] >> (7 - bit % 8) & 1);
  return value;
}

command create_cq(const cq_plan& p) {
  command c = begin(op_create_cq, 0);
  put(c.data(), f_cq_collapsed, p.collapsed ? 1 : 0);
  put(c.data(), f_cq_ignores_overrun, p.collapsed ? 1 : 0);
  put(c.data(), f_cq_log_size, p.log_entries);
  put(c.data(), f_cq_uar, p.uar_page);
  put(c.data(), f_cq_event_queue, p.event_queue);
  put(c.data(), f_cq_umem, p.entries_umem);
  put(c.data(), f_cq_umem_valid, 1);
  put(c.data(), f_cq_record_umem, p.doorbell_record.umem);
  put(c.data(), f_cq_record_is_umem, 1);
  put(c.data(), f_cq_record, p.doorbell_record.offset);
  return c;
}

command create_qp(const qp_plan& p) {
  command c = begin(op_create_qp, 0);
  put(c.data(), f_service, k_service_rc);
  put(c.data(), f_path_migration, k_migrated);
  put(c.data(), f_pd, p.protection_domain);
  put(c.data(), f_log_slots, p.log_slots);
  put(c.data(), f_clock, p.default_clock ? 1 : 0);
  put(c.data(), f_uar, p.uar_page);
  put(c.data(), f_user_index, k_no_index);
  put(c.data(), f_send_cq, p.cq);
  const bool receives = p.receive_cq != 0;
  put(c.data(), f_receive_cq, receives ? p.receive_cq : p.cq);
  put(c.data(), f_receive_kind, receives ? k_receives : k_no_receives);
  put(c.data(), f_log_receives, receives ? p.log_receives : 0);  // log_rq_stride 0: 16 bytes
  put(c.data(), f_slots_umem, p.slots_umem);
  put(c.data(), f_slots_umem_valid, 1);
  put(c.data(), f_record_umem, p.doorbell_record.umem);
  put(c.data(), f_record_is_umem, 1);
  put(c.data(), f_record, p.doorbell_record.offset);
  return c;
}

namespace {

struct ending {
  std::uint32_t status;
  const char *name, *cure;
};
constexpr ending k_endings[] = {
    {0x1, "an internal error", "see the kernel's log, and reset the NIC"},
    {0x2, "an unknown command", "update the NIC's firmware"},
    {k_bad_parameter, "a bad parameter", "check XIO_RDMA_*, and update the NIC's firmware"},
    {0x4, "a bad state of the NIC", "see the kernel's log, and reset the NIC"},
    {0x5, "a bad resource", "check XIO_RDMA_*, and update the NIC's firmware"},
    {0x6, "a busy resource", "end other users of the NIC"},
    {0x7, "not ready", "wait for the NIC's reset to end; see the kernel's log"},
    {0x8, "a limit exceeded", "lower XIO_RING_DEPTH or XIO_RDMA_QUEUES"},
    {0x9, "a bad state of the resource", "see the kernel's log"},
    {0xa, "a bad index", "check XIO_RDMA_GID_INDEX and XIO_RDMA_PKEY_INDEX"},
    {0xf, "no resources left", "end other users of the NIC, or lower XIO_RDMA_QUEUES"},
    {0x10, "a bad state of the queue pair", "check that the port is up"},
    {0x30, "a bad packet", "update the NIC's firmware"},
    {0x40, "a size below the completions that wait", "update the NIC's firmware"},
    {0x50, "a bad length", "update the NIC's firmware"},
    {0x51, "a bad length of the reply", "update the NIC's firmware"},
};

const ending& ending_of(const reply& a) {
  static constexpr ending other{0, "an unknown status", "see the kernel's log"};
  const auto* found = std::ranges::find_if(k_endings, [&](const ending& e) { return e.status == status_of(a); });
  return found == std::end(k_endings) ? other : *found;
}

}  // namespace

std::uint32_t status_of(const reply& a) { return static_cast<std::uint32_t>(get(a.data(), {0, 8})); }

// The syndrome is the second word (mlx5_ifc.h: create_qp_out).
std::string text_of(const reply& a) {
  return fmt::format("{} (status {:#x}, syndrome {:#x})", ending_of(a).name, status_of(a), get(a.data(), {0x20, 32}));
}

const char* cure_of(const reply& a) { return ending_of(a).cure; }

std::uint32_t made_number(const reply& a) { return static_cast<std::uint32_t>(get(a.data(), f_made)); }

command rst2init(std::uint32_t qpn, const path_plan& p) {
  command c = begin(op_rst2init_qp, qpn);
  put(c.data(), f_path_migration, k_migrated);
  put(c.data(), f_port, p.port);
  put(c.data(), f_pkey_index, p.pkey_index);
  open_to_peer(c);
  return c;
}

command init2rtr(std::uint32_t qpn, const path_plan& p, const proxy::verbs_address& mine,
                 const proxy::verbs_address& remote) {
  command c = begin(op_init2rtr_qp, qpn);
  put(c.data(), f_optional, k_may_access);
  put(c.data(), f_mtu, p.mtu);
  put(c.data(), f_log_message, k_log_message);
  put(c.data(), f_remote_qpn, remote.qpn);
  put(c.data(), f_receive_psn, remote.psn);
  put(c.data(), f_rnr_timer, k_rnr_timer);
  put(c.data(), f_log_responder, log2_of(p.responder_depth));
  open_to_peer(c);
  put(c.data(), f_port, p.port);
  put(c.data(), f_pkey_index, p.pkey_index);
  put(c.data(), f_hop_limit, p.hop_limit);
  put(c.data(), f_traffic_class, p.traffic_class);
  put(c.data(), f_gid_index, mine.gid_index);
  for (std::uint32_t i = 0; i < 16; ++i) put(c.data(), {k_remote_gid + 8 * i, 8}, remote.address[i]);
  if (mine.link == proxy::link_layer::infiniband) {
    const bool same_subnet = std::equal(mine.address.begin(), mine.address.begin() + 8, remote.address.begin());
    put(c.data(), f_grh, !same_subnet || remote.lid == 0 || p.needs_grh ? 1 : 0);
    put(c.data(), f_remote_lid, remote.lid);
    put(c.data(), f_sl, p.sl);
    return c;
  }
  put(c.data(), f_ethernet_priority, p.sl & 7);
  put(c.data(), f_dscp, p.traffic_class >> 2);
  if (mine.kind == proxy::gid_kind::roce_v2) put(c.data(), f_source_port, p.source_port);
  const auto& m = p.remote_mac;
  put(c.data(), f_remote_mac_high, static_cast<std::uint32_t>(m[0]) << 8 | m[1]);
  put(c.data(), f_remote_mac_low,
      static_cast<std::uint32_t>(m[2]) << 24 | static_cast<std::uint32_t>(m[3]) << 16 |
          static_cast<std::uint32_t>(m[4]) << 8 | m[5]);
  return c;
}

command rtr2rts(std::uint32_t qpn, const path_plan& p, std::uint32_t first_psn) {
  command c = begin(op_rtr2rts_qp, qpn);
  put(c.data(), f_timeout, p.timeout);
  put(c.data(), f_retry, p.retry);
  put(c.data(), f_rnr_retry, p.rnr_retry);
  put(c.data(), f_log_initiator, log2_of(p.initiator_depth));
  put(c.data(), f_send_psn, first_psn);
  return c;
}

}  // namespace xio::rdma::mlx5
