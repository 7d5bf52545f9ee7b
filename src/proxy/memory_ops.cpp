// SPDX-License-Identifier: MIT
#include "proxy/memory_ops.hpp"

namespace xio::proxy {

namespace {

using lookup = key_table::lookup;

std::uint64_t mask_of(unsigned width) { return width == 4 ? 0xffffffffu : ~std::uint64_t{0}; }

// Adds field by field: the top bit of each field is added without its carry (xor).
std::uint64_t add_in_fields(std::uint64_t a, std::uint64_t b, std::uint64_t tops) {
  return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

std::uint64_t changed(const atomic_change& c, std::uint64_t old) {
  if (c.is_add) return add_in_fields(old, c.operand, c.boundary) & mask_of(c.width);
  if (((old ^ c.compare) & c.compare_mask & mask_of(c.width)) != 0) return old;
  return ((old & ~c.swap_mask) | (c.operand & c.swap_mask)) & mask_of(c.width);
}

std::uint64_t swapped(std::uint64_t v, unsigned width) {
  return width == 4 ? __builtin_bswap32(static_cast<std::uint32_t>(v)) : __builtin_bswap64(v);
}

}  // namespace

std::uint32_t remote_right(verb what) {
  return what == verb::write ? remote_write : what == verb::read ? remote_read : remote_atomic;
}

std::uint32_t local_right(verb what) { return what == verb::write ? local_read : local_write; }

op_error find_local(const key_table& keys, const span_ref& s, std::uint32_t wanted, unsigned char** place) {
  switch (keys.find(s.key, s.address, s.bytes, wanted, place)) {
    case lookup::found: return {};
    case lookup::no_key: return {outcome::local_protection, rule::local_key};
    case lookup::no_range: return {outcome::local_protection, rule::local_range};
    case lookup::no_rights: break;
  }
  return {outcome::local_protection, rule::local_rights};
}

op_error check_local(const key_table& keys, const op& o) {
  unsigned char* place;
  for (std::uint32_t i = 0; i < o.span_count; ++i)
    if (const op_error f = find_local(keys, o.spans[i], local_right(o.what), &place)) return f;
  return {};
}

op_error find_remote(const key_table& keys, std::uint32_t rkey, std::uint64_t address, std::uint64_t bytes,
                     std::uint32_t wanted, unsigned char** place) {
  switch (keys.find(rkey, address, bytes, wanted, place)) {
    case lookup::found: return {};
    case lookup::no_key: return {outcome::remote_access, rule::remote_key};
    case lookup::no_range: return {outcome::remote_access, rule::remote_range};
    case lookup::no_rights: break;
  }
  return {outcome::remote_access, rule::remote_rights};
}

void store_bytes(const payload_agent& payload, unsigned char* to, const unsigned char* from, std::uint64_t bytes) {
  if (const auto at = reinterpret_cast<std::uintptr_t>(to); (bytes == 4 || bytes == 8) && at % bytes == 0) {
    std::uint64_t value = 0;
    std::copy_n(from, bytes, reinterpret_cast<unsigned char*>(&value));
    payload.atomic(to, static_cast<unsigned>(bytes), atomic_op::swap, value, 0);
  } else {
    payload.copy(to, from, bytes);
  }
}

std::uint64_t change_word(const payload_agent& payload, unsigned char* at, const atomic_change& c) {
  const unsigned width = c.width;
  const std::uint64_t all = mask_of(width);
  if (c.is_add && c.operand == 0) return payload.atomic(at, width, atomic_op::fetch, 0, 0);
  if (c.is_add && c.boundary == 0) return payload.atomic(at, width, atomic_op::add, c.operand, 0);
  if (!c.is_add && (c.compare_mask & all) == all && (c.swap_mask & all) == all)
    return payload.atomic(at, width, atomic_op::compare_swap, c.operand, c.compare);
  std::uint64_t old = payload.atomic(at, width, atomic_op::fetch, 0, 0);
  for (;;) {
    const std::uint64_t found = payload.atomic(at, width, atomic_op::compare_swap, changed(c, old), old);
    if (found == old) return old;
    old = found;
  }
}

void store_result(const payload_agent& payload, unsigned char* to, const atomic_change& c, std::uint64_t old) {
  const std::uint64_t stored = c.big_endian_result ? swapped(old, c.width) : old;
  payload.copy(to, &stored, c.width);
}

}  // namespace xio::proxy
