// SPDX-License-Identifier: MIT
// How a firmware command ends. Status values are those of the Programmer's Reference Manual (Linux
// include/linux/mlx5/device.h: MLX5_CMD_STAT_*). Each firmware has syndromes of its own; here one says which rule was
// broken, so that a test can ask for it.
#pragma once
#include <cstdint>

namespace uverbs::firmware {

enum class status : std::uint8_t {
  ok = 0x0,
  internal = 0x1,
  bad_op = 0x2,
  bad_param = 0x3,
  bad_system_state = 0x4,
  bad_resource = 0x5,
  busy = 0x6,
  exceeds_limit = 0x8,
  bad_resource_state = 0x9,
  bad_index = 0xa,
  no_resources = 0xf,
  bad_qp_state = 0x10,
  bad_input_length = 0x50,
  bad_output_length = 0x51,
};

enum class rule : std::uint32_t {
  none = 0,
  opcode = 0x51a001,
  input_length = 0x51a002,
  output_length = 0x51a003,
  reserved_bits = 0x51a004,  // the first bit's position is in the log
  object_number = 0x51a005,  // no such CQ or QP
  qp_state = 0x51a006,       // a transition that the state machine has not
  cq_size = 0x51a007,
  cqe_size = 0x51a008,
  event_queue = 0x51a009,
  uar_page = 0x51a00a,
  buffer_umem = 0x51a00b,  // no such umem, or too small
  record_umem = 0x51a00c,  // no such umem, beyond its end, or misaligned
  collapsed = 0x51a00d,    // collapsed, but its overrun is not ignored
  service_type = 0x51a00e,
  protection_domain = 0x51a00f,
  send_cq = 0x51a010,
  receive_cq = 0x51a011,
  receive_kind = 0x51a012,
  sq_size = 0x51a013,
  clock_format = 0x51a014,
  port = 0x51a015,
  pkey_index = 0x51a016,
  optional_mask = 0x51a017,
  mtu = 0x51a018,
  message_size = 0x51a019,
  gid_index = 0x51a01a,
  remote_mac = 0x51a01b,
  remote_gid = 0x51a01c,
  source_port = 0x51a01d,
  responder_depth = 0x51a01e,
  initiator_depth = 0x51a01f,
  atomic_mode = 0x51a020,
  still_used = 0x51a021,  // a CQ that a QP names
  path_migration = 0x51a022,
  infiniband_field = 0x51a023,  // on an Ethernet port
  hop_limit = 0x51a024,
  rq_size = 0x51a025,
  asked_for = 0x51afff,  // by the test's settings
};

struct verdict {
  status what = status::ok;
  rule why = rule::none;
  explicit operator bool() const { return what != status::ok; }
};

}  // namespace uverbs::firmware
