// SPDX-License-Identifier: MIT
// The RDMA lane: a kernel writes work queue entries of the NIC by itself. Thread scope; any lanes of a wave may call in
// any divergence: lanes that meet on one queue are posted together, with one completion and one doorbell.
//
// One queue pair per PE, and it works in order (RC): a signal that follows its data on the queue is visible after it,
// and the request of an op's last entry stands for the whole op. `offset` is a place in the peer's heap that the
// caller has checked. A request of 0 means that there was nothing to do.
#pragma once
#include "xio/device/amo.hpp"
#include "xio/device/mlx5.hpp"
#include "xio/device/platform.hpp"
#include "xio/device/request.hpp"
#include "xio/device/ring.hpp"
#include "xio/device/view.hpp"
#include "xio/wire/mlx5.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

namespace wq = wire::mlx5;

// Where results go that nobody asked for. Never handed out.
constexpr u32 k_dummy_word = 0;

// --- Posting -----------------------------------------------------------------------------------------

// What one lane posts: a WQE in one slot, a WQE in two, or two WQEs of one slot each that stay together.
enum class shape { one, wide, chain };

// Control segments come without index and flags: both depend on where and with whom the lane is posted.
template <shape S>
struct entries {
  entry64 slot[S == shape::one ? 1 : 2];
};

XIO_DEVICE void place(const ring_view& r, u64 ticket, bool ask, entry64& e) {
  e.dw[0] |= wq::control_index(ticket);
  if (ask) e.dw[2] |= wq::control_flags(wq::k_ask_completion);
  store_entry(ring_slot(r, ticket, wq::k_block_bytes), e);
}

template <shape S>
XIO_DEVICE xio_status_t post(const ctx_view& c, const ring_view& r, u32 bytes, entries<S>& e, u64* ticket) {
  constexpr u32 slots = S == shape::one ? 1 : 2;
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    status = ring_post<mlx5_codec>(group, r, *c.world, slots, bytes, ticket, [&](u64 first, bool last) {
      place(r, first, last && S != shape::chain, e.slot[0]);
      if constexpr (S == shape::chain) place(r, first + 1, last, e.slot[1]);
      if constexpr (S == shape::wide) store_entry(ring_slot(r, first + 1, wq::k_block_bytes), e.slot[1]);
    });
  });
  return status;
}

template <shape S>
XIO_DEVICE xio_status_t post_for(const ctx_view& c, const ring_view& r, u32 bytes, entries<S>& e, xio_req_t* out) {
  u64 ticket = 0;
  const xio_status_t status = post(c, r, bytes, e, &ticket);
  *out = status == XIO_OK ? make_request(r, ticket) : 0;
  return status;
}

// --- Local memory ------------------------------------------------------------------------------------

XIO_DEVICE bool region_holds(const region_view& row, u64 at, u64 bytes) {
  return load<scope::system, order::acquire>(&row.live) != 0 && at >= row.base && at - row.base <= row.bytes &&
         bytes <= row.bytes - (at - row.base);
}

// The key for [p, p + bytes). The heap is row 0 and nearly always the answer.
XIO_DEVICE xio_status_t find_key(const world_view& w, const void* p, u64 bytes, u32* lkey) {
  const u64 at = reinterpret_cast<u64>(p);
  for (u32 i = 0; i < k_max_regions; ++i) {
    if (!region_holds(w.regions[i], at, bytes)) continue;
    *lkey = w.regions[i].lkey;
    return XIO_OK;
  }
  return XIO_ERR_NOT_REGISTERED;
}

// --- Entries -----------------------------------------------------------------------------------------

// Bytes i .. i+3 of a source of n bytes, zeroes beyond its end. No alignment is asked of the source.
XIO_DEVICE u32 source_word(const unsigned char* from, u32 i, u32 n) {
  u32 word = 0;
  if (i + 4 <= n) {
    __builtin_memcpy(&word, from + i, 4);
  } else {
    for (u32 k = 0; k < 3; ++k)
      if (i + k < n) word |= static_cast<u32>(from[i + k]) << (8 * k);
  }
  return word;
}

XIO_DEVICE void clear(entry64& e) {
  for (u32& dw : e.dw) dw = 0;
}

