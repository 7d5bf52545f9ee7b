// SPDX-License-Identifier: MIT
#include "amdgpu/memory/plain.hpp"

#include <atomic>
#include <cstring>

#include "amdgpu/memory/read_modify_write.hpp"

namespace amdgpu {
namespace {

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

std::uint64_t joined(const std::uint32_t* data, unsigned lane) {
  return data[lane] | static_cast<std::uint64_t>(data[lanes + lane]) << 32;
}

// A dword and a naturally aligned qword are read and written at once: other devices and processes look at them.
// Inlined, so that the width is a constant in each lane's code.
[[gnu::always_inline]] inline void load_lane(std::uint64_t address, unsigned bytes, std::uint32_t* out) {
  if (bytes == 1) {
    out[0] = __atomic_load_n(at<std::uint8_t>(address), __ATOMIC_RELAXED);
  } else if (bytes == 2 && address % 2 == 0) {
    out[0] = __atomic_load_n(at<std::uint16_t>(address), __ATOMIC_RELAXED);
  } else if (bytes % 8 == 0 && address % 8 == 0) {
    for (unsigned i = 0; i < bytes / 8; ++i) {
      const std::uint64_t q = __atomic_load_n(at<std::uint64_t>(address + 8 * i), __ATOMIC_RELAXED);
      out[2 * i * lanes] = static_cast<std::uint32_t>(q);
      out[(2 * i + 1) * lanes] = static_cast<std::uint32_t>(q >> 32);
    }
  } else if (bytes % 4 == 0 && address % 4 == 0) {
    for (unsigned i = 0; i < bytes / 4; ++i)
      out[i * lanes] = __atomic_load_n(at<std::uint32_t>(address + 4 * i), __ATOMIC_RELAXED);
  } else {
    std::uint32_t words[4] = {0, 0, 0, 0};
    std::memcpy(words, at<void>(address), bytes);
    for (unsigned i = 0; i < (bytes + 3) / 4; ++i) out[i * lanes] = words[i];
  }
}

[[gnu::always_inline]] inline void store_lane(std::uint64_t address, unsigned bytes, const std::uint32_t* in) {
  if (bytes == 1) {
    __atomic_store_n(at<std::uint8_t>(address), static_cast<std::uint8_t>(in[0]), __ATOMIC_RELAXED);
  } else if (bytes == 2 && address % 2 == 0) {
    __atomic_store_n(at<std::uint16_t>(address), static_cast<std::uint16_t>(in[0]), __ATOMIC_RELAXED);
  } else if (bytes % 8 == 0 && address % 8 == 0) {
    for (unsigned i = 0; i < bytes / 8; ++i)
      __atomic_store_n(at<std::uint64_t>(address + 8 * i), joined(in + 2 * i * lanes, 0), __ATOMIC_RELAXED);
  } else if (bytes % 4 == 0 && address % 4 == 0) {
    for (unsigned i = 0; i < bytes / 4; ++i)
      __atomic_store_n(at<std::uint32_t>(address + 4 * i), in[i * lanes], __ATOMIC_RELAXED);
  } else {
    std::uint32_t words[4];
    for (unsigned i = 0; i < (bytes + 3) / 4; ++i) words[i] = in[i * lanes];
    std::memcpy(at<void>(address), words, bytes);
  }
}

template <class T>
T modify(std::uint64_t address, atomic_op op, T value, T compare) {
  T* const where = at<T>(address);
  switch (op) {
    case atomic_op::swap: return __atomic_exchange_n(where, value, __ATOMIC_SEQ_CST);
    case atomic_op::add: return __atomic_fetch_add(where, value, __ATOMIC_SEQ_CST);
    case atomic_op::sub: return __atomic_fetch_sub(where, value, __ATOMIC_SEQ_CST);
    case atomic_op::cmpswap:
      __atomic_compare_exchange_n(where, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return compare;
    default: break;
  }
  T old = __atomic_load_n(where, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(where, &old, changed<T>(op, old, value, compare), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace

const plain::window* plain::look(std::uint64_t address) {
  const std::uint64_t now = space.generation();
  if (now != seen) {
    known = {};
    seen = now;
  }
  for (const window& w : known)
    if (address - w.base < w.end - w.base) return &w;
  const mapping* found = space.find(address);
  if (!found || address - found->base >= found->bytes) return nullptr;
  window& w = known[next++ % known.size()];
  w = {found->base,  found->base + found->bytes, found->host - found->base, found->writable, found->where, found->how,
       found->device};
  has_device |= found->device != nullptr;
  return &w;
}

// Where the process sees an access of one lane. It may go over into a mapping that follows here and there.
bool plain::translate(std::uint64_t address, unsigned bytes, bool write, std::uint64_t& host, refusal& no) {
  no = {-1, address, write, false, "no memory is mapped there"};
  const window* w = look(address);
  if (!w) return false;
  const std::uint64_t shift = w->shift;
  host = address + shift;
  while (true) {
    if (write && !w->writable) {
      no.why = "the memory there is mapped for reading only";
      return false;
    }
    if (w->end - address >= bytes) return true;
    const std::uint64_t behind = w->end;
    w = look(behind);
    if (!w || w->shift != shift) {
      no.address = behind;
      if (w) no.why = "it goes over into memory that lies elsewhere in the process, which is not interpreted";
      return false;
    }
  }
}

// The mapping that holds what all lanes access, as nearly every access is.
const plain::window* plain::holds_all(const access& of, bool write) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  if (of.active == ~std::uint64_t{0}) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      low = std::min(low, of.address[lane]);
      high = std::max(high, of.address[lane]);
    }
  } else {
    for (const unsigned lane : active_lanes(of.active)) {
      const std::uint64_t address = of.address[lane];
      low = std::min(low, address);
      high = std::max(high, address);
    }
  }
  const window* w = look(low);
  return w && high < w->end && w->end - high >= of.bytes && (!write || w->writable) ? w : nullptr;
}

// Calls one(lane, host address) for every active lane. False: a lane was refused; those before it are done.
template <class One>
bool plain::each_lane(const access& of, bool write, refusal& no, One one) {
  if (const window* w = holds_all(of, write)) {
    const std::uint64_t shift = w->shift;
    if (of.active == ~std::uint64_t{0}) {
      for (unsigned lane = 0; lane < lanes; ++lane) one(lane, of.address[lane] + shift);
    } else {
      for (const unsigned lane : active_lanes(of.active)) {
        one(lane, of.address[lane] + shift);
      }
    }
    return true;
  }
  for (const unsigned lane : active_lanes(of.active)) {
    std::uint64_t host = 0;
    if (!translate(of.address[lane], of.bytes, write, host, no)) {
      no.lane = static_cast<int>(lane);
      return false;
    }
    one(lane, host);
  }
  return true;
}

namespace {

// Calls f with the access's width as a constant.
template <class F>
bool by_width(unsigned bytes, F f) {
  switch (bytes) {
    case 1: return f(std::integral_constant<unsigned, 1>{});
    case 2: return f(std::integral_constant<unsigned, 2>{});
    case 4: return f(std::integral_constant<unsigned, 4>{});
    case 8: return f(std::integral_constant<unsigned, 8>{});
    case 12: return f(std::integral_constant<unsigned, 12>{});
    default: return f(std::integral_constant<unsigned, 16>{});
  }
}

}  // namespace

namespace {

bool one_address(const access& of) {
  const unsigned first = static_cast<unsigned>(std::countr_zero(of.active));
  const unsigned last = lanes - 1 - static_cast<unsigned>(std::countl_zero(of.active));
  if (first == last || of.address[first] != of.address[last]) return false;
  for (const unsigned lane : active_lanes(of.active))
    if (of.address[lane] != of.address[first]) return false;
  return true;
}

}  // namespace

// Lanes that load from one address get one value, though somebody writes there meanwhile: LLVM counts such a load as
// uniform (AMDGPUTargetTransformInfo, isSourceOfDivergence), and a wave leaves a loop by what one lane of it has seen.
bool plain::load(const access& of, std::uint32_t* data, refusal& no) {
  if (!of.active) return true;
  if (one_address(of)) {
    access one = of;
    one.active &= -one.active;
    if (!load(one, data, no)) return false;
    const auto from = static_cast<unsigned>(std::countr_zero(of.active));
    for (unsigned i = 0; i < (of.bytes + 3) / 4; ++i)
      for (const unsigned lane : active_lanes(of.active)) data[i * lanes + lane] = data[i * lanes + from];
    return true;
  }
  return by_width(of.bytes, [&](auto bytes) {
    return each_lane(of, false, no, [&](unsigned lane, std::uint64_t at) { load_lane(at, bytes, data + lane); });
  });
}

void plain::tell_device(const access& of, const std::uint32_t* data) {
  const window* w = holds_all(of, true);
  if (w == nullptr || w->device == nullptr) return;
  for (const unsigned lane : active_lanes(of.active)) {
    w->device->written(of.address[lane], of.bytes == 8 ? joined(data, lane) : data[lane]);
  }
}

// Lanes that store to one address make one write, of one of their values.
bool plain::store(const access& of, const std::uint32_t* data, refusal& no) {
  if (!of.active) return true;
  stored = true;
  access one = of;
  if (one_address(of)) one.active = std::bit_floor(of.active);
  const bool good = by_width(of.bytes, [&](auto bytes) {
    return each_lane(one, true, no, [&](unsigned lane, std::uint64_t at) { store_lane(at, bytes, data + lane); });
  });
  if (good && has_device) tell_device(one, data);
  return good;
}

bool plain::aligned(const access& of, refusal& no) {
  for (const unsigned lane : active_lanes(of.active)) {
    if (of.address[lane] % of.bytes) {
      no = {static_cast<int>(lane), of.address[lane], true, true, "an atomic's address is not a multiple of its size"};
      return false;
    }
  }
  return true;
}

bool plain::atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
                   std::uint32_t* old, refusal& no) {
  if (!aligned(of, no)) return false;
  if (!of.active) return true;
  return each_lane(of, true, no, [&](unsigned lane, std::uint64_t at) {
    if (of.bytes == 4) {
      const std::uint32_t was = modify<std::uint32_t>(at, op, data[lane], compare ? compare[lane] : 0);
      if (old) old[lane] = was;
    } else {
      const std::uint64_t was = modify<std::uint64_t>(at, op, joined(data, lane), compare ? joined(compare, lane) : 0);
      if (old) {
        old[lane] = static_cast<std::uint32_t>(was);
        old[lanes + lane] = static_cast<std::uint32_t>(was >> 32);
      }
    }
  });
}

bool plain::load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no) {
  std::uint64_t host = 0;
  // MI200 ISA 7.2: the two low bits of an address count as zero.
  if (!translate(address & ~std::uint64_t{3}, dwords * 4, false, host, no)) return false;
  unsigned i = 0;
  if (host % 8 == 0)
    for (; i + 1 < dwords; i += 2) {
      const std::uint64_t q = __atomic_load_n(at<std::uint64_t>(host + 4 * i), __ATOMIC_RELAXED);
      data[i] = static_cast<std::uint32_t>(q);
      data[i + 1] = static_cast<std::uint32_t>(q >> 32);
    }
  for (; i < dwords; ++i) data[i] = __atomic_load_n(at<std::uint32_t>(host + 4 * i), __ATOMIC_RELAXED);
  return true;
}

const std::uint32_t* plain::code(std::uint64_t address, std::uint64_t& left) {
  const window* w = address % 4 ? nullptr : look(address);
  if (!w) return nullptr;
  left = w->end - address;
  return at<const std::uint32_t>(address + w->shift);
}

// The host may let a later load pass an earlier store. A wave that waited for its stores must not see that.
void plain::fence() {
  if (stored) std::atomic_thread_fence(std::memory_order_seq_cst);
  stored = false;
}

bool plain::wait_vector(unsigned, std::uint64_t, refusal&) {
  fence();
  return true;
}

bool plain::mapped(const access& of, bool write, refusal& no) {
  return !of.active || each_lane(of, write, no, [](unsigned, std::uint64_t) {});
}

void plain::writeback(unsigned, std::uint64_t) { fence(); }
void plain::invalidate() { fence(); }
void plain::invalidate_vector_cache() { fence(); }

}  // namespace amdgpu
