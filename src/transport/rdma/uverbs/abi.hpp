// SPDX-License-Identifier: MIT
// The system calls of /dev/infiniband/uverbs*, as the kernel has them, and not as the headers of the build: structures
// and numbers never change. Sources: Linux 7.2 include/uapi/rdma/rdma_user_ioctl_cmds.h (header, attribute),
// ib_user_ioctl_cmds.h (objects, methods, attributes), ib_user_ioctl_verbs.h, ib_user_verbs.h (structures).
#pragma once
#include <cstdint>

namespace xio::rdma::uverbs {

// struct ib_uverbs_ioctl_hdr, struct ib_uverbs_attr, RDMA_VERBS_IOCTL
struct ioctl_header {
  std::uint16_t length, object, method, count;
  std::uint64_t reserved1;
  std::uint32_t driver, reserved2;
};
struct attribute {
  std::uint16_t id, length, flags, enum_data;
  std::uint64_t data;
};
static_assert(sizeof(ioctl_header) == 24 && sizeof(attribute) == 16);
constexpr unsigned long k_ioctl = 0xc0181b01;  // _IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr)
constexpr std::uint16_t k_mandatory = 1;

enum driver : std::uint32_t { driver_bnxt = 6, driver_ionic = 21 };  // enum rdma_driver_id

// BNXT_RE_ABI_VERSION and IONIC_ABI_VERSION of Linux's own drivers, as sysfs gives them (abi_version). Vendors' drivers
// have others, whose structures are theirs.
constexpr int k_linux_abi = 1;

enum object : std::uint16_t { obj_device = 0, obj_pd = 1, obj_cq = 3, obj_qp = 4, obj_mr = 7, obj_events = 16 };

// UVERBS_ATTR_UHW_IN, _OUT: what the driver of the device gets and gives besides.
constexpr std::uint16_t k_driver_space = 1 << 12, k_driver_in = k_driver_space, k_driver_out = k_driver_space + 1,
                        k_driver_more = k_driver_space + 2;

namespace device {
enum method : std::uint16_t { invoke_write = 0, query_port = 2, get_context = 3, query_gids = 5 };
enum write_attribute : std::uint16_t { core_in = 0, core_out = 1, write_command = 2 };
enum port_attribute : std::uint16_t { port_number = 0, port_response = 1 };
enum context_attribute : std::uint16_t { vectors = 0, core_support = 1 };
enum gid_attribute : std::uint16_t { entry_bytes = 0, gid_flags = 1, gid_entries = 2, gid_count = 3 };
}  // namespace device

// enum ib_uverbs_write_cmds
enum write_command : std::uint32_t { cmd_query_device = 1, cmd_alloc_pd = 3, cmd_reg_mr = 9, cmd_modify_qp = 26 };

namespace events {
enum method : std::uint16_t { open = 0 };
enum attribute : std::uint16_t { file = 0 };
}  // namespace events
// struct ib_uverbs_async_event_desc
struct event {
  std::uint64_t about;  // of a port: its number
  std::uint32_t type, reserved;
};
static_assert(sizeof(event) == 16);

namespace cq {
enum method : std::uint16_t { create = 0, destroy = 1 };
enum attribute : std::uint16_t {
  handle = 0,
  entries = 1,
  user_handle = 2,
  vector = 4,
  entries_made = 6,
  buffer = 12,  // UVERBS_ATTR_CREATE_CQ_BUF_UMEM, Linux 7.2
};
enum destroy_attribute : std::uint16_t { destroyed = 0, destroy_response = 1 };
}  // namespace cq

namespace qp {
enum method : std::uint16_t { create = 0, destroy = 1 };
enum attribute : std::uint16_t {
  handle = 0,
  pd = 2,
  send_cq = 4,
  receive_cq = 5,
  user_handle = 7,
  capacity = 8,
  type = 9,
  capacity_made = 13,
  number = 14,
  receive_buffer = 16,  // UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM, Linux 7.2
  send_buffer = 17,     // UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM, Linux 7.2
};
enum destroy_attribute : std::uint16_t { destroyed = 0, destroy_response = 1 };
constexpr std::uint64_t k_reliable = 2;  // IB_UVERBS_QPT_RC
}  // namespace qp

namespace mr {
enum method : std::uint16_t { destroy = 1, register_dmabuf = 4 };
enum destroy_attribute : std::uint16_t { destroyed = 0 };
enum attribute : std::uint16_t {
  handle = 0,
  pd = 1,
  offset = 2,
  length = 3,
  address = 4,
  file = 5,
  access = 6,
  lkey = 7,
  rkey = 8
};
}  // namespace mr

// struct ib_uverbs_buffer_desc: memory of a queue, by address or by dma-buf.
struct buffer_description {
  std::uint32_t type;  // 0: dma-buf, 1: address
  std::int32_t fd;
  std::uint32_t flags, optional_flags;
  std::uint64_t address, length;
};
static_assert(sizeof(buffer_description) == 32);

// struct ib_uverbs_qp_cap
struct queue_capacity {
  std::uint32_t sends, receives, send_spans, receive_spans, inline_bytes;
};

// struct ib_uverbs_destroy_cq_resp, struct ib_uverbs_destroy_qp_resp
struct cq_events {
  std::uint32_t completions, others;
};
struct qp_events {
  std::uint32_t others;
};

// struct ib_uverbs_alloc_pd and _resp
struct alloc_pd {
  std::uint64_t response;
};
struct alloc_pd_response {
  std::uint32_t handle;
};

// struct ib_uverbs_reg_mr and _resp
struct reg_mr {
  std::uint64_t response, start, length, device_address;
  std::uint32_t pd, access;
};
struct reg_mr_response {
  std::uint32_t handle, lkey, rkey;
};
static_assert(sizeof(reg_mr) == 40);
// enum ib_uverbs_access_flags
constexpr std::uint32_t k_local_write = 1, k_remote_write = 2, k_remote_read = 4, k_remote_atomic = 8,
                        k_relaxed = 1u << 20;

// struct ib_uverbs_qp_dest, struct ib_uverbs_modify_qp
struct qp_destination {
  std::uint8_t gid[16];
  std::uint32_t flow_label;
  std::uint16_t lid, reserved;
  std::uint8_t source_gid, hop_limit, traffic_class, sl, path_bits, rate, is_global, port;
};
struct modify_qp {
  qp_destination destination, alternate;
  std::uint32_t handle, mask, qkey, receive_psn, send_psn, remote_number, access;
  std::uint16_t pkey_index, alternate_pkey_index;
  std::uint8_t state, current_state, path_mtu, migration, drained_event, initiator_depth, responder_depth, rnr_timer,
      port, timeout, retries, rnr_retries, alternate_port, alternate_timeout, reserved[2];
};
static_assert(sizeof(qp_destination) == 32 && sizeof(modify_qp) == 112);
// enum ib_qp_attr_mask, enum ib_qp_state
enum qp_mask : std::uint32_t {
  m_state = 1,
  m_access = 8,
  m_pkey = 16,
  m_port = 32,
  m_path = 128,
  m_mtu = 256,
  m_timeout = 512,
  m_retries = 1024,
  m_rnr_retries = 2048,
  m_receive_psn = 4096,
  m_initiator_depth = 8192,
  m_rnr_timer = 32768,
  m_send_psn = 65536,
  m_responder_depth = 131072,
  m_remote_number = 1048576
};
enum qp_state : std::uint8_t { to_init = 1, to_rtr = 2, to_rts = 3 };

// struct ib_uverbs_query_device, _resp
struct query_device {
  std::uint64_t response;
};
struct query_device_response {
  std::uint64_t firmware, node_guid, image_guid, most_memory, page_sizes;
  std::uint32_t vendor, part, version, queue_pairs, send_requests, flags, spans, read_spans, cqs, cq_entries, regions,
      domains, responder_depth, ee_depth, resources, initiator_depth, ee_initiator_depth, atomics, others[14];
  std::uint16_t pkeys;
  std::uint8_t ack_delay, ports, reserved[4];
};
static_assert(sizeof(query_device_response) == 176);

// struct ib_uverbs_query_port_resp_ex
struct query_port_response {
  std::uint32_t flags, most_message, bad_pkeys, bad_qkeys, gids;
  std::uint16_t pkeys, lid, manager_lid;
  std::uint8_t state, most_mtu, active_mtu, lmc, lanes, manager_sl, subnet_timeout, init_type, width, speed, physical,
      link, more_flags, reserved;
  std::uint16_t flags2;
  std::uint8_t reserved2[2];
  std::uint32_t speed2;
};
static_assert(sizeof(query_port_response) == 48);

// struct ib_uverbs_gid_entry
struct gid_entry {
  std::uint64_t gid[2];
  std::uint32_t index, port, type, interface;
};
static_assert(sizeof(gid_entry) == 32);

}  // namespace xio::rdma::uverbs
