// SPDX-License-Identifier: MIT
// From a checked transfer to the NVMe commands that do it: cut at what one command can carry and at the edges of
// stripes, with data pointers computed from the buffer's bus address.
#pragma once
#include "xio/device/impl/bus_rows.hpp"
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/nvme.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev {

// One checked transfer.
struct transfer {
  storage_view shape;  // of the storage, all in one look
  wire::nvme::opcode op;
  bus_place bus;  // of the buffer, as the drive sees it
  u64 first;      // bus address of its first byte
  u64 offset;     // in the storage
  u64 bytes;
  const void* buffer;  // null: none is named
};

// The part of a transfer that one command does.
struct piece {
  u64 done;  // bytes of the transfer before it
  u64 at;    // its first byte on the member
  u64 bytes;
};

// The commands that a transfer sends to one member, in order of address.
struct member_part {
  u64 commands;
  u64 stripe;  // the first of its stripes that the transfer touches
  u64 skip;    // cells of that stripe before the transfer
};

// Copies the fields that do not change while a storage is open, and the size as it is now. `live` changes.
XIO_DEVICE storage_view shape_of(const storage_view& s) {
  return {s.queues,         s.queue_count,
          s.members,        load<scope::system, order::relaxed>(&s.bytes),
          s.block_bytes,    s.block_log2,
          s.transfer_bytes, s.page_bytes,
          s.slot,           0,
          s.read_only,      s.space,
          s.features,       s.member_queues,
          s.stripe_log2};
}

// Stripes are cut into cells of what one command carries. Both are powers of two.
XIO_DEVICE u32 cell_log2(const storage_view& s) {
  const u32 command = lowest_bit(s.transfer_bytes);
  return command < s.stripe_log2 ? command : s.stripe_log2;
}

XIO_DEVICE u32 member_of(const storage_view& s, u64 offset) {
  return s.members == 1 ? 0 : static_cast<u32>((offset >> s.stripe_log2) % s.members);
}

// Whether one command does all of it, of which the first member's addresses are right. bytes is not 0.
XIO_DEVICE bool is_one_command(const transfer& t) {
  const storage_view& s = t.shape;
  if (s.members == 1) return t.bytes <= s.transfer_bytes;
  if ((s.features & storage_apart) != 0) return false;
  const u32 cell = cell_log2(s);
  return t.offset >> cell == (t.offset + t.bytes - 1) >> cell;
}

// The only piece of a transfer that is_one_command.
XIO_DEVICE piece only_piece(const transfer& t) {
  const storage_view& s = t.shape;
  if (s.members == 1) return piece{0, t.offset, t.bytes};
  const u64 stripe = t.offset >> s.stripe_log2;
  const u64 in_stripe = t.offset & ((u64{1} << s.stripe_log2) - 1);
  return piece{0, (stripe / s.members << s.stripe_log2) + in_stripe, t.bytes};
}

XIO_DEVICE member_part part_of(const transfer& t, u32 member) {
  const storage_view& s = t.shape;
  if (s.members == 1) return member_part{(t.bytes + s.transfer_bytes - 1) / s.transfer_bytes, 0, 0};
  const u32 cell = cell_log2(s);
  const u64 cells = u64{1} << (s.stripe_log2 - cell);
  const u64 first = t.offset >> s.stripe_log2;
  const u64 last_byte = t.offset + t.bytes - 1;
  const u64 last = last_byte >> s.stripe_log2;
  const u64 mine = first + (member + s.members - first % s.members) % s.members;
  if (mine > last) return member_part{0, mine, 0};
  const u64 skip = mine == first ? (t.offset >> cell) & (cells - 1) : 0;
  const u64 rounds = (last - mine) / s.members;
  const u64 in_last = mine + rounds * s.members == last ? ((last_byte >> cell) & (cells - 1)) + 1 : cells;
  return member_part{rounds * cells + in_last - skip, mine, skip};
}

XIO_DEVICE piece piece_of(const transfer& t, const member_part& part, u64 i) {
  const storage_view& s = t.shape;
  if (s.members == 1) {
    const u64 done = i * s.transfer_bytes;
    const u64 left = t.bytes - done;
    return piece{done, t.offset + done, left < s.transfer_bytes ? left : s.transfer_bytes};
  }
  const u32 cell = cell_log2(s);
  const u32 cells_log2 = s.stripe_log2 - cell;
  const u64 flat = part.skip + i;
  const u64 stripe = part.stripe + (flat >> cells_log2) * s.members;
  const u64 in_stripe = (flat & ((u64{1} << cells_log2) - 1)) << cell;
  u64 from = (stripe << s.stripe_log2) + in_stripe;
  u64 to = from + (u64{1} << cell);
  u64 on_member = (stripe / s.members << s.stripe_log2) + in_stripe;
  if (from < t.offset) {
    on_member += t.offset - from;
    from = t.offset;
  }
  if (to > t.offset + t.bytes) to = t.offset + t.bytes;
  return piece{from - t.offset, on_member, to - from};
}

// Writes the PRP list of a command whose data end `end` bytes behind the start of their first page, more than two pages
// away; returns its bus address. The list is chosen by command id and not by slot: a slow command may still need its
// list when its slot is in use again. Pages of contiguous memory are computed, others looked up.
XIO_DEVICE u64 write_prp_list(const ring_view& r, u32 cid, const bus_place& data, u64 end, u64 page_bytes) {
  const u64 at = cid * prp_room(r.chunk, page_bytes);
  auto* list = reinterpret_cast<u64*>(r.nvme.list_pages + at);
  const u64 list_bus = r.nvme.list_pages_bus + at;
  const u64 entries = page_bytes / 8;  // of a list page; the last leads to the next page if more than one is left
  u64 slot = 0;
  for (u64 page = 1; page * page_bytes < end; ++page, ++slot) {
    if ((slot & (entries - 1)) == entries - 1 && (page + 1) * page_bytes < end) {
      list[slot] = list_bus + (slot + 1) * 8;
      ++slot;
    }
    list[slot] = bus_address_of(data, wire::nvme::prp_entry(data.at, page, page_bytes));
  }
  return list_bus;
}

XIO_DEVICE void store_sqe(const ring_view& r, u64 ticket, const wire::nvme::sqe& sqe) {
  entry64 e;
  for (int k = 0; k < 16; ++k) e.dw[k] = sqe.dw[k];
  store_entry(ring_slot(r, ticket, sizeof e), e);
}

// One command of a transfer, but for what its queue and its ticket decide.
struct command {
  wire::nvme::sqe entry;  // the pages of its data as PRPs, unless they need a list
  bus_place bus;          // of its data
  u32 bytes;
  u64 list_end;  // where the data end behind the start of their first page, if they need a list, else 0
  u64 page_bytes;
};

XIO_DEVICE command command_of(const transfer& t, const piece& p) {
  const storage_view& s = t.shape;
  const u64 at = t.bus.at == 0 ? 0 : t.bus.at + p.done;
  // No count of pages: a division takes a GPU longer than the rest of the entry.
  const u64 page = s.page_bytes;
  const u64 end = at == 0 ? 0 : (at & (page - 1)) + p.bytes;
  const u64 first = p.done == 0 ? t.first : bus_address_of(t.bus, at);
  const u64 second = end > page ? bus_address_of(t.bus, wire::nvme::prp_entry(at, 1, page)) : 0;
  const u32 bytes = static_cast<u32>(p.bytes);
  auto entry = wire::nvme::make_io(t.op, 0, 0, first, second, p.at >> s.block_log2, bytes >> s.block_log2);
  if (((p.at | p.bytes) & (s.block_bytes - 1)) != 0 || at % wire::nvme::k_prp_align != 0) [[unlikely]]
    entry = wire::nvme::of_bytes(entry, p.at, bytes);
  return command{entry, {at, t.bus.rows}, bytes, end > 2 * page ? end : 0, page};
}

// Where two PRPs don't say it: one descriptor in the place of both, with address, length, and a type that is 0 for a
// block of data; or a list. Rings for memory in parts have lists.
XIO_DEVICE void point_to_data(const ring_view& r, u32 cid, command& c) {
  if (r.nvme.list_pages == nullptr) {
    c.entry = wire::nvme::with_sgl(c.entry, wire::nvme::make_sgl(wire::nvme::sgl::data_block, c.bus.at, c.bytes));
  } else {
    const u64 list = write_prp_list(r, cid, c.bus, c.list_end, c.page_bytes);
    c.entry.dw[8] = static_cast<u32>(list);
    c.entry.dw[9] = static_cast<u32>(list >> 32);
  }
}

// Writes the SQE of a command, and its PRP list if it needs one.
XIO_DEVICE void write_command(const ring_view& r, u64 ticket, command c) {
  const u32 cid = nvme_codec::cid(r, ticket);
  if (c.bus.at != 0 && (r.nvme.list_pages == nullptr || c.list_end != 0)) [[unlikely]]
    point_to_data(r, cid, c);
  c.entry.dw[0] |= cid << 16;
  c.entry.dw[1] = r.nvme.name_space;
  store_sqe(r, ticket, c.entry);
}

}  // namespace xio::dev
