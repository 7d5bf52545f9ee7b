// SPDX-License-Identifier: MIT
// What lies behind a compute unit's L1: its GPU's L2 where there is one, and memory.
#pragma once
#include "amdgpu/memory/l2_cache.hpp"
#include "amdgpu/memory/plain.hpp"

namespace amdgpu {

class l2_port {
 public:
  // Without an L2 each access is memory's.
  l2_port(const address_space& of, l2_cache* shared) : memory(of), cache(shared) {}

  bool load(const access& of, std::uint32_t* data, refusal& no);
  bool store(const access& of, const std::uint32_t* data, refusal& no);
  bool atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
              std::uint32_t* old, refusal& no);
  bool load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no);
  const std::uint32_t* code(std::uint64_t address, std::uint64_t& left) { return memory.code(address, left); }
  bool mapped(const access& of, bool write, refusal& no) { return memory.mapped(of, write, no); }
  void fence() { memory.fence(); }
  void write_back();
  void invalidate();

 private:
  bool passes(const access& of, bool write);
  template <class Part>
  void each_part(std::uint64_t address, unsigned bytes, Part part);
  template <class Part>
  void each_lane(const access& of, Part part);

  plain memory;
  l2_cache* const cache;
};

}  // namespace amdgpu
