// SPDX-License-Identifier: MIT
#include "amdgpu/isa/scratch.hpp"

namespace amdgpu {
namespace {

std::uint64_t place_of(const wave& w, std::uint64_t base, std::uint32_t offset, unsigned lane) {
  return base + std::uint64_t{offset & ~3u} * w.width() + lane * 4 + (offset & 3);
}

// The wave's own backing memory was checked when the wave began.
bool own(const wave& w, std::uint64_t address, std::uint64_t bytes) {
  return address - w.scratch < w.scratch_bytes && w.scratch_bytes - (address - w.scratch) >= bytes;
}

// A piece of one lane that lies in one dword.
bool piece(wave& w, const operation& o, std::uint64_t address, unsigned lane, unsigned bytes, bool write,
           std::uint8_t* data) {
  if (own(w, address, bytes)) {
    auto* const memory = reinterpret_cast<std::uint8_t*>(address + w.scratch_shift);
    write ? std::memcpy(memory, data, bytes) : std::memcpy(data, memory, bytes);
    return true;
  }
  refusal no;
  const std::uint64_t addresses[lanes] = {address};
  std::uint32_t rows[lanes] = {0};
  access a{addresses, 1, bytes, access_kind::scratch, o.scope, w.of, w.number};
  if (write) std::memcpy(rows, data, bytes);
  const bool done = write ? w.of->memory->store(a, rows, no) : w.of->memory->load(a, rows, no);
  if (!done) {
    no.lane = static_cast<int>(lane);
    no.why = w.scratch_bytes ? "it is outside of the wave's scratch" : "the kernel was given no scratch";
    stop(w, o, no, bytes);
  } else if (!write) {
    std::memcpy(data, rows, bytes);
  }
  return done;
}

// All lanes at the same offset, a multiple of 4: rows of consecutive bytes, one dword for each lane.
std::uint8_t* uniform(const wave& w, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
                      unsigned bytes) {
  const std::uint32_t first = offset[std::countr_zero(active)];
  if (first % 4 || bytes % 4) return nullptr;
  std::uint32_t differ = 0;
  if (active == ~std::uint64_t{0}) {
    for (unsigned l = 0; l < lanes; ++l) differ |= offset[l] ^ first;
  } else {
    for (const unsigned lane : active_lanes(active)) differ |= offset[lane] ^ first;
  }
  const std::uint64_t address = place_of(w, base, first, 0);
  if (differ || !own(w, address, std::uint64_t{bytes} * w.width())) return nullptr;
  return reinterpret_cast<std::uint8_t*>(address + w.scratch_shift);
}

template <bool write, class Data>
bool lane_by_lane(wave& w, const operation& o, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
                  unsigned bytes, Data* data) {
  for (const unsigned lane : active_lanes(active)) {
    std::uint32_t words[4] = {0, 0, 0, 0};
    auto* const bytes_of = reinterpret_cast<std::uint8_t*>(words);
    if (write)
      for (unsigned k = 0; k < (bytes + 3) / 4; ++k) words[k] = data[k * lanes + lane];
    for (unsigned at = 0; at < bytes;) {
      const std::uint32_t here = offset[lane] + at;
      unsigned n = 4 - here % 4;
      if (n > bytes - at) n = bytes - at;
      if (!piece(w, o, place_of(w, base, here, lane), lane, n, write, bytes_of + at)) return false;
      at += n;
    }
    if constexpr (!write)
      for (unsigned k = 0; k < (bytes + 3) / 4; ++k) data[k * lanes + lane] = words[k];
  }
  return true;
}

// Loads into `data`, or stores from it.
template <class Data>
bool move(wave& w, const operation& o, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
          unsigned bytes, Data* data) {
  constexpr bool write = std::is_const_v<Data>;
  if (!active) return true;
  std::uint8_t* const row = uniform(w, base, offset, active, bytes);
  if (!row) return lane_by_lane<write>(w, o, base, offset, active, bytes, data);
  const auto copy = [](Data* registers, std::uint8_t* memory, std::size_t n) {
    if constexpr (write)
      std::memcpy(memory, registers, n);
    else
      std::memcpy(registers, memory, n);
  };
  if (active == ~std::uint64_t{0}) {
    copy(data, row, std::size_t{bytes} * lanes);
    return true;
  }
  for (unsigned k = 0; k < bytes / 4; ++k)
    for (const unsigned lane : active_lanes(active)) {
      copy(&data[k * lanes + lane], row + (k * w.width() + lane) * 4, 4);
    }
  return true;
}

}  // namespace

bool scratch_load(wave& w, const operation& o, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
                  unsigned bytes, std::uint32_t* data) {
  return move(w, o, base, offset, active, bytes, data);
}

bool scratch_store(wave& w, const operation& o, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
                   unsigned bytes, const std::uint32_t* data) {
  return move(w, o, base, offset, active, bytes, data);
}

}  // namespace amdgpu
