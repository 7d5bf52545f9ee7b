// SPDX-License-Identifier: MIT
#include "amdgpu/memory/vector_cache.hpp"

#include <algorithm>
#include <cstring>

namespace amdgpu {
namespace {

constexpr std::uint64_t base_of(std::uint64_t address) { return address & ~(vector_cache::line_bytes - 1); }

// Calls part(address, offset in the access, bytes) for what each line has of one lane's access.
template <class Part>
void by_line(std::uint64_t address, unsigned bytes, Part part) {
  for (unsigned done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const auto here =
        static_cast<unsigned>(std::min<std::uint64_t>(bytes - done, base_of(at) + vector_cache::line_bytes - at));
    part(at, done, here);
    done += here;
  }
}

template <class One>
void each_lane(const access& of, One one) {
  for (const unsigned lane : active_lanes(of.active)) one(lane);
}

}  // namespace

// Memory that comes or goes takes the lines with it, as the driver's flush does.
void vector_cache::forget_unmapped() {
  const std::uint64_t now = space.generation();
  if (now != seen) lines.clear();
  seen = now;
}

// The line at this address; null if it is not mapped as a whole.
const vector_cache::line* vector_cache::filled(std::uint64_t base) {
  const auto found = lines.find(base);
  if (found != lines.end()) return &found->second;
  std::uint64_t address[lanes] = {};
  std::uint32_t words[4 * lanes];
  for (unsigned i = 0; i < 4; ++i) address[i] = base + 16 * i;
  access all;
  all.address = address;
  all.active = 0xf;
  all.bytes = 16;
  refusal no;
  if (next ? !next->load(all, words, no) : !memory.load(all, words, no)) return nullptr;
  if (lines.size() >= lines_at_most) lines.erase(lines.begin());
  line& fresh = lines[base];
  for (unsigned i = 0; i < line_bytes / 4; ++i)
    std::memcpy(fresh.data() + 4 * i, &words[i % 4 * lanes + i / 4], sizeof(std::uint32_t));
  return &fresh;
}

bool vector_cache::load(const access& of, std::uint32_t* data, refusal& no) {
  const std::lock_guard hold(guard);
  forget_unmapped();
  // Any line may have made room since it was last used.
  if (passes(of))
    drop_line(of);
  else if (!keeps && random() % 8 == 0)
    forget(of);
  if (passes(of)) return memory.load(of, data, no);
  bool good = true;
  each_lane(of, [&](unsigned lane) {
    std::uint32_t words[4] = {};
    bool whole = true;
    by_line(of.address[lane], of.bytes, [&](std::uint64_t at, unsigned offset, unsigned bytes) {
      const line* const from = filled(base_of(at));
      whole &= from != nullptr;
      if (from) std::memcpy(reinterpret_cast<std::uint8_t*>(words) + offset, from->data() + at % line_bytes, bytes);
    });
    if (whole) {
      for (unsigned i = 0; i < (of.bytes + 3) / 4; ++i) data[i * lanes + lane] = words[i];
      return;
    }
    access one = of;
    one.active = std::uint64_t{1} << lane;
    good = good && memory.load(one, data, no);
  });
  return good;
}

// Memory gets the bytes at once; a line that holds them keeps the rest as it was.
bool vector_cache::store(const access& of, const std::uint32_t* data, refusal& no) {
  const std::lock_guard hold(guard);
  forget_unmapped();
  if (next ? !next->store(of, data, no) : !memory.store(of, data, no)) return false;
  if (of.kind == access_kind::scratch) return true;
  each_lane(of, [&](unsigned lane) {
    std::uint32_t words[4] = {};
    for (unsigned i = 0; i < (of.bytes + 3) / 4; ++i) words[i] = data[i * lanes + lane];
    by_line(of.address[lane], of.bytes, [&](std::uint64_t at, unsigned offset, unsigned bytes) {
      const auto found = lines.find(base_of(at));
      if (found == lines.end()) return;
      std::memcpy(found->second.data() + at % line_bytes, reinterpret_cast<const std::uint8_t*>(words) + offset, bytes);
    });
  });
  return true;
}

void vector_cache::drop(const access& of) {
  const std::lock_guard hold(guard);
  drop_line(of);
}

void vector_cache::drop_line(const access& of) {
  if (next) next->drop(of);
  forget(of);
}

void vector_cache::forget(const access& of) {
  if (lines.empty()) return;
  each_lane(of, [&](unsigned lane) {
    by_line(of.address[lane], of.bytes, [&](std::uint64_t at, unsigned, unsigned) { lines.erase(base_of(at)); });
  });
}

}  // namespace amdgpu
