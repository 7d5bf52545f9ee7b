// SPDX-License-Identifier: MIT
// Which packet it is, the bits that it must not set, and the packets that wait for the moves before them. Layouts and
// their source: xio/wire/sdma.hpp.
#include "model/sdma/decode.hpp"
#include "model/sdma/queue.hpp"
#include "model/sdma/words.hpp"

namespace xio::model::sdma {
namespace {

// Mesa src/amd/common/sid.h calls an interval of 10 160 clocks; an engine's clock is some 1 GHz.
constexpr std::chrono::nanoseconds k_poll_unit{16};

// Bits that the generation defines and the model does not do: what they ask for is the kernel's business (TMZ, GPA, HDP
// registers), undone here (byte swaps, loops, two destinations, backwards), or changes the packet's length (gfx12's
// CPV).
std::uint32_t unsupported_bits(std::uint32_t generation, std::uint32_t dw0, std::uint32_t dword) {
  const std::uint32_t sub_op = wire::sub_op_of(dw0);
  const std::uint32_t swaps = 0x03030000u;
  switch (wire::op_of(dw0)) {
    case wire::op_copy:
      if (dword == 0) return 0x0a050000u | (generation == wire::gen_12 ? 1u << 19 : 0);
      if (dword == 2) return sub_op == wire::k_copy_linear ? swaps : 0;
      if (dword == 12) return sub_op == wire::k_copy_sub_window && generation != wire::gen_12 ? swaps : 0;
      return dword == 16 ? swaps : 0;
    case wire::op_write: return dword == 0 ? 0x00050000u : dword == 3 ? 0x03000000u : 0;
    case wire::op_fence: return dword == 0 ? 1u << 23 : 0;
    case wire::op_poll_regmem: return dword == 0 ? 1u << 26 : 0;
    case wire::op_atomic: return dword == 0 ? 0x00050000u : dword == 7 ? ~0u : 0;
    case wire::op_const_fill: return dword == 0 ? 0x00030000u : 0;
    case wire::op_gcr: return dword == 3 ? wire::k_gcr_physical >> 16 : dword == 4 ? 0x0f000000u : 0;  // VMID
    default: return 0;
  }
}

bool holds(std::uint32_t function, std::uint32_t found, std::uint32_t wanted) {
  switch (function) {
    case wire::poll_less: return found < wanted;
    case wire::poll_less_equal: return found <= wanted;
    case wire::poll_equal: return found == wanted;
    case wire::poll_not_equal: return found != wanted;
    case wire::poll_greater_equal: return found >= wanted;
    case wire::poll_greater: return found > wanted;
    default: return true;
  }
}

}  // namespace

queue::verdict queue::check_header(const surroundings& around, std::uint32_t dw0) {
  if ((dw0 & ~defined_header(around.generation, dw0)) != 0) return {fault::reserved_bit, 0};
  if ((dw0 & unsupported_bits(around.generation, dw0, 0)) != 0) return {fault::unsupported, 0};
  return {};
}

queue::verdict queue::check_fields(const surroundings& around, const std::uint32_t* dw) {
  for (std::uint32_t left = fielded_dwords(dw[0]); left != 0; left &= left - 1) {
    const auto i = static_cast<std::uint32_t>(__builtin_ctz(left));
    if ((dw[i] & ~defined_bits(around.generation, dw[0], i)) != 0) return {fault::reserved_bit, i};
    if ((dw[i] & unsupported_bits(around.generation, dw[0], i)) != 0) return {fault::unsupported, i};
  }
  return {};
}

queue::outcome queue::issue(const surroundings& around) {
  const std::uint32_t* dw = memory_.ring + (next_ & (memory_.ring_bytes - 1)) / 4;
  const std::uint32_t dwords = packet_dwords(around.generation, dw[0]);
  if (dwords == 0) return refuse(dw, {fault::bad_op, 0});
  if (const verdict v = check_header(around, dw[0]); v.what != fault::none) return refuse(dw, v);
  if (const fault f = whole(dwords); f != fault::none) return refuse(dw, {f, 0});

  const std::uint32_t op = wire::op_of(dw[0]);
  if (op == wire::op_nop) return finish(dwords);
  if (const verdict v = check_fields(around, dw); v.what != fault::none) return refuse(dw, v);
  switch (op) {
    case wire::op_copy:
      return wire::sub_op_of(dw[0]) == wire::k_copy_linear ? do_copy(around, dw) : do_tile(around, dw);
    case wire::op_write: return do_write(around, dw);
    case wire::op_const_fill: return do_fill(around, dw);
    default: break;
  }
  if (!window_.empty()) return outcome::drain;
  if (op == wire::op_fence && around.payload.mark != nullptr) return do_fence(around, dw);
  if (travelling_) return outcome::complete_now;
  switch (op) {
    case wire::op_fence: return do_fence(around, dw);
    case wire::op_atomic: return do_atomic(around, dw);
    case wire::op_poll_regmem: return do_poll(around, dw);
    case wire::op_timestamp: return do_timestamp(around, dw);
    case wire::op_trap: return do_trap(around, dw);
    default: return do_gcr(around, dw);
  }
}

queue::outcome queue::do_fence(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  if (address % 4 != 0) return refuse(dw, {fault::unaligned, 1});
  const memory_kind* kind = around.map.find(address, 4);
  if (kind == nullptr) return refuse(dw, {fault::not_mapped, 1});
  if (travelling_) {
    if (fences_.size() == payload_agent::k_marks) return outcome::complete_now;
    fences_.push_back({around.payload.mark(), address, dw[3], *kind});
  } else {
    word{around.payload, *kind, address, 4}.store(dw[3]);
  }
  return finish(wire::k_fence_dwords);
}

queue::outcome queue::do_atomic(const surroundings& around, const std::uint32_t* dw) {
  const std::uint32_t code = wire::atomic_code_of(dw[0]);
  const unsigned width = width_of_atomic(code);
  if (width == 0) return refuse(dw, {fault::bad_op, 0});
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  if (address % width != 0) return refuse(dw, {fault::unaligned, 1});
  const memory_kind* kind = around.map.find(address, width);
  if (kind == nullptr) return refuse(dw, {fault::not_mapped, 1});
  const word at{around.payload, *kind, address, width};
  if (!at.change(code, wire::join(dw[3], dw[4]), wire::join(dw[5], dw[6]))) return outcome::waits;
  return finish(wire::k_atomic_dwords);
}

queue::outcome queue::do_poll(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  // Registers are not modelled, but for the one poll that flushes the HDP and is no poll at all.
  if (!wire::polls_memory(dw[0])) {
    const bool flush =
        dw[0] == wire::op_poll_regmem && dw[1] == 0 && dw[2] == 0x80000000u && dw[3] == 0 && dw[4] == 0 && dw[5] == 0;
    if (!flush || !wire::has_hdp_flush(around.generation)) return refuse(dw, {fault::bad_op, 0});
    around.events.hdp_flushes.fetch_add(1, std::memory_order_release);
    return finish(wire::k_poll_dwords);
  }
  const std::uint32_t function = wire::poll_function_of(dw[0]);
  if (function > wire::poll_greater) return refuse(dw, {fault::bad_op, 0});
  if (address % 4 != 0) return refuse(dw, {fault::unaligned, 1});
  const memory_kind* kind = around.map.find(address, 4);
  if (kind == nullptr) return refuse(dw, {fault::not_mapped, 1});
  const auto now = std::chrono::steady_clock::now();
  if (now < next_poll_) return outcome::waits;
  const auto found = static_cast<std::uint32_t>(word{around.payload, *kind, address, 4}.load());
  if (holds(function, found & dw[4], dw[3])) return finish(wire::k_poll_dwords);
  const std::uint32_t retries = wire::poll_retries(dw[5]);
  if (retries != wire::k_poll_for_ever && polls_++ >= retries) return refuse(dw, {fault::poll_gave_up, 0});
  next_poll_ = now + wire::poll_interval(dw[5]) * k_poll_unit;
  return outcome::waits;
}

// kfdtest wants 32 bytes where the header asks for 8 (libhsakmt/tests/kfdtest/src/SDMAPacket.cpp); the strict one it
// is.
queue::outcome queue::do_timestamp(const surroundings& around, const std::uint32_t* dw) {
  const std::uint32_t sub_op = wire::sub_op_of(dw[0]);
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  const std::uint64_t now = around.clock();
  if (sub_op == wire::k_timestamp_set) {
    around.local_time = address - now;
    return finish(wire::k_timestamp_dwords);
  }
  if (address % 32 != 0) return refuse(dw, {fault::unaligned, 1});
  const memory_kind* kind = around.map.find(address, 8);
  if (kind == nullptr) return refuse(dw, {fault::not_mapped, 1});
  word{around.payload, *kind, address, 8}.store(sub_op == wire::k_timestamp_local ? now + around.local_time : now);
  return finish(wire::k_timestamp_dwords);
}

// All packets before it are done by now.
queue::outcome queue::do_trap(const surroundings& around, const std::uint32_t* dw) {
  around.events.traps.fetch_add(1, std::memory_order_release);
  if (around.trap) around.trap(dw[1]);
  return finish(wire::k_trap_dwords);
}

// The model has no caches; a range must be one.
queue::outcome queue::do_gcr(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t base = wire::join(dw[1], dw[2] & 0xffffu);
  const std::uint64_t limit = wire::join(dw[3] & ~7u, dw[4]);
  if (limit < base) return refuse(dw, {fault::bad_count, 3});
  around.payload.fence();
  around.events.cache_controls.fetch_add(1, std::memory_order_release);
  return finish(wire::k_gcr_dwords);
}

}  // namespace xio::model::sdma
