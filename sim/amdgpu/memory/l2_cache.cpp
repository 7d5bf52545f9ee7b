// SPDX-License-Identifier: MIT
#include "amdgpu/memory/l2_cache.hpp"

#include <cstring>
#include <iterator>

#include "amdgpu/memory/read_modify_write.hpp"

namespace amdgpu {
namespace {

constexpr std::uint64_t base_of(std::uint64_t address) { return address & ~(l2_cache::line_bytes - 1); }

// A dword or qword is read and written at once: other devices look at it.
void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes;) {
    if ((to + i) % 8 == 0 && (from + i) % 8 == 0 && bytes - i >= 8) {
      const auto both = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from + i), __ATOMIC_RELAXED);
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + i), both, __ATOMIC_RELAXED);
      i += 8;
    } else if ((to + i) % 4 == 0 && (from + i) % 4 == 0 && bytes - i >= 4) {
      const auto word = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(from + i), __ATOMIC_RELAXED);
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(to + i), word, __ATOMIC_RELAXED);
      i += 4;
    } else {
      const auto byte = __atomic_load_n(reinterpret_cast<const std::uint8_t*>(from + i), __ATOMIC_RELAXED);
      __atomic_store_n(reinterpret_cast<std::uint8_t*>(to + i), byte, __ATOMIC_RELAXED);
      ++i;
    }
  }
}

// As std::erase_if, whose condition may not change what stays.
template <class Lines, class Condition>
void drop_if(Lines& lines, Condition goes) {
  for (auto at = lines.begin(); at != lines.end();) at = goes(*at) ? lines.erase(at) : std::next(at);
}

std::uint64_t place_of(const std::uint8_t* p) { return reinterpret_cast<std::uint64_t>(p); }

}  // namespace

l2_cache::keeping l2_cache::of(mapping::place where, mapping::caching how) const {
  if (how == mapping::caching::uncached || (how == mapping::caching::fine && !rules.scoped)) return keeping::nothing;
  switch (where) {
    case mapping::place::local: return rules.own_is_nc ? keeping::all : keeping::dirty;
    case mapping::place::peer: return keeping::all;
    case mapping::place::host: return rules.scoped ? keeping::nothing : keeping::all;
    default: return keeping::nothing;
  }
}

l2_cache::line& l2_cache::found(std::uint64_t base) {
  const auto there = lines.find(base);
  if (there != lines.end()) return there->second;
  if (lines.size() >= lines_at_most || (!lines.empty() && random() % 64 == 0)) make_room();
  return lines[base];
}

// Gets what is not dirty from memory.
void l2_cache::fill(std::uint64_t base, line& l) {
  alignas(8) std::uint8_t now[line_bytes];
  copy(place_of(now), base, line_bytes);
  for (unsigned i = 0; i < line_bytes; ++i)
    if (!l.dirty[i]) l.data[i] = now[i];
  l.whole = true;
}

// Dirty bytes reach memory, runs of them at once.
void l2_cache::send(std::uint64_t base, line& l) {
  for (unsigned i = 0; i < line_bytes;) {
    unsigned end = i;
    while (end < line_bytes && l.dirty[end]) ++end;
    if (end != i) copy(base + i, place_of(l.data.data() + i), end - i);
    i = end + 1;
  }
  l.dirty.reset();
}

// Some line leaves.
void l2_cache::make_room() {
  const std::size_t bucket = random() % lines.bucket_count();
  for (std::size_t i = 0; i < lines.bucket_count(); ++i) {
    const std::size_t b = (bucket + i) % lines.bucket_count();
    if (lines.begin(b) == lines.end(b)) continue;
    const std::uint64_t base = lines.begin(b)->first;
    send(base, lines.begin(b)->second);
    lines.erase(base);
    return;
  }
}

void l2_cache::let_go() {
  drop_if(lines, [](table::value_type& entry) {
    if (!entry.second.held) return false;
    entry.second.whole = entry.second.held = false;
    return entry.second.dirty.none();
  });
}

