// SPDX-License-Identifier: MIT
// A queue of the software SDMA engine that a test fills dword by dword and polls by hand: no thread, so every run is
// the same. Packets are written by hand from the layouts that xio/wire/sdma.hpp names, not by XIO's encoder.
#pragma once
#include "../gtest.hpp"
#include "base/host_atomic.hpp"
#include "model/sdma/engine.hpp"
#include "model/sdma/fault.hpp"

namespace xio::model::sdma {

using dwords = std::vector<std::uint32_t>;

constexpr std::initializer_list<wire::generation> k_generations = {
    wire::gen_9_0, wire::gen_9_0a, wire::gen_9_4, wire::gen_10_1, wire::gen_10_3, wire::gen_11, wire::gen_12};

inline const payload_agent& plain_memory() {
  static const payload_agent agent{[](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
                                   &change_host_word, [] {}};
  return agent;
}

inline std::uint32_t lo(const void* p) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)); }
inline std::uint32_t hi(const void* p) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p) >> 32); }
inline std::uint32_t low_half(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
inline std::uint32_t high_half(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

inline dwords copy(void* dst, const void* src, std::uint32_t bytes) {
  return {0x00000001, bytes - 1, 0, lo(src), hi(src), lo(dst), hi(dst)};
}
inline dwords fence(void* at, std::uint32_t value) { return {0x00000005, lo(at), hi(at), value}; }
inline dwords atomic(std::uint32_t code, void* at, std::uint64_t operand, std::uint64_t compare = 0) {
  return {(code << 25) | 10u, lo(at), hi(at), low_half(operand), high_half(operand), low_half(compare),
          high_half(compare), 0};
}
// function in [30:28] and bit 31: in memory. interval [15:0], retries [27:16].
inline dwords poll(std::uint32_t function, const void* at, std::uint32_t reference, std::uint32_t mask = ~0u,
                   std::uint32_t interval_and_retries = 0x0fff0001) {
  return {0x80000008u | (function << 28), lo(at), hi(at), reference, mask, interval_and_retries};
}
inline dwords with(dwords d, std::size_t at, std::uint32_t bits) {
  d[at] ^= bits;
  return d;
}

// A sub-window packet; everything in elements.
struct corner {
  const void* base;
  std::uint32_t x, y, z, pitch, slice;
};
inline dwords tile(wire::generation g, std::uint32_t log2, const corner& src, const corner& dst, std::uint32_t width,
                   std::uint32_t height, std::uint32_t depth = 1) {
  const std::uint32_t at = g == wire::gen_12 ? 16 : 13;
  return {0x00000401u | (log2 << 29),
          lo(src.base),
          hi(src.base),
          src.x | (src.y << 16),
          src.z | ((src.pitch - 1) << at),
          src.slice - 1,
          lo(dst.base),
          hi(dst.base),
          dst.x | (dst.y << 16),
          dst.z | ((dst.pitch - 1) << at),
          dst.slice - 1,
          (width - 1) | ((height - 1) << 16),
          depth - 1};
}

struct hand_queue {
  engine& device;
  std::vector<std::uint32_t> ring;
  alignas(64) std::uint64_t wptr;
  alignas(64) std::uint64_t doorbell;
  std::uint32_t report[2] = {};
  std::uint64_t written;  // bytes
  std::uint32_t number;

  hand_queue(engine& e, std::uint32_t ring_dwords, std::uint64_t start = 0)
      : device(e), ring(ring_dwords, 0xffffffff), wptr(start), doorbell(start), written(start) {
    number = device.add_queue(queue_memory{ring.data(), ring_dwords * 4u, &wptr, &doorbell, report, start});
  }
  ~hand_queue() { device.remove_queue(number); }
  hand_queue& operator=(hand_queue&&) = delete;

  void write(const dwords& packet) {
    for (const std::uint32_t dw : packet) {
      ring[(written / 4) % ring.size()] = dw;
      written += 4;
    }
  }
  // Atomic, for engines that a thread polls.
  void ring_doorbell() {
    __atomic_store_n(&wptr, written, __ATOMIC_RELEASE);
    __atomic_store_n(&doorbell, written, __ATOMIC_RELEASE);
  }
  void run() {
    for (int i = 0; i < 100000 && device.poll(); ++i) {
    }
  }
  // All of them by one doorbell.
  template <class... More>
  void submit(const dwords& packet, const More&... more) {
    write(packet);
    (write(more), ...);
    ring_doorbell();
    run();
  }
  // One NOP to the ring's end if the packet would go over it.
  void submit_whole(const dwords& packet) {
    const std::size_t left = ring.size() - (written / 4) % ring.size();
    if (packet.size() > left)
      write(dwords(1, static_cast<std::uint32_t>(left - 1) << 16)), write(dwords(left - 1, ~0u));
    submit(packet);
  }
  fault stopped_by() const { return static_cast<fault>(__atomic_load_n(&report[0], __ATOMIC_ACQUIRE)); }
  std::uint32_t stopped_at() const { return report[1]; }
};

// Memory with guards around it, and words that are host memory.
struct arena {
  static constexpr std::size_t k_bytes = 4096;
  alignas(64) unsigned char src[k_bytes];
  alignas(64) unsigned char dst[k_bytes];
  alignas(64) std::uint64_t words[8] = {};
  alignas(64) unsigned char stranger[64] = {};  // not mapped

  explicit arena(engine& e) {
    for (std::size_t i = 0; i < k_bytes; ++i) src[i] = static_cast<unsigned char>(i * 7 + 1);
    std::memset(dst, 0xcd, sizeof dst);
    EXPECT_TRUE(e.map(src, sizeof src, memory_kind::payload));
    EXPECT_TRUE(e.map(dst, sizeof dst, memory_kind::payload));
    EXPECT_TRUE(e.map(words, sizeof words, memory_kind::host));
  }
};

// An engine, memory and one queue.
struct bench {
  engine device;
  arena memory{device};
  hand_queue queue;

  explicit bench(wire::generation g, std::uint32_t ring_dwords = 256, std::uint64_t seed = 1, std::uint32_t granule = 1)
      : device(plain_memory(), g, seed, granule), queue(device, ring_dwords) {}
};

}  // namespace xio::model::sdma
