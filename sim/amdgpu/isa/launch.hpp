// SPDX-License-Identifier: MIT
// What a dispatch packet and its queue say about one kernel, as the interpreter needs it.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace amdgpu {

class l2_cache;
class vector_cache;

enum class target { gfx90a, gfx942, gfx1100 };
// As LLVM names it.
constexpr const char* name_of(target t) {
  return t == target::gfx942 ? "gfx942" : t == target::gfx1100 ? "gfx1100" : "gfx90a";
}
// gfx90a where the name is no other's.
inline target target_of(const std::string& name) {
  return name == "gfx942" ? target::gfx942 : name == "gfx1100" ? target::gfx1100 : target::gfx90a;
}

// LLVM AMDGPUUsage, "Code Object" and "Initial Kernel Execution State".
struct launch {
  amdgpu::target target = target::gfx90a;
  std::uint64_t kernel_object = 0;             // address of the 64-byte kernel descriptor
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // work-items
  std::array<std::uint32_t, 3> workgroup_size{1, 1, 1};
  std::uint32_t private_bytes = 0;  // per work-item, as the packet says
  std::uint32_t group_bytes = 0;    // per workgroup, static and dynamic LDS
  std::uint64_t kernarg = 0;
  std::uint64_t dispatch_packet = 0;  // address of the 64-byte AQL packet
  std::uint64_t queue = 0;            // address of amd_queue_t
  std::uint64_t dispatch_id = 0;
  // Scratch of the queue: a wave at slot S has [scratch_base + S * scratch_wave_bytes, + scratch_wave_bytes). The
  // interpreter uses slot `scratch_slot + wave` for a workgroup; the scheduler gives workgroups that run at the same
  // time slots that do not overlap. scratch_wave_bytes 0 with private_bytes not 0: waves get memory of their own.
  std::uint64_t scratch_base = 0, scratch_wave_bytes = 0;
  std::uint32_t scratch_slot = 0;
  // Flat apertures, each of 4 GiB: bits 63:32 select them.
  std::uint64_t lds_aperture = 0, private_aperture = 0;
  // Called for s_sendmsg MSG_INTERRUPT with the event number that the wave left in M0; may be null.
  void (*interrupt)(void* argument, std::uint32_t event) = nullptr;
  void* interrupt_argument = nullptr;
  bool counts_lines = false;         // counters::lines is kept, which costs time
  bool counts_each = false;          // counters::times is kept, likewise
  bool watches_registers = false;    // registers that were never written are reported
  std::uint64_t adversary_seed = 0;  // 0: plain memory
  l2_cache* l2 = nullptr;            // where memory is late, that which the workgroup's compute unit has
  vector_cache* l1 = nullptr;        // likewise, of a gfx1100's shader array; null: the workgroup has one alone
  unsigned xccs = 1;                 // of a gfx942, each with an L2
  unsigned patience_ms = 2000;       // how long a workgroup runs before it is asked whether lanes wait for each other
  std::string name;                  // of the kernel where known, for reports
};

}  // namespace amdgpu
