// SPDX-License-Identifier: MIT
// What a host and a GPU's command processor share: packets, queues and signals. Layouts: HSA Runtime Programmer's
// Reference 1.2, chapter 2; AMD's own parts: ROCR inc/amd_hsa_queue.h, inc/amd_hsa_signal.h and, for vendor packets,
// inc/hsa_ext_amd.h and core/runtime/amd_aql_queue.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace amdgpu::aql {

enum packet_type : std::uint32_t {
  vendor_specific = 0,
  invalid = 1,
  kernel_dispatch = 2,
  barrier_and = 3,
  agent_dispatch = 4,
  barrier_or = 5
};
constexpr std::uint32_t k_packet_bytes = 64;

constexpr std::uint32_t type_of(std::uint16_t header) { return header & 0xffu; }
// Fences of a packet: 0 none, 1 of the agent, 2 of the system.
constexpr std::uint32_t k_agent = 1, k_system = 2;
constexpr std::uint32_t acquire_of(std::uint16_t header) { return header >> 9 & 3u; }
constexpr std::uint32_t release_of(std::uint16_t header) { return header >> 11 & 3u; }
constexpr bool has_barrier(std::uint16_t header) { return (header >> 8 & 1) != 0; }

struct dispatch_packet {
  std::uint16_t header, setup, workgroup[3], reserved0;
  std::uint32_t grid[3], private_bytes, group_bytes;
  std::uint64_t kernel_object, kernarg, reserved1, completion;
};
static_assert(sizeof(dispatch_packet) == k_packet_bytes);

struct barrier_packet {
  std::uint16_t header, reserved0;
  std::uint32_t reserved1;
  std::uint64_t depends[5], reserved2, completion;
};
static_assert(sizeof(barrier_packet) == k_packet_bytes);

// Vendor packets say their format in the byte behind the header.
constexpr std::uint8_t k_format_pm4 = 1, k_format_barrier_value = 2;
struct pm4_packet {
  std::uint16_t header;
  std::uint8_t format, reserved0;
  std::uint32_t indirect[4], dwords_left, reserved1[8];
  std::uint32_t completion[2];  // a signal, at no multiple of 8 of its own
};
static_assert(sizeof(pm4_packet) == k_packet_bytes && offsetof(pm4_packet, completion) == 56);

enum condition : std::uint32_t { equal = 0, not_equal = 1, less = 2, greater_equal = 3 };
struct barrier_value_packet {
  std::uint16_t header;
  std::uint8_t format, reserved0;
  std::uint32_t reserved1;
  std::uint64_t signal;
  std::int64_t value, mask;
  std::uint32_t condition, reserved2;
  std::uint64_t reserved3, reserved4, completion;
};
static_assert(sizeof(barrier_value_packet) == k_packet_bytes);

// Type 3 packets of PM4: linux drivers/gpu/drm/amd/amdgpu/soc15d.h.
constexpr std::uint32_t k_pm4_nop = 0x10, k_pm4_indirect = 0x3f, k_pm4_release_mem = 0x49, k_pm4_acquire_mem = 0x58;
constexpr std::uint32_t pm4_type(std::uint32_t dw0) { return dw0 >> 30; }
constexpr std::uint32_t pm4_op(std::uint32_t dw0) { return dw0 >> 8 & 0xffu; }
constexpr std::uint32_t pm4_dwords(std::uint32_t dw0) { return (dw0 >> 16 & 0x3fffu) + 2; }

struct signal {
  std::int64_t kind, value;
  std::uint64_t mailbox;  // address of the word that an interrupt's event goes to, or 0
  std::uint32_t event, reserved0;
  std::uint64_t start, end;  // time stamps
  std::uint64_t queue, reserved1;
};
static_assert(sizeof(signal) == 64);

struct queue {
  std::uint32_t type, features;
  std::uint64_t base, doorbell_signal;
  std::uint32_t packets, reserved0;
  std::uint64_t id;
  std::uint32_t reserved1[4];
  std::uint64_t write_index;
  std::uint32_t group_aperture_high, private_aperture_high, max_cu, max_wave;
  std::uint64_t legacy_index;
  std::uint32_t legacy_lock, reserved2[9];
  std::uint64_t read_index;
  std::uint32_t read_index_offset, tmpring, scratch_descriptor[4];
  std::uint64_t scratch_location, scratch_bytes;
  std::uint32_t scratch_lane_bytes, properties, reserved3[2];
  std::uint64_t inactive_signal;
  std::uint32_t reserved4[14];
};
static_assert(sizeof(queue) == 256 && offsetof(queue, write_index) == 56 && offsetof(queue, read_index) == 128 &&
              offsetof(queue, scratch_descriptor) == 144 && offsetof(queue, inactive_signal) == 192);
constexpr std::uint32_t k_scratch_once = 1u << 4;  // queue::properties: the scratch is for one dispatch

// A queue's reports by its inactive signal (ROCR amd_aql_queue.cpp, DynamicScratchHandler).
enum trouble : std::int64_t {
  needs_scratch = 1,
  bad_dimensions = 2,
  bad_group_memory = 4,
  bad_code = 8,
  bad_packet = 32,
  group_too_large = 64,
  out_of_registers = 128,
  bad_vendor_packet = 256,
  scratch_done = 512,
  aperture_violation = 0x20000000,
  illegal_instruction = 0x40000000,
  debug_trap = 0x80000000
};

}  // namespace amdgpu::aql
