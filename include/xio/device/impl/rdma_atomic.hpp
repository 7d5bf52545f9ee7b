// SPDX-License-Identifier: MIT
// Ops of the RDMA lane whose result comes back into a word of the ctx: reading a value, and atomics.
#pragma once
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/engine_ops.hpp"
#include "xio/device/impl/rdma_post.hpp"
#include "xio/device/impl/rdma_work.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/endian.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

// --- Results -----------------------------------------------------------------------------------------

// A word of the ctx's scratch memory, or none right now. Lanes of a wave start at different places.
XIO_DEVICE bool take_word(const ctx_view& c, u32* word) {
  const u32 groups = (c.scratch_count + 63) / 64;
  const u32 turn = (lane_id() + 1) & 63;
  for (u32 g = 0; g < groups; ++g) {
    const u64 there = c.scratch_count - 64 * g >= 64 ? ~u64{0} : (u64{1} << (c.scratch_count - 64 * g)) - 1;
    u64 free = there & ~load<scope::agent, order::relaxed>(&c.scratch_used[g]);
    if (g == 0) free &= ~(u64{1} << k_dummy_word);
    if (free == 0) continue;
    const u64 turned = (free >> turn) | (free << ((64 - turn) & 63));
    const u64 bit = u64{1} << ((lowest_bit(turned) + turn) & 63);
    if ((fetch_or<scope::agent, order::acquire>(&c.scratch_used[g], bit) & bit) == 0) {
      *word = 64 * g + lowest_bit(bit);
      return true;
    }
  }
  return false;
}

XIO_DEVICE void give_word(const ctx_view& c, u32 word) {
  fetch_and<scope::agent, order::release>(&c.scratch_used[word / 64], ~(u64{1} << (word & 63)));
}

// Takes a word, lets post_with(word's address, &ticket) post an op that writes to it, waits, reads. A lane that has a
// word runs to the end inside the branch: no lane holds one while it waits for lanes that want one.
template <class PostWith>
XIO_DEVICE xio_status_t with_result(const ctx_view& c, const ring_view& r, u64* value, PostWith&& post_with) {
  if (c.scratch_count <= k_dummy_word + 1) return XIO_ERR_UNSUPPORTED;
  const deadline end = deadline::in(*c.world);
  xio_status_t status = XIO_OK;
  for (bool done = false; !done;) {
    u32 word = 0;
    if (take_word(c, &word)) {
      u64 ticket = 0;
      status = post_with(c.scratch + word, &ticket);
      const bool is_posted = status == XIO_OK;
      if (is_posted) status = wait_ring(r, ticket + 1, *c.world);
      if (status == XIO_OK) *value = load<scope::system, order::relaxed>(c.scratch + word);
      // After a timeout the NIC may still write there: the word stays taken. Not so of what a ring that has timed out
      // before does not take.
      if (!is_posted || status != XIO_ERR_TIMEOUT) give_word(c, word);
      done = true;
    } else {
      done = !end.wait_more();
      if (done) status = XIO_ERR_TIMEOUT;
    }
  }
  return status;
}

// Reads `width` (1, 2, 4, 8) bytes into the low end of *value.
XIO_DEVICE xio_status_t get_value(const ctx_view& c, u32 pe, u64 offset, u32 width, u64* value) {
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = used_queue(c, p);
  const xio_status_t status = with_result(c, r, value, [&](u64* word, u64* ticket) {
    return post(c, r, transfer(verb::read, offset, word, width, r.rdma.scratch_lkey), ticket);
  });
  if (status == XIO_OK) *value = low_bytes(*value, width);
  return status;
}

// --- Atomics -----------------------------------------------------------------------------------------

// The operands of the masked forms that each op becomes; see wire/mlx5.hpp.
//   add      fetch-add, no field boundaries           xor      fetch-add, every bit a field: no carry at all
//   set      swap all bits, compare none              or, and  swap the bits that v sets or clears, compare none
struct masked_form {
  bool is_add;
  u64 first;         // add, or swap
  u64 second;        // boundary, or compare
  u64 swap_mask;     // compare-swap only
  u64 compare_mask;  // compare-swap only
};

XIO_DEVICE masked_form form_of(amo op, u64 operand, u64 compare) {
  const u64 all = ~u64{0};
  switch (op) {
    case amo::fetch: return masked_form{true, 0, 0, 0, 0};
    case amo::add: return masked_form{true, operand, 0, 0, 0};
    case amo::bit_xor: return masked_form{true, operand, all, 0, 0};
    case amo::set: return masked_form{false, operand, 0, all, 0};
    case amo::bit_or: return masked_form{false, operand, 0, operand, 0};
    case amo::bit_and: return masked_form{false, 0, 0, ~operand, 0};
    case amo::compare_swap: break;
  }
  return masked_form{false, operand, compare, all, all};
}

