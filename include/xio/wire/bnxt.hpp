// SPDX-License-Identifier: MIT
// Work queue entries, completions and doorbells of Broadcom NetXtreme-E NICs (bnxt_re: Thor, Thor2): pure functions
// from fields to dwords and back. Everything is little endian. A WQE is a chain of 16-byte slots: header, second
// header by opcode, then SGEs or inline bytes.
//
// In static mode every WQE takes 8 slots even if it uses fewer, its header says how many it uses, and all indices
// (doorbell, MSN entry, completion) count WQEs. In variable mode WQEs are packed, doorbells and MSN entries count
// slots, and so do completions of what failed (qplib_fp.c, bnxt_qplib_cq_process_req). XIO's entries have one size, so
// that they can be filled in parallel: static mode, or variable mode with 8 slots in every header.
//
// Layouts: rdma-core providers/bnxt_re/bnxt_re-abi.h (structs and masks), verbs.c (what is written where; static mode:
// bnxt_re_required_slots, bnxt_re_alloc_queues), db.c, memory.h (epoch); Linux drivers/infiniband/hw/bnxt_re
// qplib_res.h (bnxt_qplib_ring_prod_db divides by the slots of a WQE), qplib_fp.c (sq_cons_idx).
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::bnxt {

constexpr std::uint32_t k_slot_bytes = 16;
constexpr std::uint32_t k_slot_dwords = 4;
constexpr std::uint32_t k_header_slots = 2;
constexpr std::uint32_t k_wqe_slots = 8;  // static mode: main.h, STATIC_WQE_NUM_SLOTS
constexpr std::uint32_t k_wqe_bytes = k_wqe_slots * k_slot_bytes;
constexpr std::uint32_t k_max_sges = 6;          // BNXT_RE_STATIC_WQE_MAX_SGE
constexpr std::uint32_t k_inline_bytes = 96;     // BNXT_RE_MAX_INLINE_SIZE
constexpr std::uint32_t k_inline_at = 32;        // offset in the WQE
constexpr std::uint32_t k_queue_mask = 0xfffff;  // numbers of queue pairs and completion queues have 20 bits
// WQEs that a real send queue must have beyond what is ever outstanding: BNXT_RE_FULL_FLAG_DELTA, "HW requirements" by
// memory.h, and one more.
constexpr std::uint32_t k_queue_reserve = 0x80 + 1;

enum opcode : std::uint32_t {
  op_send = 0x00,
  op_send_imm = 0x01,
  op_send_invalidate = 0x02,
  op_rdma_write = 0x04,
  op_rdma_write_imm = 0x05,
  op_rdma_read = 0x06,
  op_atomic_cs = 0x08,
  op_atomic_fa = 0x0b,
  op_local_invalidate = 0x0c,
  op_bind = 0x0e,
  op_receive = 0x80,
};

// enum bnxt_re_wr_flags
constexpr std::uint32_t k_signaled = 0x01;
constexpr std::uint32_t k_read_fence = 0x02;
constexpr std::uint32_t k_fence = 0x04;  // what rdma-core sets for IBV_SEND_FENCE
constexpr std::uint32_t k_solicited = 0x08;
constexpr std::uint32_t k_inline = 0x10;

XIO_WIRE std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
XIO_WIRE std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
XIO_WIRE std::uint64_t join(std::uint32_t hi, std::uint32_t lo) { return (static_cast<std::uint64_t>(hi) << 32) | lo; }

// The size field of a WQE with n inline bytes; verbs.c, bnxt_re_required_slots.
XIO_WIRE std::uint32_t inline_slots(std::uint32_t bytes) {
  return k_header_slots + (bytes + k_slot_bytes - 1) / k_slot_bytes;
}

// --- Encode: writes a slot's four dwords at dw -------------------------------------------------------

// struct bnxt_re_bsqe. lower: bytes in all, or the remote address of an atomic. key_or_immediate: rkey of an atomic.
XIO_WIRE void put_header(std::uint32_t* dw, std::uint32_t op, std::uint32_t flags, std::uint32_t slots,
                         std::uint32_t key_or_immediate, std::uint64_t lower) {
  dw[0] = (op & 0xff) | ((flags & 0xff) << 8) | ((slots & 0xff) << 16);
  dw[1] = key_or_immediate;
  dw[2] = low(lower);
  dw[3] = high(lower);
}

// struct bnxt_re_rdma, the second slot of reads and writes.
XIO_WIRE void put_remote(std::uint32_t* dw, std::uint64_t address, std::uint32_t rkey) {
  dw[0] = low(address);
  dw[1] = high(address);
  dw[2] = rkey;
  dw[3] = 0;
}

// struct bnxt_re_atomic, the second slot of atomics; a fetch-add has no compare.
XIO_WIRE void put_atomic(std::uint32_t* dw, std::uint64_t swap_or_add, std::uint64_t compare) {
  dw[0] = low(swap_or_add);
  dw[1] = high(swap_or_add);
  dw[2] = low(compare);
  dw[3] = high(compare);
}

// struct bnxt_re_sge
XIO_WIRE void put_sge(std::uint32_t* dw, std::uint64_t address, std::uint32_t lkey, std::uint32_t bytes) {
  dw[0] = low(address);
  dw[1] = high(address);
  dw[2] = lkey;
  dw[3] = bytes;
}

// --- Decode ------------------------------------------------------------------------------------------

struct header {
  std::uint32_t op, flags, slots, key_or_immediate;
  std::uint64_t lower;
  std::uint32_t reserved;  // every bit that must be 0
};
XIO_WIRE header get_header(const std::uint32_t* dw) {
  return header{dw[0] & 0xff, (dw[0] >> 8) & 0xff, (dw[0] >> 16) & 0xff,
                dw[1],        join(dw[3], dw[2]),  dw[0] & 0xff000000u};
}

struct remote {
  std::uint64_t address;
  std::uint32_t rkey, reserved;
};
XIO_WIRE remote get_remote(const std::uint32_t* dw) { return remote{join(dw[1], dw[0]), dw[2], dw[3]}; }

struct atomic {
  std::uint64_t swap_or_add, compare;
};
XIO_WIRE atomic get_atomic(const std::uint32_t* dw) { return atomic{join(dw[1], dw[0]), join(dw[3], dw[2])}; }

struct sge {
  std::uint64_t address;
  std::uint32_t lkey, bytes;
};
XIO_WIRE sge get_sge(const std::uint32_t* dw) { return sge{join(dw[1], dw[0]), dw[2], dw[3]}; }

// --- Packet sequence numbers -------------------------------------------------------------------------

constexpr std::uint32_t k_psn_mask = 0xffffff;

// Packets of one WQE: an empty message is one packet, and a read counts those of its response (verbs.c,
// bnxt_re_fill_psns_for_msntbl asks for the length only).
XIO_WIRE std::uint32_t packets_of(std::uint64_t bytes, std::uint32_t mtu) {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + mtu - 1) / mtu);
}

