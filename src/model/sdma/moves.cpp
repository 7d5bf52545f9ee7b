// SPDX-License-Identifier: MIT
// Packets that move data: what each must not say, and the move that it becomes. Layouts: xio/wire/sdma.hpp.
#include "model/sdma/decode.hpp"
#include "model/sdma/queue.hpp"

namespace xio::model::sdma {

queue::outcome queue::do_copy(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t bytes = std::uint64_t{dw[1]} + 1;
  const std::uint64_t src = wire::join(dw[3], dw[4]);
  const std::uint64_t dst = wire::join(dw[5], dw[6]);
  const std::uint32_t odd = around.granule - 1;
  verdict v;
  if (bytes > wire::copy_bytes_max(around.generation))
    v = {fault::bad_count, 1};
  else if ((bytes & odd) != 0)
    v = {fault::unaligned, 1};
  else if ((src & odd) != 0)
    v = {fault::unaligned, 3};
  else if ((dst & odd) != 0)
    v = {fault::unaligned, 5};
  else if (around.map.find(src, bytes) == nullptr)
    v = {fault::not_mapped, 3};
  else if (around.map.find(dst, bytes) == nullptr)
    v = {fault::not_mapped, 5};
  else if (src != dst && src < dst + bytes && dst < src + bytes)
    v = {fault::overlap, 5};
  if (v.what != fault::none) return refuse(dw, v);
  return keep(move{{dst, 0, 0}, {src, 0, 0}, {bytes, 1, 1}, {}, next_dword()}, wire::k_copy_linear_dwords);
}

namespace {

// One side of a tile in bytes, or what is wrong with it.
struct side_in_bytes {
  pitched at{};
  fault what = fault::none;
  std::uint32_t field = 0;  // 0 base, 3 pitch, 4 slice: dwords behind the base's in the 13-dword form
};

side_in_bytes in_bytes(const window_side& s, const window& w, std::uint32_t log2, bool large) {
  side_in_bytes out;
  const auto wrong = [&](fault f, std::uint32_t field) {
    out.what = f;
    out.field = field;
    return out;
  };
  const std::uint64_t pitch = s.pitch << log2;
  const std::uint64_t slice = s.slice << log2;
  const bool flat = w.depth == 1 && s.z == 0;
  // The 20-dword form counts bytes and is not known to want anything aligned.
  if (!large && (s.base & 3) != 0) return wrong(fault::unaligned, 0);
  if (!large && (pitch & 3) != 0) return wrong(fault::unaligned, 3);
  if (!large && !flat && (slice & 3) != 0) return wrong(fault::unaligned, 4);
  if (s.x + w.width > s.pitch) return wrong(fault::bad_pitch, 3);
  // All of a slice's rows lie before the next slice. y and height are 32 bits, so the product may be beyond 64.
  std::uint64_t rows = 0;
  if (__builtin_mul_overflow(s.y + w.height - 1, s.pitch, &rows) || __builtin_add_overflow(rows, s.x + w.width, &rows))
    return wrong(fault::bad_pitch, 3);
  if (!flat && rows > s.slice) return wrong(fault::bad_pitch, 4);
  std::uint64_t corner = 0, deep = 0;
  if (__builtin_mul_overflow(s.z, slice, &deep) ||
      __builtin_add_overflow(deep, (s.y * s.pitch + s.x) << log2, &corner) ||
      __builtin_add_overflow(s.base, corner, &corner))
    return wrong(fault::not_mapped, 0);
  out.at = pitched{corner, pitch, slice};
  return out;
}

}  // namespace

queue::outcome queue::do_tile(const surroundings& around, const std::uint32_t* dw) {
  const bool large = wire::sub_op_of(dw[0]) == wire::k_copy_sub_window_large;
  const window w = large ? decode_window_large(dw) : decode_window(around.generation, dw);
  if (w.element_log2 > 4) return refuse(dw, {fault::reserved_bit, 0});
  const auto dword = [&](std::uint32_t first, std::uint32_t field) {
    // The 20-dword form: base 0 and 1, x, y, z, pitch 5, slice 6 and 7.
    return first + (large && field != 0 ? field + 2 : field);
  };
  const std::uint32_t at_src = 1, at_dst = large ? 9 : 6;
  const side_in_bytes src = in_bytes(w.src, w, w.element_log2, large);
  if (src.what != fault::none) return refuse(dw, {src.what, dword(at_src, src.field)});
  const side_in_bytes dst = in_bytes(w.dst, w, w.element_log2, large);
  if (dst.what != fault::none) return refuse(dw, {dst.what, dword(at_dst, dst.field)});
  const extent size{w.width << w.element_log2, w.height, w.depth};
  if (!covered(around.map, src.at, size)) return refuse(dw, {fault::not_mapped, at_src});
  if (!covered(around.map, dst.at, size)) return refuse(dw, {fault::not_mapped, at_dst});
  const bool same = src.at.start == dst.at.start && (w.height == 1 || src.at.pitch == dst.at.pitch) &&
                    (w.depth == 1 || src.at.slice == dst.at.slice);
  if (!same && overlap(src.at, dst.at, size)) return refuse(dw, {fault::overlap, at_dst});
  return keep(move{dst.at, src.at, size, {}, next_dword()},
              large ? wire::k_copy_sub_window_large_dwords : wire::k_copy_sub_window_dwords);
}

queue::outcome queue::do_write(const surroundings& around, const std::uint32_t* dw) {
  const std::uint64_t dst = wire::join(dw[1], dw[2]);
  const std::uint64_t count = std::uint64_t{dw[3] & (wire::k_write_dwords_max - 1)} + 1;
  if (const fault f = whole(wire::k_write_head_dwords + count); f != fault::none) return refuse(dw, {f, 3});
  if (dst % 4 != 0) return refuse(dw, {fault::unaligned, 1});
  if (around.map.find(dst, count * 4) == nullptr) return refuse(dw, {fault::not_mapped, 1});
  const std::uint32_t* data = dw + wire::k_write_head_dwords;
  return keep(move{{dst, 0, 0}, {}, {count * 4, 1, 1}, {data, data + count}, next_dword()},
              wire::k_write_head_dwords + count);
}

queue::outcome queue::do_fill(const surroundings& around, const std::uint32_t* dw) {
  const std::uint32_t size_log2 = wire::fill_size(dw[0]);
  if (size_log2 > 2) return refuse(dw, {fault::bad_op, 0});
  const std::uint32_t unit = 1u << size_log2;
  const std::uint64_t dst = wire::join(dw[1], dw[2]);
  const std::uint64_t bytes = wire::fill_bytes(dw[4], size_log2);
  if (bytes > wire::fill_bytes_max(around.generation)) return refuse(dw, {fault::bad_count, 4});
  // A count may say the last byte or the last unit (sdma.hpp); between them it means to end within a unit.
  if ((dw[4] & (unit - 1)) != 0 && (dw[4] & (unit - 1)) != unit - 1) return refuse(dw, {fault::unaligned, 4});
  if (dst % unit != 0) return refuse(dw, {fault::unaligned, 1});
  if (around.map.find(dst, bytes) == nullptr) return refuse(dw, {fault::not_mapped, 1});
  const std::uint32_t value = size_log2 == 0   ? (dw[3] & 0xffu) * 0x01010101u
                              : size_log2 == 1 ? (dw[3] & 0xffffu) * 0x00010001u
                                               : dw[3];
  // A page of the value at a time.
  std::vector<std::uint32_t> data(bytes < 4096 ? (bytes + 3) / 4 : 1024, value);
  return keep(move{{dst, 0, 0}, {}, {bytes, 1, 1}, std::move(data), next_dword()}, wire::k_const_fill_dwords);
}

}  // namespace xio::model::sdma
