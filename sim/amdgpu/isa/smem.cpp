// SPDX-License-Identifier: MIT
// Scalar memory: loads, the clocks, the scalar cache (MI200 ISA, chapter 7).

#include "amdgpu/isa/clock.hpp"
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {
namespace {

// Offsets: the instruction's own, and a register or literal as the text's last operand.
std::uint64_t offset_of(const wave& w, const operation& o) {
  const operand& by = o.src[1];
  if (by.where == place::constant) return by.value;
  return (by.where == place::none ? 0 : std::uint64_t{scalar32(w, by)}) +
         static_cast<std::uint64_t>(static_cast<std::int64_t>(o.offset));
}

void load_from(wave& w, const operation& o, std::uint64_t address) {
  const unsigned dwords = o.width / 4;
  std::uint32_t data[16];
  refusal no;
  if (!w.of->memory->load_scalar(address, dwords, data, no)) return stop(w, o, no, o.width);
  if (o.dst.index + dwords > reg::nowhere && o.dst.index != reg::nowhere) {
    stop(w, o, fault::kind::illegal, "the load goes past the last SGPR");
    return;
  }
  std::memcpy(&w.s[o.dst.index], data, o.width);
}

void load(wave& w, const operation& o) { load_from(w, o, scalar64(w, o.src[0]) + offset_of(w, o)); }

// A buffer resource: 48 bits of base, 14 of stride, then the number of records (MI200 ISA 8.1.8). A dword out of range
// reads as zero.
void buffer_load(wave& w, const operation& o) {
  const std::uint64_t low = w.get64(o.src[0].index);
  const std::uint32_t records = w.s[o.src[0].index + 2];
  const std::uint32_t stride = static_cast<std::uint32_t>(low >> 48 & 0x3fff);
  const std::uint64_t bytes = stride ? std::uint64_t{records} * stride : records;
  const std::uint64_t offset = offset_of(w, o) & ~std::uint64_t{3};
  if (offset + o.width > bytes) {
    std::memset(&w.s[o.dst.index], 0, o.width);
    return;
  }
  load_from(w, o, (low & 0xffffffffffff) + offset);
}

void realtime(wave& w, const operation& o) { w.set64(o.dst.index, realtime_ticks()); }

// The core clock: about 1 GHz here.
void memtime(wave& w, const operation& o) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  w.set64(o.dst.index,
          static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec));
}

void nothing(wave&, const operation&) {}
void invalidate(wave& w, const operation&) { w.of->memory->invalidate_scalar_cache(); }

constexpr row rows[] = {
    {"s_load_dword", "s=Ss", load, nullptr, 0, 4},
    {"s_load_dwordx2", "s=Ss", load, nullptr, 0, 8},
    {"s_load_dwordx4", "s=Ss", load, nullptr, 0, 16},
    {"s_load_dwordx8", "s=Ss", load, nullptr, 0, 32},
    {"s_load_dwordx16", "s=Ss", load, nullptr, 0, 64},
    {"s_buffer_load_dword", "s=Ss", buffer_load, nullptr, 0, 4},
    {"s_buffer_load_dwordx2", "s=Ss", buffer_load, nullptr, 0, 8},
    {"s_buffer_load_dwordx4", "s=Ss", buffer_load, nullptr, 0, 16},
    {"s_buffer_load_dwordx8", "s=Ss", buffer_load, nullptr, 0, 32},
    {"s_buffer_load_dwordx16", "s=Ss", buffer_load, nullptr, 0, 64},
    {"s_memtime", "S=", memtime},
    {"s_memrealtime", "S=", realtime},
    {"s_dcache_inv", "*", invalidate},
    {"s_dcache_inv_vol", "*", invalidate},
    {"s_dcache_wb", "*", nothing},
    {"s_dcache_wb_vol", "*", nothing},
};

}  // namespace

table smem_rows() { return rows; }

}  // namespace amdgpu