// Thor2 (context flag MSN_TABLE): a table of 8-byte entries behind the ring, one per WQE, index = message number modulo
// its size; in static mode as many as WQEs. start_index is the index that the doorbell stood at before the WQE: verbs.c
// passes *dbtail, in static mode a count of WQEs (the kernel's own driver gives slots; it runs Thor2 in variable mode,
// where both are the same).
XIO_WIRE std::uint64_t msn_entry(std::uint32_t start_psn, std::uint32_t next_psn, std::uint32_t start_index) {
  return (start_psn & k_psn_mask) | (static_cast<std::uint64_t>(next_psn & k_psn_mask) << 24) |
         (static_cast<std::uint64_t>(start_index & 0xffff) << 48);
}
struct msn {
  std::uint32_t start_psn, next_psn, start_index;
};
XIO_WIRE msn get_msn(std::uint64_t entry) {
  return msn{static_cast<std::uint32_t>(entry) & k_psn_mask, static_cast<std::uint32_t>(entry >> 24) & k_psn_mask,
             static_cast<std::uint32_t>(entry >> 48)};
}

// Older chips: a PSN search table, index = that of the WQE. struct bnxt_re_psns (8 bytes; the first two dwords), and
// bnxt_re_psns_ext (16 bytes) for Thor.
XIO_WIRE void put_psn_search(std::uint32_t* dw, std::uint32_t op, std::uint32_t start_psn, std::uint32_t next_psn) {
  dw[0] = (start_psn & k_psn_mask) | (op << 24);
  dw[1] = next_psn & k_psn_mask;  // flags 0
}
XIO_WIRE void put_psn_search_ext(std::uint32_t* dw, std::uint32_t op, std::uint32_t start_psn, std::uint32_t next_psn,
                                 std::uint32_t start_index) {
  put_psn_search(dw, op, start_psn, next_psn);
  dw[2] = start_index & 0xffff;
  dw[3] = 0;
}

// --- Doorbells: struct bnxt_re_db_hdr, one 8-byte store ----------------------------------------------

enum doorbell_type : std::uint32_t {
  bell_sq = 0x0,
  bell_rq = 0x1,
  bell_srq = 0x2,
  bell_srq_arm = 0x3,
  bell_cq = 0x4,
  bell_cq_arm_solicited = 0x5,
  bell_cq_arm = 0x6,
  bell_cq_arm_enable = 0x7,
  bell_srq_arm_enable = 0x8,
  bell_cq_cut_ack = 0x9,
  bell_push_start = 0xc,
  bell_push_end = 0xd,
  bell_null = 0xf,
};

