// SPDX-License-Identifier: MIT
#include "model/nic/shm_executor.hpp"

#include <algorithm>

namespace xio::model::rdma {

namespace {

using answer = key_table::answer;

std::uint32_t remote_right(verb what) {
  return what == verb::write ? remote_write : what == verb::read ? remote_read : remote_atomic;
}

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

failure shm_executor::near(const span_ref& s, std::uint32_t wanted, unsigned char** place) const {
  switch (local_.find(s.key, s.address, s.bytes, wanted, place)) {
    case answer::found: return {};
    case answer::no_key: return {outcome::local_protection, rule::local_key};
    case answer::no_range: return {outcome::local_protection, rule::local_range};
    case answer::no_rights: break;
  }
  return {outcome::local_protection, rule::local_rights};
}

failure shm_executor::distant(const op& o, std::uint32_t wanted, unsigned char** place) const {
  if (far_ == nullptr) return {outcome::retry_exceeded, rule::not_connected};
  switch (far_->find(o.remote_key, o.remote, o.bytes, wanted, place)) {
    case answer::found: return {};
    case answer::no_key: return {outcome::remote_access, rule::remote_key};
    case answer::no_range: return {outcome::remote_access, rule::remote_range};
    case answer::no_rights: break;
  }
  return {outcome::remote_access, rule::remote_rights};
}

// Before the first byte moves. The requester looks at its own memory first, as in hardware.
failure shm_executor::check(const op& o) const {
  unsigned char* place;
  for (std::uint32_t i = 0; i < o.span_count; ++i)
    if (const failure f = near(o.spans[i], o.what == verb::write ? local_read : local_write, &place)) return f;
  if (o.what == verb::atomic && (o.remote & (o.change.width - 1u)) != 0)
    return {outcome::remote_invalid_request, rule::atomic_alignment};
  // An op without bytes names no memory.
  return o.bytes == 0 ? failure{} : distant(o, remote_right(o.what), &place);
}

failure shm_executor::write_inline(const op& o) {
  unsigned char* to;
  if (const failure f = distant(o, remote_write, &to)) return f;
  // A flag that somebody polls must not come in pieces.
  if (const auto at = reinterpret_cast<std::uintptr_t>(to); (o.bytes == 4 || o.bytes == 8) && at % o.bytes == 0) {
    std::uint64_t value = 0;
    std::copy_n(o.inlined.data(), o.bytes, reinterpret_cast<unsigned char*>(&value));
    payload_.atomic(to, static_cast<unsigned>(o.bytes), atomic_op::swap, value, 0);
  } else {
    payload_.copy(to, o.inlined.data(), o.bytes);
  }
  return {};
}

// One piece that lies in one span. Keys are looked up anew: memory may go between two pieces.
failure shm_executor::move(const op& o, progress& p, std::uint64_t budget) {
  std::uint64_t into = p.moved;
  std::uint32_t i = 0;
  while (into >= o.spans[i].bytes) into -= o.spans[i++].bytes;
  const std::uint64_t piece = std::min<std::uint64_t>(budget, o.spans[i].bytes - into);
  unsigned char* mine;
  unsigned char* theirs;
  if (const failure f = near(o.spans[i], o.what == verb::write ? local_read : local_write, &mine)) return f;
  if (const failure f = distant(o, remote_right(o.what), &theirs)) return f;
  if (o.what == verb::write)
    payload_.copy(theirs + p.moved, mine + into, piece);
  else
    payload_.copy(mine + into, theirs + p.moved, piece);
  p.moved += piece;
  return {};
}

failure shm_executor::change(const op& o) {
  const atomic_change& c = o.change;
  unsigned char *at, *result;
  if (const failure f = distant(o, remote_atomic, &at)) return f;
  if (const failure f = near(o.spans[0], local_write, &result)) return f;
  const unsigned width = c.width;
  const std::uint64_t all = mask_of(width);
  std::uint64_t old;
  if (c.is_add && c.operand == 0) {
    old = payload_.atomic(at, width, atomic_op::fetch, 0, 0);
  } else if (c.is_add && c.boundary == 0) {
    old = payload_.atomic(at, width, atomic_op::add, c.operand, 0);
  } else if (!c.is_add && (c.compare_mask & all) == all && (c.swap_mask & all) == all) {
    old = payload_.atomic(at, width, atomic_op::compare_swap, c.operand, c.compare);
  } else {
    old = payload_.atomic(at, width, atomic_op::fetch, 0, 0);
    for (;;) {
      const std::uint64_t want = changed(c, old);
      const std::uint64_t found = payload_.atomic(at, width, atomic_op::compare_swap, want, old);
      if (found == old) break;
      old = found;
    }
  }
  const std::uint64_t stored = c.big_endian_result ? swapped(old, width) : old;
  payload_.copy(result, &stored, width);
  return {};
}

executor::step shm_executor::advance(const op& o, progress& p, std::uint64_t budget, failure* why) {
  if (!p.checked) {
    if ((*why = check(o))) return step::failed;
    p.checked = true;
  }
  if (o.what == verb::atomic) {
    *why = change(o);
  } else if (o.bytes == 0) {
    return step::done;
  } else if (o.is_inline) {
    *why = write_inline(o);
  } else {
    *why = move(o, p, budget);
    if (!*why && p.moved < o.bytes) return step::busy;
  }
  if (*why) return step::failed;
  payload_.fence();
  return step::done;
}

}  // namespace xio::model::rdma