// n <= 28 bytes that travel in the entry itself: the source is free at once and needs no key.
XIO_DEVICE void write_inline(entry64& e, const ring_view& r, const peer_view& p, u64 offset, const void* src, u32 n) {
  wq::put_control(e.dw, wq::op_rdma_write, 0, 0, r.id, wq::inline_segments(n), 0);
  wq::put_remote(e.dw + 4, p.remote_heap + offset, p.rkey);
  e.dw[8] = wq::inline_header(n);
  for (u32 i = 0; i < 7; ++i) e.dw[9 + i] = source_word(static_cast<const unsigned char*>(src), 4 * i, n);
}

XIO_DEVICE void write_inline_value(entry64& e, const ring_view& r, const peer_view& p, u64 offset, u64 value, u32 n) {
  wq::put_control(e.dw, wq::op_rdma_write, 0, 0, r.id, wq::inline_segments(n), 0);
  wq::put_remote(e.dw + 4, p.remote_heap + offset, p.rkey);
  e.dw[8] = wq::inline_header(n);
  const u64 kept = n >= 8 ? value : value & ((u64{1} << (8 * n)) - 1);
  e.dw[9] = wq::low(kept);
  e.dw[10] = wq::high(kept);
}

// WRITE from, or READ to, local memory.
XIO_DEVICE void transfer(entry64& e, const ring_view& r, const peer_view& p, u32 opcode, u64 offset, const void* local,
                         u32 bytes, u32 lkey) {
  wq::put_control(e.dw, opcode, 0, 0, r.id, 3, 0);
  wq::put_remote(e.dw + 4, p.remote_heap + offset, p.rkey);
  wq::put_data(e.dw + 8, bytes, lkey, reinterpret_cast<u64>(local));
}

XIO_DEVICE void write_some(entry64& e, const ring_view& r, const peer_view& p, u64 offset, const void* src, u32 bytes,
                           u32 lkey) {
  if (bytes <= wq::k_inline_in_block) {
    write_inline(e, r, p, offset, src, bytes);
  } else {
    transfer(e, r, p, wq::op_rdma_write, offset, src, bytes, lkey);
  }
}

XIO_DEVICE void fetch_add_8(entry64& e, const ring_view& r, const peer_view& p, u64 offset, u64 add, u64* result) {
  wq::put_control(e.dw, wq::op_atomic_fa, 0, 0, r.id, 4, 0);
  wq::put_remote(e.dw + 4, p.remote_heap + offset, p.rkey);
  wq::put_atomic_fa(e.dw + 8, add);
  wq::put_data(e.dw + 12, 8, r.scratch_lkey, reinterpret_cast<u64>(result));
}

XIO_DEVICE void signal_entry(entry64& e, const ctx_view& c, const ring_view& r, const peer_view& p, u64 offset,
                             u64 value, int op) {
  if (op == XIO_SIGNAL_ADD) {
    fetch_add_8(e, r, p, offset, value, c.scratch + k_dummy_word);
  } else {
    write_inline_value(e, r, p, offset, value, 8);
  }
}

// --- put, get ----------------------------------------------------------------------------------------

// Posts what is above the chunk and leaves the rest, 1 .. chunk bytes, to the caller.
XIO_DEVICE xio_status_t post_chunks(const ctx_view& c, const ring_view& r, const peer_view& p, u32 opcode, u64* offset,
                                    const unsigned char** local, u64* bytes, u32 lkey) {
  while (*bytes > r.chunk) {
    entries<shape::one> e;
    clear(e.slot[0]);
    transfer(e.slot[0], r, p, opcode, *offset, *local, r.chunk, lkey);
    u64 ticket;
    const xio_status_t status = post(c, r, r.chunk, e, &ticket);
    if (status != XIO_OK) return status;
    *offset += r.chunk;
    *local += r.chunk;
    *bytes -= r.chunk;
  }
  return XIO_OK;
}

