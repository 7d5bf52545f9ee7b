// SPDX-License-Identifier: MIT
// A queue of the software SDMA engine that a test fills dword by dword and polls by hand: no thread, so every run is
// the same.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "model/sdma/engine.hpp"
#include "model/sdma/fault.hpp"

namespace xio::model::sdma {

inline const payload_agent& plain_memory() {
  static const payload_agent agent{
      [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
      [](void* p, unsigned width, atomic_op op, std::uint64_t operand, std::uint64_t compare) {
        std::uint64_t old = 0;
        std::memcpy(&old, p, width);
        std::uint64_t next = old;
        if (op == atomic_op::swap) next = operand;
        if (op == atomic_op::add) next = old + operand;
        if (op == atomic_op::compare_swap && old == compare) next = operand;
        std::memcpy(p, &next, width);
        return old;
      },
      [] {}};
  return agent;
}

inline std::uint32_t lo(const void* p) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)); }
inline std::uint32_t hi(const void* p) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p) >> 32); }

struct hand_queue {
  engine& device;
  std::vector<std::uint32_t> ring;
  alignas(64) std::uint64_t wptr;
  alignas(64) std::uint64_t doorbell;
  std::uint32_t report[2] = {};
  std::uint64_t written;  // bytes
  std::uint32_t number;

  hand_queue(engine& e, std::uint32_t dwords, std::uint64_t start = 0)
      : device(e), ring(dwords, 0xffffffff), wptr(start), doorbell(start), written(start) {
    number = device.add_queue(queue_memory{ring.data(), dwords * 4u, &wptr, &doorbell, report, start});
  }
  ~hand_queue() { device.remove_queue(number); }
  hand_queue(const hand_queue&) = delete;
  hand_queue& operator=(const hand_queue&) = delete;

  void write(const std::vector<std::uint32_t>& dwords) {
    for (const std::uint32_t dw : dwords) {
      ring[(written / 4) % ring.size()] = dw;
      written += 4;
    }
  }
  void ring_doorbell() { wptr = doorbell = written; }
  void run() {
    for (int i = 0; i < 100000 && device.poll(); ++i) {
    }
  }
  void submit(const std::vector<std::uint32_t>& dwords) {
    write(dwords);
    ring_doorbell();
    run();
  }
  fault stopped_by() const { return static_cast<fault>(report[0]); }
  std::uint32_t stopped_at() const { return report[1]; }
};

// Memory with guards around it, and two words that fences write.
struct arena {
  static constexpr std::size_t k_bytes = 4096;
  static constexpr std::size_t k_guard = 64;
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

}  // namespace xio::model::sdma