// Every op is one entry: nothing is retried from here.
XIO_DEVICE xio_status_t post_atomic(const ctx_view& c, const ring_view& r, const engine_change& a, u64* result,
                                    u64* ticket) {
  const masked_form f = form_of(a.op, a.operand, a.compare);
  const bool masked = a.width == 4 || a.op == amo::bit_xor || (!f.is_add && a.op != amo::compare_swap);
  const verb what =
      f.is_add ? (masked ? verb::masked_add : verb::fetch_add) : (masked ? verb::masked_swap : verb::compare_swap);
  work w = atomic_work(what, a.offset, a.width, {f.first, f.second}, result);
  w.swap_mask = f.swap_mask;
  w.compare_mask = f.compare_mask;
  return post(c, r, w, ticket);
}

// Returns the new value of a word.
XIO_DEVICE u64 changed(const engine_change& a, u64 old) {
  switch (a.op) {
    case amo::fetch: return old;
    case amo::set: return a.operand;
    case amo::compare_swap: return old == a.compare ? a.operand : old;
    case amo::add: return old + a.operand;
    case amo::bit_and: return old & a.operand;
    case amo::bit_or: return old | a.operand;
    case amo::bit_xor: break;
  }
  return old ^ a.operand;
}

// The atomics that a NIC lacks, by its 8-byte compare-and-swap until nobody came in between. Words of 4 bytes are half
// of 8 aligned ones, where the NIC keeps the other half safe.
XIO_DEVICE xio_status_t atomic_by_swaps(const ctx_view& c, const ring_view& r, const engine_change& a, u64* old) {
  if (a.width == 4 && (r.rdma.atomics & nic_four_in_eight) == 0) return XIO_ERR_UNSUPPORTED;
  const u32 shift = a.width == 4 ? 8 * (static_cast<u32>(a.offset) & 4) : 0;
  const u64 mask = (a.width == 4 ? u64{0xffffffff} : ~u64{0}) << shift;
  const u64 at = a.offset & ~u64{7};
  const deadline end = deadline::in(*c.world);
  u64 guess = 0;
  xio_status_t status = with_result(c, r, &guess, [&](u64* word, u64* ticket) {
    return post(c, r, atomic_work(verb::fetch_add, at, 8, {0, 0}, word), ticket);
  });
  while (status == XIO_OK) {
    *old = (guess & mask) >> shift;
    const u64 want = (guess & ~mask) | ((changed(a, *old) << shift) & mask);
    if (want == guess) break;
    u64 found = 0;
    status = with_result(c, r, &found, [&](u64* word, u64* ticket) {
      return post(c, r, atomic_work(verb::compare_swap, at, 8, {want, guess}, word), ticket);
    });
    if (status != XIO_OK || found == guess) break;
    guess = found;
    if (end.passed()) status = XIO_ERR_TIMEOUT;
  }
  return status;
}

XIO_DEVICE bool nic_has(const ring_view& r, amo op, u32 width) {
  if (width == 4) return (r.rdma.atomics & nic_native_4) != 0;
  const bool plain = op == amo::fetch || op == amo::add || op == amo::compare_swap;
  return plain || (r.rdma.atomics & nic_masked) != 0;
}

// With `fetch` waits and gives the old value; else *old is not to be used, and what the NIC has in one
// entry is not waited for.
XIO_DEVICE xio_status_t atomic(const ctx_view& c, u32 pe, const engine_change& a, bool fetch, u64* old) {
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = used_queue(c, p);
  if (!nic_has(r, a.op, a.width)) {
    u64 found = 0;
    const xio_status_t status = atomic_by_swaps(c, r, a, &found);
    if (fetch) *old = found;
    return status;
  }
  if (!fetch) {
    u64 ticket = 0;
    return post_atomic(c, r, a, c.scratch + k_dummy_word, &ticket);
  }
  const xio_status_t status =
      with_result(c, r, old, [&](u64* word, u64* ticket) { return post_atomic(c, r, a, word, ticket); });
  // ConnectX puts results of 4 bytes big endian, those of 8 in the host's order (NVSHMEM, ibgda_device.cuh).
  if (status == XIO_OK && a.width == 4 && r.kind == ring_kind::mlx5) *old = wire::be32(static_cast<u32>(*old));
  return status;
}

}  // namespace xio::dev::rdma