// The source may be reused when the request is complete.
XIO_DEVICE xio_status_t put(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const ring_view& r = *p.rdma;
  u32 lkey = 0;
  xio_status_t status = XIO_OK;
  const auto* from = static_cast<const unsigned char*>(src);
  if (bytes > wq::k_inline_in_block || bytes > r.chunk) status = find_key(*c.world, src, bytes, &lkey);
  if (status == XIO_OK) status = post_chunks(c, r, p, wq::op_rdma_write, &offset, &from, &bytes, lkey);
  if (status != XIO_OK) return status;
  entries<shape::one> e;
  clear(e.slot[0]);
  write_some(e.slot[0], r, p, offset, from, static_cast<u32>(bytes), lkey);
  return post_for(c, r, static_cast<u32>(bytes), e, request);
}

// The destination holds the data when the request is complete.
XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const ring_view& r = *p.rdma;
  u32 lkey = 0;
  const auto* to = static_cast<const unsigned char*>(dst);
  xio_status_t status = find_key(*c.world, dst, bytes, &lkey);
  if (status == XIO_OK) status = post_chunks(c, r, p, wq::op_rdma_read, &offset, &to, &bytes, lkey);
  if (status != XIO_OK) return status;
  entries<shape::one> e;
  clear(e.slot[0]);
  transfer(e.slot[0], r, p, wq::op_rdma_read, offset, to, static_cast<u32>(bytes), lkey);
  return post_for(c, r, static_cast<u32>(bytes), e, request);
}

// Writes the low `width` (1, 2, 4, 8) bytes of value.
XIO_DEVICE xio_status_t put_value(const ctx_view& c, u32 pe, u64 offset, u64 value, u32 width, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  entries<shape::one> e;
  clear(e.slot[0]);
  write_inline_value(e.slot[0], *p.rdma, p, offset, value, width);
  return post_for(c, *p.rdma, width, e, request);
}

// --- Signals -----------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, u64 offset, u64 value, int op, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  entries<shape::one> e;
  clear(e.slot[0]);
  signal_entry(e.slot[0], c, *p.rdma, p, offset, value, op);
  return post_for(c, *p.rdma, 8, e, request);
}

// Data and signal are one reservation on one queue, which works in order: nothing waits in between.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, u64 signal_offset,
                                   u64 value, int op, xio_req_t* request) {
  if (bytes == 0) return signal(c, pe, signal_offset, value, op, request);
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = *p.rdma;
  u32 lkey = 0;
  xio_status_t status = XIO_OK;
  const auto* from = static_cast<const unsigned char*>(src);
  if (bytes > wq::k_inline_in_block || bytes > r.chunk) status = find_key(*c.world, src, bytes, &lkey);
  if (status == XIO_OK) status = post_chunks(c, r, p, wq::op_rdma_write, &offset, &from, &bytes, lkey);
  if (status != XIO_OK) return status;
  entries<shape::chain> e;
  clear(e.slot[0]);
  clear(e.slot[1]);
  write_some(e.slot[0], r, p, offset, from, static_cast<u32>(bytes), lkey);
  signal_entry(e.slot[1], c, r, p, signal_offset, value, op);
  return post_for(c, r, static_cast<u32>(bytes) + 8, e, request);
}

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

// Takes a word, lets post_with(word's address, &ticket) post an op that writes to it, waits, reads. Whoever has a word
// runs to the end inside the branch: no lane holds one while it waits for lanes that want one.
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
      if (status == XIO_OK) status = ring_wait_below<mlx5_codec>(r, ticket + 1, *c.world);
      if (status == XIO_OK) *value = load<scope::system, order::relaxed>(c.scratch + word);
      // After a timeout the NIC may still write there: the word stays taken.
      if (status != XIO_ERR_TIMEOUT) give_word(c, word);
      done = true;
    } else {
      pause();
      done = end.passed();
      if (done) status = XIO_ERR_TIMEOUT;
    }
  }
  return status;
}

XIO_DEVICE u64 low_bytes(u64 value, u32 width) { return width >= 8 ? value : value & ((u64{1} << (8 * width)) - 1); }

