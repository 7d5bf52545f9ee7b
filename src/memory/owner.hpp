// SPDX-License-Identifier: MIT
// Owns one piece of memory of a kind and gives it back the way it was taken.
#pragma once
#include <utility>

#include "gpu/memory.hpp"

namespace xio::memory {

class owner {
 public:
  owner() = default;
  // Zeroed. function is the call that wants it, for sentences. alignment 0: a page.
  owner(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment, const char* function);
  owner(owner&& other) noexcept : block_(std::exchange(other.block_, {})) {}
  owner& operator=(owner&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~owner();

  const gpu::block& block() const { return block_; }
  void* data() const { return block_.base; }
  std::size_t size() const { return block_.bytes; }

 private:
  gpu::block block_;
};

}  // namespace xio::memory
