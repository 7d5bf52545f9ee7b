// SPDX-License-Identifier: MIT
// What each packet does and what it must not say. Layouts and their source: xio/wire/sdma.hpp.
#include <chrono>

#include "model/sdma/queue.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::model::sdma {

namespace wire = xio::wire::sdma;

queue::outcome queue::issue(const surroundings& around) {
  const std::uint32_t* dw = memory_.ring + (next_ & (memory_.ring_bytes - 1)) / 4;
  const std::uint32_t op = wire::op_of(dw[0]);
  // A fault, like a FENCE, comes after what is before it.
  const auto after_moves = [&](auto&& act) { return window_.empty() ? act() : outcome::drain; };
  const auto refuse = [&](fault f, std::uint32_t dword, std::uint64_t value) {
    return after_moves([&] { return stop(f, next_dword() + dword, value); });
  };

  std::uint64_t dwords = 0;
  bool known = wire::sub_op_of(dw[0]) == 0;
  switch (op) {
    case wire::op_nop: dwords = 1 + wire::nop_extra(dw[0]); break;
    case wire::op_copy: dwords = wire::k_copy_linear_dwords; break;
    case wire::op_write: dwords = wire::k_write_head_dwords; break;
    case wire::op_fence: dwords = wire::k_fence_dwords; break;
    case wire::op_trap: dwords = wire::k_trap_dwords; break;
    case wire::op_poll_regmem: dwords = wire::k_poll_dwords; break;
    case wire::op_atomic: dwords = wire::k_atomic_dwords; break;
    case wire::op_const_fill: dwords = wire::k_const_fill_dwords; break;
    case wire::op_timestamp:
      dwords = wire::k_timestamp_dwords;
      known = wire::sub_op_of(dw[0]) == wire::k_timestamp_global;
      break;
    default: known = false;
  }
  if (!known) return refuse(fault::bad_op, 0, dw[0]);
  if ((dw[0] & wire::reserved_of_header(op)) != 0) return refuse(fault::reserved_bit, 0, dw[0]);
  if (const fault f = whole(dwords); f != fault::none) return refuse(f, 0, dw[0]);

  switch (op) {
    case wire::op_nop: return do_nop(dw);
    case wire::op_copy: return do_copy(around, dw);
    case wire::op_write: return do_write(around, dw);
    case wire::op_const_fill: return do_fill(around, dw);
    case wire::op_fence: return after_moves([&] { return do_fence(around, dw); });
    case wire::op_trap: return after_moves([&] { return do_trap(dw); });
    case wire::op_poll_regmem: return after_moves([&] { return do_poll(around, dw); });
    case wire::op_atomic: return after_moves([&] { return do_atomic(around, dw); });
    default: return after_moves([&] { return do_timestamp(around, dw); });
  }
}

queue::outcome queue::do_nop(const std::uint32_t* dw) { return finish(1 + wire::nop_extra(dw[0])); }

queue::outcome queue::do_copy(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t bytes = std::uint64_t{dw[1]} + 1;
  const std::uint64_t src = wire::join(dw[3], dw[4]);
  const std::uint64_t dst = wire::join(dw[5], dw[6]);
  fault f = fault::none;
  std::uint32_t at = 0;
  const auto check = [&](bool good, fault what, std::uint32_t dword) {
    if (good || f != fault::none) return;
    f = what;
    at = dword;
  };
  check(bytes <= around.copy_bytes, fault::bad_count, 1);
  check(dw[2] == 0, fault::reserved_bit, 2);
  check(around.map.find(src, bytes) != nullptr, fault::not_mapped, 3);
  check(around.map.find(dst, bytes) != nullptr, fault::not_mapped, 5);
  check(src == dst || src + bytes <= dst || dst + bytes <= src, fault::overlap, 5);
  if (f != fault::none) return window_.empty() ? stop(f, next_dword() + at, dw[at]) : outcome::drain;
  return keep(move{dst, src, bytes, 0, {}, next_dword()}, wire::k_copy_linear_dwords);
}

queue::outcome queue::do_write(const surroundings& around, const std::uint32_t* dw) {
  const auto refuse = [&](fault f, std::uint32_t at) {
    return window_.empty() ? stop(f, next_dword() + at, dw[at]) : outcome::drain;
  };
  const std::uint64_t dst = wire::join(dw[1], dw[2]);
  const std::uint64_t count = std::uint64_t{dw[3]} + 1;
  if (count > wire::k_write_dwords_max) return refuse(fault::bad_count, 3);
  if (const fault f = whole(wire::k_write_head_dwords + count); f != fault::none) return refuse(f, 3);
  if (dst % 4 != 0) return refuse(fault::unaligned, 1);
  if (around.map.find(dst, count * 4) == nullptr) return refuse(fault::not_mapped, 1);
  const std::uint32_t* data = dw + wire::k_write_head_dwords;
  return keep(move{dst, 0, count * 4, 0, {data, data + count}, next_dword()}, wire::k_write_head_dwords + count);
}

queue::outcome queue::do_fill(const surroundings& around, const std::uint32_t* dw) {
  const auto refuse = [&](fault f, std::uint32_t at) {
    return window_.empty() ? stop(f, next_dword() + at, dw[at]) : outcome::drain;
  };
  const std::uint64_t dst = wire::join(dw[1], dw[2]);
  const std::uint64_t bytes = std::uint64_t{dw[4]} + 1;
  // Bytes and halfwords exist; XIO fills dwords, and says so.
  if (wire::fill_size(dw[0]) != 2) return refuse(fault::bad_op, 0);
  if (bytes > wire::k_fill_bytes_max || bytes % 4 != 0) return refuse(fault::bad_count, 4);
  if (dst % 4 != 0) return refuse(fault::unaligned, 1);
  if (around.map.find(dst, bytes) == nullptr) return refuse(fault::not_mapped, 1);
  // A page of the value at a time.
  std::vector<std::uint32_t> data(bytes / 4 < 1024 ? bytes / 4 : 1024, dw[3]);
  return keep(move{dst, 0, bytes, 0, std::move(data), next_dword()}, wire::k_const_fill_dwords);
}

