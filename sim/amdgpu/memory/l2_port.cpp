// SPDX-License-Identifier: MIT
#include "amdgpu/memory/l2_port.hpp"

#include <algorithm>

namespace amdgpu {
namespace {

// gfx942's bits: a load's glc stands for sc1 and its scc for both (decode.cpp).
l2_cache::reach of_load(const access& of) {
  if (of.scope.scc) return l2_cache::reach::system;
  return of.scope.glc ? l2_cache::reach::agent : l2_cache::reach::workgroup;
}
l2_cache::reach of_store(const access& of) {
  if (!of.scope.scc) return l2_cache::reach::workgroup;
  return of.scope.glc ? l2_cache::reach::system : l2_cache::reach::agent;
}
// An atomic's sc0 asks for the old value, so one of less than the system's scope is the agent's.
l2_cache::reach of_atomic(const access& of) { return of.scope.scc ? l2_cache::reach::system : l2_cache::reach::agent; }

}  // namespace

// Whether all lanes go to memory of a kind that the L2 does not keep, as nearly every access does.
bool l2_port::passes(const access& of, bool write) {
  if (!cache || !of.active || of.kind == access_kind::scratch) return true;
  const plain::window* const w = memory.holds_all(of, write);
  return w && !cache->keeps(w->where, w->how);
}

// Calls part(where the process sees it, window, offset, bytes) for what each line has of one lane's access, all of
// which is mapped.
template <class Part>
void l2_port::each_part(std::uint64_t address, unsigned bytes, Part part) {
  for (unsigned done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const auto here =
        static_cast<unsigned>(std::min<std::uint64_t>(bytes - done, l2_cache::line_bytes - at % l2_cache::line_bytes));
    const plain::window* const w = memory.look(at);
    part(at + w->shift, *w, done, here);
    done += here;
  }
}

template <class Part>
void l2_port::each_lane(const access& of, Part part) {
  for (const unsigned lane : active_lanes(of.active)) part(lane);
}

bool l2_port::load(const access& of, std::uint32_t* data, refusal& no) {
  if (passes(of, false)) return memory.load(of, data, no);
  if (!memory.mapped(of, false, no)) return false;
  const std::lock_guard hold(cache->lock());
  // Lanes that load from one address get one value.
  std::uint64_t last = 0;
  alignas(8) std::uint32_t words[4] = {};
  bool have = false;
  each_lane(of, [&](unsigned lane) {
    if (!have || of.address[lane] != last) {
      std::ranges::fill(words, 0u);
      each_part(of.address[lane], of.bytes,
                [&](std::uint64_t at, const plain::window& w, unsigned offset, unsigned bytes) {
                  cache->read(at, bytes, w.where, w.how, reinterpret_cast<std::uint8_t*>(words) + offset, of_load(of));
                });
      last = of.address[lane];
      have = true;
    }
    for (unsigned i = 0; i < (of.bytes + 3) / 4; ++i) data[i * lanes + lane] = words[i];
  });
  return true;
}

bool l2_port::store(const access& of, const std::uint32_t* data, refusal& no) {
  if (passes(of, true)) return memory.store(of, data, no);
  if (!memory.mapped(of, true, no)) return false;
  const std::lock_guard hold(cache->lock());
  each_lane(of, [&](unsigned lane) {
    alignas(8) std::uint32_t words[4] = {};
    for (unsigned i = 0; i < (of.bytes + 3) / 4; ++i) words[i] = data[i * lanes + lane];
    each_part(
        of.address[lane], of.bytes, [&](std::uint64_t at, const plain::window& w, unsigned offset, unsigned bytes) {
          cache->write(at, bytes, w.where, w.how, reinterpret_cast<const std::uint8_t*>(words) + offset, of_store(of));
        });
  });
  return true;
}

// One of memory that the L2 keeps is done in it (LLVM AMDGPUUsage, as above); another one, and one that others have to
// see, in memory, which is what fabric and PCIe atomics are.
bool l2_port::atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
                     std::uint32_t* old, refusal& no) {
  const plain::window* const w = cache && of.active ? memory.holds_all(of, true) : nullptr;
  // Lanes in several allocations: each by itself, or the L2's dirty bytes of one would not be seen.
  if (cache && w == nullptr && std::popcount(of.active) > 1) {
    if (!memory.aligned(of, no) || !memory.mapped(of, true, no)) return false;
    bool good = true;
    each_lane(of, [&](unsigned lane) {
      access one = of;
      one.active = std::uint64_t{1} << lane;
      good = good && atomic(one, op, data, compare, old, no);
    });
    return good;
  }
  const bool kept = w && cache->of(w->where, w->how) != l2_cache::keeping::nothing;
  if (!kept || cache->leaves(of_atomic(of))) {
    if (w && cache->keeps(w->where, w->how)) cache->flush_host_path();
    if (kept) {
      const std::lock_guard hold(cache->lock());
      each_lane(of, [&](unsigned lane) { cache->drop(of.address[lane] + w->shift); });
    }
    return memory.atomic(of, op, data, compare, old, no);
  }
  if (!memory.aligned(of, no)) return false;
  const std::lock_guard hold(cache->lock());
  const auto joined = [&](const std::uint32_t* from, unsigned lane) {
    if (!from) return std::uint64_t{0};
    return from[lane] | (of.bytes == 8 ? std::uint64_t{from[lanes + lane]} << 32 : 0);
  };
  const std::uint64_t shift = w->shift;
  const mapping::place where = w->where;
  const mapping::caching how = w->how;
  each_lane(of, [&](unsigned lane) {
    const std::uint64_t was =
        cache->change(of.address[lane] + shift, of.bytes, where, how, op, joined(data, lane), joined(compare, lane));
    if (!old) return;
    old[lane] = static_cast<std::uint32_t>(was);
    if (of.bytes == 8) old[lanes + lane] = static_cast<std::uint32_t>(was >> 32);
  });
  return true;
}

// The scalar cache is behind the L2, too.
bool l2_port::load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no) {
  if (!memory.load_scalar(address, dwords, data, no)) return false;
  if (!cache) return true;
  const std::uint64_t first = address & ~std::uint64_t{3};
  const plain::window* const w = memory.look(first);
  if (!w || !cache->keeps(w->where, w->how)) return true;
  const std::lock_guard hold(cache->lock());
  each_part(first, dwords * 4, [&](std::uint64_t at, const plain::window& in, unsigned offset, unsigned bytes) {
    cache->read(at, bytes, in.where, in.how, reinterpret_cast<std::uint8_t*>(data) + offset);
  });
  return true;
}

void l2_port::write_back() {
  memory.fence();
  if (cache) cache->write_back();
}

void l2_port::invalidate() {
  memory.fence();
  if (cache) cache->invalidate();
}

}  // namespace amdgpu
