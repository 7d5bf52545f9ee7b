// SPDX-License-Identifier: MIT
// The state of one wave, and what its workgroup shares (MI200 ISA, chapter 3 "Kernel State").
#pragma once
#include <cstring>
#include <vector>

#include "amdgpu/isa/launch.hpp"
#include "amdgpu/isa/operation.hpp"
#include "amdgpu/isa/unwritten.hpp"
#include "amdgpu/report/fault.hpp"

namespace amdgpu {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

struct code_page;

// The waves of one workgroup share this.
struct shared_state {
  launch how;
  std::uint32_t id[3] = {0, 0, 0};
  port* memory = nullptr;
  bool late = false;  // loads and stores are under way until they are waited for
  std::vector<std::uint8_t> lds;
  counters counted;
  fault failed;
};

// Registers whose load is under way.
struct arrival {
  enum class counter : std::uint8_t { vm, lds, scalar };
  counter by = counter::vm;
  place where = place::vgpr;
  unsigned first = 0, dwords = 0;
  std::uint64_t number = 0;  // of the wave's accesses that this counter counts
  std::uint64_t pc = 0, active = 0;
};

struct wave {
  enum class state : std::uint8_t { ready, at_barrier, ended };

  std::uint64_t pc = 0;
  std::uint32_t* v = nullptr;  // 512 rows of 64: VGPRs, then AGPRs
  alignas(8) std::uint32_t s[reg::nowhere + 16] = {};
  bool scc = false;
  state now = state::ready;
  bool wave32 = false;     // 32 lanes, and a lane mask is one SGPR: gfx1100's other kind of wave
  bool turn_over = false;  // s_sleep, s_barrier, s_endpgm
  bool polled = false;     // slept in this turn
  bool stopped = false;    // a fault was written down
  std::uint32_t mode = 0;  // MI200 ISA 3.5
  bool index_on = false;   // s_set_gpr_idx_on: M0[7:0] is added to VGPR numbers that M0[15:12] names
  std::uint32_t hw_id = 0;
  unsigned number = 0;        // in the workgroup
  std::uint64_t scratch = 0;  // flat_scratch: base of this wave's scratch
  std::uint64_t scratch_bytes = 0;
  std::uint64_t scratch_shift = 0;  // from the GPU's address to the process's
  std::uint64_t issued = 0;         // accesses that vmcnt counts
  std::uint64_t issued_stores = 0;  // accesses that gfx1100's vscnt counts
  std::uint64_t issued_lds = 0;     // accesses that lgkmcnt counts
  std::vector<arrival> arrivals;
  written_registers* written = nullptr;  // null: not followed
  shared_state* of = nullptr;
  const code_page* page = nullptr;
  std::uint64_t page_base = 1;
  std::uint64_t page_shift = 0;  // from the GPU's address to the process's
  std::uint64_t page_end = 0;    // how far of it is mapped

  // EXEC as a row of 0 or ~0, made when it is asked for after a change.
  alignas(64) std::uint32_t mask_row[lanes];
  std::uint64_t mask_of = 0;

  std::uint64_t get64(unsigned n) const {
    std::uint64_t q;
    std::memcpy(&q, &s[n], 8);
    return q;
  }
  void set64(unsigned n, std::uint64_t q) { std::memcpy(&s[n], &q, 8); }
  unsigned width() const { return wave32 ? 32 : lanes; }
  std::uint64_t everyone() const { return wave32 ? 0xffffffff : ~std::uint64_t{0}; }
  // A lane mask from SGPR n on.
  std::uint64_t mask(unsigned n) const { return wave32 ? s[n] : get64(n); }
  void set_mask(unsigned n, std::uint64_t m) { wave32 ? void(s[n] = static_cast<std::uint32_t>(m)) : set64(n, m); }
  std::uint64_t exec() const { return mask(reg::exec); }
  std::uint32_t* rows(unsigned n) { return v + n * lanes; }
};

// Runs instructions until the number is used up, or the wave gives its turn up or is stopped.
void run_wave(wave& w, unsigned instructions);

// Writes a fault down; the wave stops after this instruction.
fault& stop(wave& w, const operation& o, fault::kind what, const char* why);
// The same for a refused memory access.
void stop(wave& w, const operation& o, const refusal& no, unsigned bytes);

// A scalar source: an SGPR, a constant or a special value.
std::uint64_t special64(const wave& w, unsigned index);
inline std::uint32_t scalar32(const wave& w, const operand& o) {
  if (o.where == place::sgpr) return w.s[o.index];
  if (o.where == place::constant) return static_cast<std::uint32_t>(o.value);
  return static_cast<std::uint32_t>(special64(w, o.index));
}
inline std::uint64_t scalar64(const wave& w, const operand& o) {
  if (o.where == place::sgpr) return w.get64(o.index);
  if (o.where == place::constant) return o.value;
  return special64(w, o.index);
}

// A lane mask as a source.
inline std::uint64_t scalar_mask(const wave& w, const operand& o) { return w.wave32 ? scalar32(w, o) : scalar64(w, o); }
// Where the wave's private memory begins.
inline std::uint64_t scratch_base(const wave& w) {
  return w.of->how.target == target::gfx1100 ? w.scratch : w.get64(reg::flat_scratch);
}

}  // namespace amdgpu