// Kernels and the host store to it, and no call says so: its value shows it.
void l2_cache::look_at_register() {
  std::uint32_t* const word = path.flush_word;
  if (word && __atomic_load_n(word, __ATOMIC_ACQUIRE) && __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL)) ++path.flushes;
  const std::uint64_t now = path.flushes;
  if (now != flushes_seen) let_go();
  flushes_seen = now;
}

void l2_cache::read(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, std::uint8_t* out,
                    reach r) {
  const bool held = holds_back && where == mapping::place::local;
  if (held) look_at_register();
  const std::uint64_t base = base_of(at), offset = at - base;
  if (!held && of(where, how) != keeping::all) {
    copy(place_of(out), at, bytes);
    const auto there = lines.find(base);
    if (there == lines.end()) return;
    for (unsigned i = 0; i < bytes; ++i)
      if (there->second.dirty[offset + i]) out[i] = there->second.data[offset + i];
    return;
  }
  line& l = found(base);
  // It may have left since it was last used.
  if (!l.whole || (!held && leaves(r)) || random() % 8 == 0) fill(base, l);
  l.held = held;
  std::memcpy(out, l.data.data() + offset, bytes);
}

void l2_cache::write(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how,
                     const std::uint8_t* in, reach r) {
  const std::uint64_t base = base_of(at), offset = at - base;
  const bool passes = of(where, how) == keeping::nothing || leaves(r);
  if (passes) {
    copy(at, place_of(in), bytes);
    const auto there = lines.find(base);
    if (there == lines.end()) return;
    std::memcpy(there->second.data.data() + offset, in, bytes);
    for (unsigned i = 0; i < bytes; ++i) there->second.dirty.reset(offset + i);
    return;
  }
  line& l = found(base);
  std::memcpy(l.data.data() + offset, in, bytes);
  for (unsigned i = 0; i < bytes; ++i) l.dirty.set(offset + i);
}

std::uint64_t l2_cache::change(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how,
                               atomic_op op, std::uint64_t value, std::uint64_t compare) {
  alignas(8) std::uint8_t raw[8] = {};
  read(at, bytes, where, how, raw);
  std::uint64_t old = 0, next = 0;
  std::memcpy(&old, raw, sizeof(old));
  if (bytes == 4)
    next = changed<std::uint32_t>(op, static_cast<std::uint32_t>(old), static_cast<std::uint32_t>(value),
                                  static_cast<std::uint32_t>(compare));
  else
    next = changed<std::uint64_t>(op, old, value, compare);
  std::memcpy(raw, &next, sizeof(next));
  write(at, bytes, where, how, raw);
  return old;
}

void l2_cache::drop(std::uint64_t at) {
  const auto there = lines.find(base_of(at));
  if (there == lines.end()) return;
  send(there->first, there->second);
  lines.erase(there);
}

void l2_cache::write_back() {
  const std::lock_guard hold(guard);
  drop_if(lines, [&](table::value_type& entry) {
    send(entry.first, entry.second);
    return !entry.second.whole;
  });
}

// Lines that are held for the host data path are of this GPU's own memory, of which buffer_invl2 drops none.
void l2_cache::invalidate() {
  const std::lock_guard hold(guard);
  drop_if(lines, [](table::value_type& entry) {
    if (entry.second.held) return false;
    entry.second.whole = false;
    return entry.second.dirty.none();
  });
}

void l2_cache::flush_host_path() {
  const std::lock_guard hold(guard);
  let_go();
}

void l2_cache::forget(std::uint64_t at, std::uint64_t bytes) {
  const std::lock_guard hold(guard);
  drop_if(lines, [&](table::value_type& entry) {
    if (entry.first + line_bytes <= at || entry.first >= at + bytes) return false;
    send(entry.first, entry.second);
    return true;
  });
}

}  // namespace amdgpu