// Reads `width` (1, 2, 4, 8) bytes into the low end of *value.
XIO_DEVICE xio_status_t get_value(const ctx_view& c, u32 pe, u64 offset, u32 width, u64* value) {
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = *p.rdma;
  const xio_status_t status = with_result(c, r, value, [&](u64* word, u64* ticket) {
    entries<shape::one> e;
    clear(e.slot[0]);
    transfer(e.slot[0], r, p, wq::op_rdma_read, offset, word, width, r.scratch_lkey);
    return post(c, r, width, e, ticket);
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

XIO_DEVICE void atomic_4(entry64& e, const ring_view& r, const peer_view& p, u64 offset, const masked_form& f,
                         u64* result) {
  wq::put_control(e.dw, f.is_add ? wq::op_masked_fa : wq::op_masked_cs, wq::k_opmod_masked_4, 0, r.id, 4, 0);
  wq::put_remote(e.dw + 4, p.remote_heap + offset, p.rkey);
  if (f.is_add) {
    wq::put_masked_fa_4(e.dw + 8, wq::low(f.first), wq::low(f.second));
  } else {
    wq::put_masked_cs_4(e.dw + 8, wq::low(f.first), wq::low(f.second), wq::low(f.swap_mask), wq::low(f.compare_mask));
  }
  wq::put_data(e.dw + 12, 4, r.scratch_lkey, reinterpret_cast<u64>(result));
}

// Eight bytes in one slot: everything but the masked compare-swap.
XIO_DEVICE void atomic_8(entry64& e, const ring_view& r, const peer_view& p, u64 offset, amo op, const masked_form& f,
                         u64* result) {
  const bool masked = op == amo::bit_xor;
  const u32 opcode = masked ? wq::op_masked_fa : f.is_add ? wq::op_atomic_fa : wq::op_atomic_cs;
  wq::put_control(e.dw, opcode, masked ? wq::k_opmod_masked_8 : 0, 0, r.id, 4, 0);
  wq::put_remote(e.dw + 4, p.remote_heap + offset, p.rkey);
  wq::put_pair_64(e.dw + 8, f.first, f.second);
  wq::put_data(e.dw + 12, 8, r.scratch_lkey, reinterpret_cast<u64>(result));
}

XIO_DEVICE void masked_swap_8(entries<shape::wide>& e, const ring_view& r, const peer_view& p, u64 offset,
                              const masked_form& f, u64* result) {
  u32* dw = e.slot[0].dw;
  wq::put_control(dw, wq::op_masked_cs, wq::k_opmod_masked_8, 0, r.id, 5, 0);
  wq::put_remote(dw + 4, p.remote_heap + offset, p.rkey);
  wq::put_masked_cs_8(dw + 8, f.first, f.second, f.swap_mask, f.compare_mask);
  wq::put_data(e.slot[1].dw, 8, r.scratch_lkey, reinterpret_cast<u64>(result));
}

// One WQE, whatever the op: nothing is retried from here.
XIO_DEVICE xio_status_t post_atomic(const ctx_view& c, const ring_view& r, const peer_view& p, u64 offset, u32 width,
                                    amo op, u64 operand, u64 compare, u64* result, u64* ticket) {
  const masked_form f = form_of(op, operand, compare);
  if (width == 8 && !f.is_add && op != amo::compare_swap) {
    entries<shape::wide> e;
    clear(e.slot[0]);
    clear(e.slot[1]);
    masked_swap_8(e, r, p, offset, f, result);
    return post(c, r, width, e, ticket);
  }
  entries<shape::one> e;
  clear(e.slot[0]);
  if (width == 4) {
    atomic_4(e.slot[0], r, p, offset, f, result);
  } else {
    atomic_8(e.slot[0], r, p, offset, op, f, result);
  }
  return post(c, r, width, e, ticket);
}

// width is 4 or 8. With `fetch` waits and gives the old value; else *old is not touched and nothing is waited for.
XIO_DEVICE xio_status_t atomic(const ctx_view& c, u32 pe, u64 offset, u32 width, amo op, u64 operand, u64 compare,
                               bool fetch, u64* old) {
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = *p.rdma;
  if (!fetch) {
    u64 ticket = 0;
    return post_atomic(c, r, p, offset, width, op, operand, compare, c.scratch + k_dummy_word, &ticket);
  }
  const xio_status_t status = with_result(c, r, old, [&](u64* word, u64* ticket) {
    return post_atomic(c, r, p, offset, width, op, operand, compare, word, ticket);
  });
  // Results of 4 bytes come big endian, those of 8 in the host's order (NVSHMEM, ibgda_device.cuh).
  if (status == XIO_OK && width == 4) *old = wire::be32(wq::low(*old));
  return status;
}

}  // namespace xio::dev::rdma
