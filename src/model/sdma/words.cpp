// SPDX-License-Identifier: MIT
#include "model/sdma/words.hpp"
#include "base/host_atomic.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::model::sdma {

namespace wire = xio::wire::sdma;

namespace {

// An engine gives way to its other queues instead of trying for ever.
constexpr int k_tries = 64;

std::int64_t as_signed(std::uint64_t v, unsigned width) {
  return width == 8 ? static_cast<std::int64_t>(v) : static_cast<std::int32_t>(static_cast<std::uint32_t>(v));
}

// Returns the value that a code of the 32-bit row stores in place of `old`; for codes that no payload agent knows.
std::uint64_t result(std::uint32_t code, unsigned width, std::uint64_t old, std::uint64_t operand) {
  switch (code) {
    case wire::smin_32: return as_signed(operand, width) < as_signed(old, width) ? operand : old;
    case wire::umin_32: return operand < old ? operand : old;
    case wire::smax_32: return as_signed(operand, width) > as_signed(old, width) ? operand : old;
    case wire::umax_32: return operand > old ? operand : old;
    case wire::inc_32: return old >= operand ? 0 : old + 1;
    default: return old == 0 || old > operand ? operand : old - 1;  // dec_32
  }
}

}  // namespace

unsigned width_of_atomic(std::uint32_t code) {
  const std::uint32_t kind = code & 0x1f;
  const bool known =
      kind == wire::swap_32 || kind == wire::compare_swap_32 || (kind >= wire::add_32 && kind <= wire::dec_32);
  if (!known) return 0;
  return (code & wire::k_atomic_64) != 0 ? 8 : 4;
}

std::uint64_t word::apply(atomic_op op, std::uint64_t operand, std::uint64_t compare) const {
  auto* at = reinterpret_cast<void*>(address);
  if (kind == memory_kind::payload) return payload.atomic(at, width, op, operand, compare);
  return change_host_word(at, width, op, operand, compare);
}

std::uint64_t word::load() const { return apply(atomic_op::fetch, 0, 0); }

void word::store(std::uint64_t value) const {
  payload.fence();
  if (kind == memory_kind::payload)
    apply(atomic_op::swap, value, 0);
  else if (width == 8)
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(address), value, __ATOMIC_RELEASE);
  else
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(value), __ATOMIC_RELEASE);
}

bool word::change(std::uint32_t code, std::uint64_t operand, std::uint64_t compare) const {
  const std::uint64_t mask = width == 8 ? ~std::uint64_t{0} : 0xffffffffu;
  operand &= mask;
  compare &= mask;
  payload.fence();
  const std::uint32_t kind_of_code = code & 0x1f;
  switch (kind_of_code) {
    case wire::swap_32: apply(atomic_op::swap, operand, 0); return true;
    case wire::compare_swap_32: apply(atomic_op::compare_swap, operand, compare); return true;
    case wire::add_32: apply(atomic_op::add, operand, 0); return true;
    case wire::sub_32: apply(atomic_op::add, (0 - operand) & mask, 0); return true;
    case wire::and_32: apply(atomic_op::bit_and, operand, 0); return true;
    case wire::or_32: apply(atomic_op::bit_or, operand, 0); return true;
    case wire::xor_32: apply(atomic_op::bit_xor, operand, 0); return true;
    default: break;
  }
  std::uint64_t old = load();
  for (int i = 0; i < k_tries; ++i) {
    const std::uint64_t found = apply(atomic_op::compare_swap, result(kind_of_code, width, old, operand), old);
    if (found == old) return true;
    old = found;
  }
  return false;
}

}  // namespace xio::model::sdma