void queue::store_word(const surroundings& around, std::uint64_t address, std::uint32_t value) const {
  around.payload.fence();
  if (*around.map.find(address, 4) == memory_kind::host) {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(address), value, __ATOMIC_RELEASE);
  } else {
    around.payload.atomic(reinterpret_cast<void*>(address), 4, atomic_op::swap, value, 0);
  }
}

queue::outcome queue::do_fence(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  if (address % 4 != 0) return stop(fault::unaligned, next_dword() + 1, address);
  if (around.map.find(address, 4) == nullptr) return stop(fault::not_mapped, next_dword() + 1, address);
  store_word(around, address, dw[3]);
  return finish(wire::k_fence_dwords);
}

queue::outcome queue::do_atomic(const surroundings& around, const std::uint32_t* dw) {
  unsigned width = 8;
  atomic_op op = atomic_op::add;
  switch (wire::atomic_code_of(dw[0])) {
    case wire::swap_32: width = 4, op = atomic_op::swap; break;
    case wire::compare_swap_32: width = 4, op = atomic_op::compare_swap; break;
    case wire::add_32: width = 4, op = atomic_op::add; break;
    case wire::swap_64: op = atomic_op::swap; break;
    case wire::compare_swap_64: op = atomic_op::compare_swap; break;
    case wire::add_64: op = atomic_op::add; break;
    default: return stop(fault::bad_op, next_dword(), dw[0]);
  }
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  if (dw[7] != 0) return stop(fault::reserved_bit, next_dword() + 7, dw[7]);
  if (address % width != 0) return stop(fault::unaligned, next_dword() + 1, address);
  if (around.map.find(address, width) == nullptr) return stop(fault::not_mapped, next_dword() + 1, address);
  const std::uint64_t mask = width == 8 ? ~std::uint64_t{0} : 0xffffffffu;
  around.payload.fence();
  around.payload.atomic(reinterpret_cast<void*>(address), width, op, wire::join(dw[3], dw[4]) & mask,
                        wire::join(dw[5], dw[6]) & mask);
  return finish(wire::k_atomic_dwords);
}

queue::outcome queue::do_poll(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  // Registers are not modelled, but for the one write that flushes the HDP and is no register poll at all.
  if (!wire::polls_memory(dw[0])) {
    const bool flush =
        dw[0] == wire::op_poll_regmem && dw[1] == 0 && dw[2] == 0x80000000u && dw[3] == 0 && dw[4] == 0 && dw[5] == 0;
    return flush ? finish(wire::k_poll_dwords) : stop(fault::bad_op, next_dword(), dw[0]);
  }
  if (wire::poll_function_of(dw[0]) > wire::poll_greater) return stop(fault::bad_op, next_dword(), dw[0]);
  if ((dw[5] >> 28) != 0) return stop(fault::reserved_bit, next_dword() + 5, dw[5]);
  if (address % 4 != 0) return stop(fault::unaligned, next_dword() + 1, address);
  const memory_kind* kind = around.map.find(address, 4);
  if (kind == nullptr) return stop(fault::not_mapped, next_dword() + 1, address);
  std::uint32_t found;
  if (*kind == memory_kind::host) {
    found = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(address), __ATOMIC_ACQUIRE);
  } else {
    found =
        static_cast<std::uint32_t>(around.payload.atomic(reinterpret_cast<void*>(address), 4, atomic_op::fetch, 0, 0));
  }
  found &= dw[4];
  const std::uint32_t wanted = dw[3];
  bool holds = true;
  switch (wire::poll_function_of(dw[0])) {
    case wire::poll_less: holds = found < wanted; break;
    case wire::poll_less_equal: holds = found <= wanted; break;
    case wire::poll_equal: holds = found == wanted; break;
    case wire::poll_not_equal: holds = found != wanted; break;
    case wire::poll_greater_equal: holds = found >= wanted; break;
    case wire::poll_greater: holds = found > wanted; break;
    default: break;
  }
  if (holds) return finish(wire::k_poll_dwords);
  const std::uint32_t retries = wire::poll_retries(dw[5]);
  if (retries != wire::k_poll_for_ever && poll_looks_++ >= retries)
    return stop(fault::poll_gave_up, next_dword(), address);
  return outcome::waits;
}

queue::outcome queue::do_timestamp(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t address = wire::join(dw[1], dw[2]);
  if (address % 32 != 0) return stop(fault::unaligned, next_dword() + 1, address);
  if (around.map.find(address, 8) == nullptr) return stop(fault::not_mapped, next_dword() + 1, address);
  const std::uint64_t now =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  around.payload.fence();
  around.payload.copy(reinterpret_cast<void*>(address), &now, sizeof now);
  return finish(wire::k_timestamp_dwords);
}

// Nobody listens for the interrupt; what is before it is done, and that is all.
queue::outcome queue::do_trap(const std::uint32_t* dw) {
  if ((dw[1] >> 28) != 0) return stop(fault::reserved_bit, next_dword() + 1, dw[1]);
  return finish(wire::k_trap_dwords);
}

}  // namespace xio::model::sdma
