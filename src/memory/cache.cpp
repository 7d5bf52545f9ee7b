// SPDX-License-Identifier: MIT
#include "memory/cache.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::memory {

registration_cache::span& registration_cache::acquire(std::uint64_t base, std::uint64_t bytes,
                                                      const gpu::block* block) {
  const bool whole = block != nullptr && keep_ != 0;
  const std::uint64_t first = whole ? reinterpret_cast<std::uintptr_t>(block->base) : base;
  if (whole) {
    const auto known = std::ranges::find_if(spans_, [&](const span& s) { return s.block && s.known.base == first; });
    if (known != spans_.end()) {
      ++known->uses;
      ++hits_;
      return *known;
    }
  }
  span made;
  made.known = dev::region_view{first, whole ? block->bytes : bytes, {}, {}, 1, 0, 0, {}, {}};
  made.block = whole;
  made.uses = 1;
  try {
    engines_.reach(made.known);
  } catch (const error& e) {
    // Spans that are kept without a use may take the room that this one needs.
    if (e.status() != XIO_ERR_NO_MEMORY || shrink(0) == 0) throw;
    engines_.reach(made.known);
  }
  ++misses_;
  spans_.push_back(made);
  return spans_.back();
}

void registration_cache::release(span& s) {
  if (--s.uses != 0) return;
  s.last_used = ++now_;
  if (s.block) {
    shrink(keep_);
    return;
  }
  drop(std::ranges::find_if(spans_, [&](const span& other) { return &other == &s; }));
}

void registration_cache::drop(place at) {
  engines_.unreach(at->known);
  spans_.erase(at);
}

std::size_t registration_cache::shrink(std::size_t most) {
  std::size_t gone = 0;
  for (;;) {
    place oldest = spans_.end();
    std::size_t unused = 0;
    for (place s = spans_.begin(); s != spans_.end(); ++s) {
      if (s->uses != 0) continue;
      ++unused;
      if (oldest == spans_.end() || s->last_used < oldest->last_used) oldest = s;
    }
    if (unused <= most) break;
    log::debug("registration cache: {} bytes at {:#x} make room", oldest->known.bytes, oldest->known.base);
    drop(oldest);
    ++gone;
  }
  evictions_ += gone;
  return gone;
}

void registration_cache::forget(std::uint64_t base, std::uint64_t bytes) {
  for (place s = spans_.begin(); s != spans_.end();) {
    const place next = std::next(s);
    if (s->uses == 0 && s->known.base < base + bytes && base < s->known.base + s->known.bytes) {
      drop(s);
      ++forgotten_;
    }
    s = next;
  }
}

xio_mem_cache_stats_t registration_cache::stats() const {
  const auto kept = std::ranges::count_if(spans_, [](const span& s) { return s.uses == 0; });
  return {sizeof(xio_mem_cache_stats_t), hits_, misses_, evictions_, forgotten_, static_cast<std::uint64_t>(kept)};
}

}  // namespace xio::memory
