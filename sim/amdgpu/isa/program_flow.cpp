// SPDX-License-Identifier: MIT
// Program flow: branches, calls, ends, waits, traps and messages, of SOP1, SOPK and SOPP (MI200 ISA, chapters 4 and
// 12).

#include "amdgpu/isa/under_way.hpp"

namespace amdgpu {
namespace {

// During a handler pc is already the next instruction's.
void jump(wave& w, const operation& o) {
  w.pc += static_cast<u64>(static_cast<i64>(static_cast<std::int16_t>(o.immediate)) * 4);
}

template <auto condition>
void branch_if(wave& w, const operation& o) {
  if (condition(w)) jump(w, o);
}

void call(wave& w, const operation& o) {
  w.set64(o.dst.index, w.pc);
  jump(w, o);
}

void getpc(wave& w, const operation& o) { w.set64(o.dst.index, w.pc); }

void setpc(wave& w, const operation& o) { w.pc = scalar64(w, o.src[0]) & ~u64{3}; }

void swappc(wave& w, const operation& o) {
  const u64 to = scalar64(w, o.src[0]);
  w.set64(o.dst.index, w.pc);
  w.pc = to & ~u64{3};
}

void endpgm(wave& w, const operation&) {
  w.now = wave::state::ended;
  w.turn_over = true;
}

void barrier(wave& w, const operation&) {
  w.now = wave::state::at_barrier;
  w.turn_over = true;
}

void sleep(wave& w, const operation&) {
  w.turn_over = true;
  w.polled = true;
}

void nothing(wave&, const operation&) {}

// vmcnt is bits 15:14 and 3:0, lgkmcnt 11:8 (MI200 ISA 12.5); on gfx1100 15:10 and 9:4 (RDNA3 ISA, "S_WAITCNT").
void waitcnt(wave& w, const operation& o) {
  const bool rdna = w.of->how.target == target::gfx1100;
  const u32 vm = rdna ? o.immediate >> 10 & 63 : (o.immediate & 0xf) | (o.immediate >> 14 & 3) << 4;
  const u32 lgkm = rdna ? o.immediate >> 4 & 63 : o.immediate >> 8 & 0xf;
  if (vm != 63) wait_for_vector(w, o, vm);
  if (lgkm != (rdna ? 63 : 15) && w.of->late && !w.stopped) wait_for_lgkm(w, lgkm);
}

// Those of SOPK, whose register is added to the constant; compilers name null.
template <void (*wait)(wave&, const operation&, unsigned)>
void waitcnt_named(wave& w, const operation& o) {
  if (o.dst.index != reg::nowhere)
    stop(w, o, fault::kind::unknown, "a wait is interpreted with the register null alone");
  else
    wait(w, o, o.immediate & 63);
}

void lgkm_alone(wave& w, const operation&, unsigned left) {
  if (w.of->late) wait_for_lgkm(w, left);
}
void nothing_alone(wave&, const operation&, unsigned) {}

void trap(wave& w, const operation& o) {
  const u32 number = o.immediate & 0xff;
  if (number == 3) return;  // a debugger's, and there is none
  stop(w, o, fault::kind::trap,
       number == 2 ? "the program called a trap: abort, assert or unreachable code" : "the program called a trap")
      .trap = number;
}

void sendmsg(wave& w, const operation& o) {
  const launch& how = w.of->how;
  if ((o.immediate & 0xf) == 1 && how.interrupt) how.interrupt(how.interrupt_argument, w.s[reg::m0] & 0xffffff);
}

#define BRANCH(name, condition) row("s_cbranch_" name, "*", branch_if<[](const wave& w) { return condition; }>)

constexpr row rows[] = {
    {"s_branch", "*", jump},
    BRANCH("scc0", !w.scc),
    BRANCH("scc1", w.scc),
    BRANCH("vccz", w.mask(reg::vcc) == 0),
    BRANCH("vccnz", w.mask(reg::vcc) != 0),
    BRANCH("execz", w.exec() == 0),
    BRANCH("execnz", w.exec() != 0),
    {"s_call_b64", "S=x", call},
    {"s_getpc_b64", "S=", getpc},
    {"s_setpc_b64", "=S", setpc},
    {"s_swappc_b64", "S=S", swappc},
    {"s_endpgm", "*", endpgm},
    {"s_endpgm_saved", "*", endpgm},
    {"s_barrier", "*", barrier},
    {"s_sleep", "*", sleep},
    {"s_nop", "*", nothing},
    {"s_setprio", "*", nothing},
    {"s_inst_prefetch", "*", nothing},
    {"s_icache_inv", "*", nothing},
    {"s_sethalt", "*", nothing},
    {"s_setkill", "*", nothing},
    {"s_ttracedata", "*", nothing},
    {"s_incperflevel", "*", nothing},
    {"s_decperflevel", "*", nothing},
    {"s_wakeup", "*", nothing},
    {"s_code_end", "*", nothing},
    {"s_waitcnt", "*", waitcnt},
    {"s_waitcnt_vscnt", "s=x", waitcnt_named<wait_for_stores>},
    {"s_waitcnt_vmcnt", "s=x", waitcnt_named<wait_for_vector>},
    {"s_waitcnt_lgkmcnt", "s=x", waitcnt_named<lgkm_alone>},
    {"s_waitcnt_expcnt", "s=x", waitcnt_named<nothing_alone>},
    {"s_trap", "*", trap},
    {"s_sendmsg", "*", sendmsg},
};

}  // namespace

table flow_rows() { return rows; }

}  // namespace amdgpu
