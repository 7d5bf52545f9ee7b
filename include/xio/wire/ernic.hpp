// SPDX-License-Identifier: MIT
// The legacy personality of AMD's emulated NIC (rocm-ernic 0.0.x, PCI 1022:8000), a descendant of VMware's paravirtual
// RDMA device. Newer ones present ionic instead. Layouts are those of linux/include/uapi/rdma/vmw_pvrdma-abi.h and
// rdma-core providers/vmw_pvrdma/{qp.c,cq.c,pvrdma_ring.h}; that rocm-ernic kept them is seen in rocm-xio
// src/endpoints/rdma-ep/rocm-ernic/ernic-queue-pair.hip. Little endian.
//
// Send queue entry, 128 bytes:
//   dword  write, read            atomic
//   0-1    wr_id                  the same: comes back in the completion
//   2      number of SGEs         1
//   3      bytes of all SGEs      8        (the driver of old leaves it as it is, rocm-xio fills it)
//   4      opcode                 the same
//   5      flags                  the same
//   6      immediate, big endian  0
//   7      0                      0
//   8-9    remote address         the same
//   10-11  rkey, 0                what to compare with, or to add
//   12-13  not used               what to swap in
//   14-15  not used               rkey, 0
//   16-19  not used               not used
//   20-31  up to 3 SGEs of {u64 address, u32 bytes, u32 lkey}
//
// There is no inline form: the flag exists, but neither provider nor device does anything with it.
//
// Queues are rings of which both indices are in memory, in a page before the entries: {prod_tail, cons_head}, once for
// what the host produces (tx) and once for what it consumes (rx). An index counts modulo twice the depth, so that a
// full ring is not an empty one. A send queue uses tx: the poster advances prod_tail and then writes its doorbell,
// which says nothing but whose. A completion queue uses rx: the device advances prod_tail, the reader cons_head.
//
// Completion queue entry, 64 bytes: wr_id, QP (both 64 bits), opcode, status, bytes, immediate, source QP, flags,
// vendor error; then what concerns receivers. Not confirmed: that the device leaves out completions of entries that do
// not ask for any (its QEMU ancestor tells all of them); readers must take both.
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::ernic {

constexpr std::uint32_t k_wqe_bytes = 128;
constexpr std::uint32_t k_wqe_dwords = 32;
constexpr std::uint32_t k_sge_at = 80;
constexpr std::uint32_t k_sge_bytes = 16;
constexpr std::uint32_t k_most_sges = 3;
constexpr std::uint32_t k_cqe_bytes = 64;
constexpr std::uint32_t k_cqe_dwords = 16;
constexpr std::uint32_t k_page_bytes = 4096;  // the indices' page

// Of an entry with one SGE the rest is free: an SGE may point there, if the ring itself is registered memory.
constexpr std::uint32_t k_spare_at = 96;
constexpr std::uint32_t k_spare_bytes = 32;
static_assert(k_sge_at + k_sge_bytes == k_spare_at && k_spare_at + k_spare_bytes == k_wqe_bytes);

// enum pvrdma_wr_opcode.
enum opcode : std::uint32_t {
  op_rdma_write = 0,
  op_rdma_write_imm = 1,
  op_rdma_read = 4,
  op_atomic_cs = 5,
  op_atomic_fa = 6,
};

// Send flags: bits of enum ib_send_flags.
constexpr std::uint32_t k_fence = 1;
constexpr std::uint32_t k_signaled = 2;
constexpr std::uint32_t k_solicited = 4;
constexpr std::uint32_t k_inline = 8;

// enum pvrdma_wc_status.
enum status : std::uint32_t {
  ok = 0,
  local_length = 1,
  local_qp_operation = 2,
  local_protection = 4,
  flushed = 5,
  bad_response = 7,
  remote_invalid_request = 9,
  remote_access = 10,
  remote_operation = 11,
  retry_exceeded = 12,
  rnr_retry_exceeded = 13,
  fatal = 19,
};

// enum pvrdma_wc_opcode.
enum completed_op : std::uint32_t { done_write = 1, done_read = 2, done_cs = 3, done_fa = 4 };

// Dwords of the indices' page.
constexpr std::uint32_t k_tx_tail = 0, k_tx_head = 1, k_rx_tail = 2, k_rx_head = 3;
constexpr std::uint32_t k_indices_bytes = 16;

// Dwords of a completion queue entry.
constexpr std::uint32_t k_cqe_qp_at = 2, k_cqe_opcode_at = 4, k_cqe_status_at = 5, k_cqe_bytes_at = 6,
                        k_cqe_vendor_at = 10;

// UAR doorbell of a queue pair (PVRDMA_UAR_QP_SEND): 32 bits. The completion queue's (offset 4) arms interrupts and
// asks a device to poll, neither of which XIO does.
constexpr std::uint32_t k_handle_mask = 0xffffff;
constexpr std::uint32_t k_send = 1u << 30;
XIO_WIRE std::uint32_t doorbell(std::uint32_t handle) { return (handle & k_handle_mask) | k_send; }

// Indices.
XIO_WIRE std::uint32_t index_of(std::uint64_t count, std::uint32_t depth_log2) {
  return static_cast<std::uint32_t>(count) & ((2u << depth_log2) - 1);
}
XIO_WIRE bool is_index(std::uint32_t index, std::uint32_t depth_log2) { return index >> depth_log2 <= 1; }
// Entries from the one numbered `from` up to the index.
XIO_WIRE std::uint32_t between(std::uint64_t from, std::uint32_t index, std::uint32_t depth_log2) {
  return index_of(index - from, depth_log2);
}

XIO_WIRE std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
XIO_WIRE std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
XIO_WIRE std::uint64_t join(std::uint32_t lo, std::uint32_t hi) { return (static_cast<std::uint64_t>(hi) << 32) | lo; }

// Dwords 0-3, 4-7.
XIO_WIRE void put_request(std::uint32_t* dw, std::uint64_t wr_id, std::uint32_t sges, std::uint32_t bytes) {
  dw[0] = low(wr_id);
  dw[1] = high(wr_id);
  dw[2] = sges;
  dw[3] = bytes;
}
XIO_WIRE void put_operation(std::uint32_t* dw, std::uint32_t op, std::uint32_t flags, std::uint32_t immediate) {
  dw[0] = op;
  dw[1] = flags;
  dw[2] = be32(immediate);
  dw[3] = 0;
}
// Dwords 8-11 of a copy.
XIO_WIRE void put_remote(std::uint32_t* dw, std::uint64_t address, std::uint32_t rkey) {
  dw[0] = low(address);
  dw[1] = high(address);
  dw[2] = rkey;
  dw[3] = 0;
}
// Dwords 8-15 of an atomic.
XIO_WIRE void put_atomic(std::uint32_t* dw, std::uint64_t address, std::uint64_t compare_or_add, std::uint64_t swap,
                         std::uint32_t rkey) {
  dw[0] = low(address);
  dw[1] = high(address);
  dw[2] = low(compare_or_add);
  dw[3] = high(compare_or_add);
  dw[4] = low(swap);
  dw[5] = high(swap);
  dw[6] = rkey;
  dw[7] = 0;
}
XIO_WIRE void put_sge(std::uint32_t* dw, std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) {
  dw[0] = low(address);
  dw[1] = high(address);
  dw[2] = bytes;
  dw[3] = lkey;
}

}  // namespace xio::wire::ernic
