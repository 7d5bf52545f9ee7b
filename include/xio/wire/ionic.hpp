// SPDX-License-Identifier: MIT
// Work queue entries, completions and doorbells of AMD Pensando NICs (ionic), firmware interfaces 1 and 2: pure
// functions from fields to dwords and back. The entry's index is little endian, the rest of it big endian. Layouts:
// rdma-core (691953d8d) providers/ionic/ionic_fw_types.h; what the driver puts there: ionic_verbs.c (ionic_v1_prep_*);
// doorbells and colours: ionic_queue.h.
//
//   bytes  entry of 64 bytes (the smallest stride)
//   0      le64 index in the ring
//   8      op, number of SGEs, be16 flags, be32 immediate
//   16     be64 remote address, be32 rkey, be32 length                    write, read
//   32     SGE {be64 address, be32 length, be32 lkey}, or inline bytes
//   16     be64 remote address, be32 rkey, be64 swap or add, be64 compare atomic
//   44     interface 1: 0, then an SGE at 48. 2: be32 lkey, then be64 local address at 48
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::ionic {

constexpr std::uint32_t k_wqe_bytes = 64;
constexpr std::uint32_t k_wqe_dwords = 16;
constexpr std::uint32_t k_payload_at = 32;
// The payload that a 64-byte entry carries itself; ionic_v1_send_wqe_max_data: the stride less header and common body.
constexpr std::uint32_t k_inline_bytes = 32;
constexpr std::uint32_t k_cqe_bytes = 32;
constexpr std::uint32_t k_cqe_dwords = 8;
constexpr std::uint32_t k_max_message = 1u << 30;  // the device takes 2 GiB; lengths are signed in the driver

enum class interface : std::uint32_t { v1 = 1, v2 = 2 };

enum class verb : std::uint32_t { read, write, write_imm, compare_swap, fetch_add };

// enum ionic_v1_op, ionic_v2_op.
XIO_WIRE std::uint32_t opcode(interface i, verb v) {
  const bool one = i == interface::v1;
  switch (v) {
    case verb::read: return one ? 0x03 : 0x02;
    case verb::write: return one ? 0x04 : 0x21;
    case verb::write_imm: return one ? 0x05 : 0x61;
    case verb::compare_swap: return one ? 0x06 : 0x04;
    case verb::fetch_add: break;
  }
  return one ? 0x07 : 0x05;
}

enum flag : std::uint32_t {
  flag_fence = 0x01,
  flag_solicited = 0x02,
  flag_inline = 0x04,
  flag_signaled = 0x08,
  flag_color = 0x10,
};

enum cqe_type : std::uint32_t { type_recv = 1, type_send_msn = 2, type_send_npg = 3, type_recv_indirect = 4 };
constexpr std::uint32_t k_cqe_color = 1;
constexpr std::uint32_t k_cqe_error = 2;

// enum ionic_status.
enum status : std::uint32_t {
  ok = 0,
  local_length = 1,
  local_qp_operation = 2,
  local_protection = 3,
  flushed = 4,
  memory_management = 5,
  bad_response = 6,
  local_access = 7,
  remote_invalid_request = 8,
  remote_access = 9,
  remote_operation = 10,
  retry_exceeded = 11,
  rnr_retry_exceeded = 12,
};

XIO_WIRE std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
XIO_WIRE std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
XIO_WIRE std::uint64_t join(std::uint32_t hi, std::uint32_t lo) { return (static_cast<std::uint64_t>(hi) << 32) | lo; }

// Of queues to the device: 1 in the first lap, and turned in each (ionic_color_wrap).
XIO_WIRE bool color_of(std::uint64_t position, std::uint32_t depth_log2) { return ((position >> depth_log2) & 1) == 0; }

// --- Entries -----------------------------------------------------------------------------------------

XIO_WIRE void put_base(std::uint32_t* dw, std::uint32_t index, std::uint32_t op, std::uint32_t sges,
                       std::uint32_t flags, std::uint32_t immediate) {
  dw[0] = index;
  dw[1] = 0;
  dw[2] = op | (sges << 8) | (static_cast<std::uint32_t>(be16(static_cast<std::uint16_t>(flags))) << 16);
  dw[3] = be32(immediate);
}
XIO_WIRE void put_remote(std::uint32_t* dw, std::uint64_t address, std::uint32_t rkey, std::uint32_t last) {
  dw[0] = be32(high(address));
  dw[1] = be32(low(address));
  dw[2] = be32(rkey);
  dw[3] = be32(last);
}
XIO_WIRE void put_sge(std::uint32_t* dw, std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) {
  dw[0] = be32(high(address));
  dw[1] = be32(low(address));
  dw[2] = be32(bytes);
  dw[3] = be32(lkey);
}

struct base {
  std::uint64_t index;
  std::uint32_t op, sges, flags, immediate;
};
XIO_WIRE base get_base(const std::uint32_t* dw) {
  return base{join(dw[1], dw[0]), dw[2] & 0xff, (dw[2] >> 8) & 0xff, be16(static_cast<std::uint16_t>(dw[2] >> 16)),
              be32(dw[3])};
}
XIO_WIRE std::uint64_t get_64(const std::uint32_t* dw) { return join(be32(dw[0]), be32(dw[1])); }

// --- Completions -------------------------------------------------------------------------------------

constexpr std::uint32_t k_cqe_msn_at = 1;     // dwords
constexpr std::uint32_t k_cqe_index_at = 4;   // le64: index 15:0, time stamp above
constexpr std::uint32_t k_cqe_status_at = 6;  // be32: status where the error bit is set, else length
constexpr std::uint32_t k_cqe_state_at = 7;   // be32: colour, error, type 7:5, queue pair 31:8

XIO_WIRE std::uint32_t cqe_state(bool color, bool error, std::uint32_t type, std::uint32_t qid) {
  return be32((color ? k_cqe_color : 0) | (error ? k_cqe_error : 0) | (type << 5) | (qid << 8));
}
XIO_WIRE bool cqe_state_color(std::uint32_t dw) { return (be32(dw) & k_cqe_color) != 0; }
XIO_WIRE bool cqe_state_error(std::uint32_t dw) { return (be32(dw) & k_cqe_error) != 0; }
XIO_WIRE std::uint32_t cqe_state_type(std::uint32_t dw) { return (be32(dw) >> 5) & 7; }

// msg_msn counts the messages that have ended, the reported one included (ionic_comp_msn); 24 bits, as on the wire of
// InfiniBand (specification 9.7.5.1.2, AETH).
constexpr std::uint32_t k_msn_mask = 0xffffff;

// --- Doorbells ---------------------------------------------------------------------------------------

// Of a send queue: index of the next entry to be written; of a completion queue: of the next to be read.
XIO_WIRE std::uint64_t doorbell_value(std::uint32_t qid, std::uint32_t index) {
  return (static_cast<std::uint64_t>(qid & 0xffffff) << 24) | (index & 0xffff);
}
struct doorbell {
  std::uint32_t qid, index, reserved;  // reserved: ring numbers, arm bits and what lies above the queue
};
XIO_WIRE doorbell get_doorbell(std::uint64_t v) {
  return doorbell{static_cast<std::uint32_t>(v >> 24) & 0xffffff, static_cast<std::uint32_t>(v & 0xffff),
                  static_cast<std::uint32_t>((v >> 16) & 0xff) | (static_cast<std::uint32_t>(v >> 48) << 8)};
}

}  // namespace xio::wire::ionic