// index: the next WQE to write, or the next CQE to read, modulo the queue. epoch: flips each time that it wraps and
// begins with 0 (memory.h, bnxt_re_incr_tail and _head). toggle: for arming.
XIO_WIRE std::uint64_t doorbell_value(std::uint32_t type, std::uint32_t queue, std::uint32_t index, std::uint32_t epoch,
                                      std::uint32_t toggle = 0) {
  const std::uint32_t lower = (index & 0xffffff) | ((epoch & 1) << 24) | ((toggle & 1) << 25);
  const std::uint32_t upper = (queue & k_queue_mask) | (1u << 26) | ((type & 0xf) << 28);
  return join(upper, lower);
}
// Of a queue of 2^log2 entries that has gone on to `count`. unit: what the index counts for an entry.
XIO_WIRE std::uint64_t doorbell_at(std::uint32_t type, std::uint32_t queue, std::uint64_t count, std::uint32_t log2,
                                   std::uint32_t unit = 1) {
  return doorbell_value(type, queue, (static_cast<std::uint32_t>(count) & ((1u << log2) - 1)) * unit,
                        static_cast<std::uint32_t>(count >> log2) & 1);
}
struct doorbell {
  std::uint32_t type, queue, index, epoch, toggle, valid;
  std::uint32_t reserved;
};
XIO_WIRE doorbell get_doorbell(std::uint64_t value) {
  const std::uint32_t lower = low(value), upper = high(value);
  return doorbell{upper >> 28,
                  upper & k_queue_mask,
                  lower & 0xffffff,
                  (lower >> 24) & 1,
                  (lower >> 25) & 1,
                  (upper >> 26) & 1,
                  (lower & 0xfc000000u) | (upper & 0x0bf00000u)};
}

// --- Completions: struct bnxt_re_req_cqe or bnxt_re_term_cqe, then struct bnxt_re_bcqe ---------------

constexpr std::uint32_t k_cqe_bytes = 32;
constexpr std::uint32_t k_cqe_dwords = 8;
constexpr std::uint32_t k_cqe_handle_at = 0;    // dword of qp_handle, 8 bytes: what the driver gave for the queue pair
constexpr std::uint32_t k_cqe_consumer_at = 2;  // dword of con_indx (rq_sq_cidx), offset 8
constexpr std::uint32_t k_cqe_state_at = 6;     // dword of phase, type, status: offset 24

enum cqe_type : std::uint32_t {
  cqe_request = 0x0,
  cqe_receive_rc = 0x1,
  cqe_receive_ud = 0x2,
  cqe_receive_raw = 0x3,
  cqe_no_op = 0xd,
  cqe_terminal = 0xe,  // the queue pair is in error; everything before its index is complete
  cqe_cut_off = 0xf,   // of a CQ being resized
};

// enum bnxt_re_req_wc_status
enum status : std::uint32_t {
  ok = 0x0,
  bad_response = 0x1,
  local_length = 0x2,
  local_qp_operation = 0x3,
  local_protection = 0x4,
  memory_management = 0x5,
  remote_invalid_request = 0x6,
  remote_access = 0x7,
  remote_operation = 0x8,
  rnr_retry_exceeded = 0x9,
  retry_exceeded = 0xa,
  flushed = 0xb,
};

// The index of the next WQE after those that are complete, modulo the queue: 16 bits. The WQE that failed is the one
// before it (qplib_fp.c, bnxt_qplib_cq_process_req). In a terminal CQE the receive queue's stands above, and 0xffff
// says nothing.
constexpr std::uint32_t k_no_consumer = 0xffff;
XIO_WIRE std::uint32_t cqe_consumer(std::uint32_t dw) { return dw & 0xffff; }

// A CQE is new if its phase is that of the lap: 1 in the first lap over zeroed memory, then 0, 1 ...
XIO_WIRE std::uint32_t cqe_phase_of(std::uint64_t count, std::uint32_t log2) {
  return (static_cast<std::uint32_t>(count >> log2) & 1) ^ 1;
}
XIO_WIRE std::uint32_t cqe_state(std::uint32_t phase, std::uint32_t type, std::uint32_t why) {
  return (phase & 1) | ((type & 0xf) << 1) | ((why & 0xff) << 8);  // toggle 0, flags 0
}
XIO_WIRE std::uint32_t cqe_state_phase(std::uint32_t dw) { return dw & 1; }
XIO_WIRE std::uint32_t cqe_state_type(std::uint32_t dw) { return (dw >> 1) & 0xf; }
XIO_WIRE std::uint32_t cqe_state_status(std::uint32_t dw) { return (dw >> 8) & 0xff; }

}  // namespace xio::wire::bnxt
