// SPDX-License-Identifier: MIT
// What is mapped to one GPU. Looked at within turns, changed between them (gate.hpp).
#pragma once
#include <atomic>
#include <map>

#include "amdgpu/memory/address_space.hpp"

namespace amdgpu {

class page_table final : public address_space {
 public:
  // False if it is empty, wraps, or overlaps a mapping.
  bool add(const mapping& m);
  // False if nothing begins there.
  bool remove(std::uint64_t base);

  const mapping* find(std::uint64_t address) const override;
  std::uint64_t generation() const override { return generation_.load(std::memory_order_acquire); }

  // Where the process sees [address, address + bytes), or null if that is not in one mapping.
  void* host(std::uint64_t address, std::uint64_t bytes) const;
  template <class T>
  T* at(std::uint64_t address) const {
    return address % alignof(T) != 0 ? nullptr : static_cast<T*>(host(address, sizeof(T)));
  }

 private:
  std::map<std::uint64_t, mapping> mappings_;  // by base
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace amdgpu
