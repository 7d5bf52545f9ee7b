// SPDX-License-Identifier: MIT
// What the HIP calls of this process have given out and not taken back: handles and memory. A call with anything else
// is an error and touches nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace xio::host_exec {

// Handles are numbers that come once, and not addresses: one that is stale never becomes another object's.
template <class Handle, class Object>
class handles {
 public:
  explicit handles(std::uintptr_t first) : next_(first) {}

  Handle add(std::shared_ptr<Object> object) {
    const std::unique_lock hold(guard_);
    const std::uintptr_t number = next_;
    all_.emplace(number, std::move(object));
    next_ += k_step;
    return reinterpret_cast<Handle>(number);
  }
  // Null: not a live handle.
  std::shared_ptr<Object> find(Handle h) const {
    const std::shared_lock hold(guard_);
    const auto at = all_.find(reinterpret_cast<std::uintptr_t>(h));
    return at == all_.end() ? nullptr : at->second;
  }
  // The same, and it is one no more.
  std::shared_ptr<Object> take(Handle h) {
    const std::unique_lock hold(guard_);
    const auto at = all_.find(reinterpret_cast<std::uintptr_t>(h));
    if (at == all_.end()) return nullptr;
    auto object = std::move(at->second);
    all_.erase(at);
    return object;
  }

 private:
  static constexpr std::uintptr_t k_step = 16;  // as addresses of objects would have

  mutable std::shared_mutex guard_;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> all_;
  std::uintptr_t next_;
};

enum class hip_memory { device, host };

// May throw std::bad_alloc, and then p is not noted.
void note_memory(void* p, std::size_t bytes, hip_memory kind);
// False where no live block of that kind begins at p. If one did, it is noted no more, and the caller frees it.
bool forget_memory(void* p, hip_memory kind);
// False where p lies in a block that ends before p + bytes. Memory in no block may be any memory of the process.
bool inside_memory(const void* p, std::size_t bytes);

}  // namespace xio::host_exec
