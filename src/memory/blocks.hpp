// SPDX-License-Identifier: MIT
// The blocks that xio_mem_alloc has given out, and who must know before one of them goes. Any thread may call.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "memory/owner.hpp"

namespace xio::memory {

// Keeps something that stands on blocks.
class watcher {
 public:
  virtual void forget(const gpu::block& b) noexcept = 0;  // on return nothing of it is used any more

 protected:
  ~watcher() = default;
};

class blocks {
 public:
  static blocks& all();  // of this process; never destroyed

  void* allocate(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment, const char* function);
  // Watchers first, then the memory. Throws XIO_ERR_STATE and XIO_ERR_ARG as xio_mem_free says.
  void release(void* start, const char* function);
  // The block that holds this address, unless it is being released.
  std::optional<gpu::block> find(const void* address) const;
  // The block that [base, base + bytes) is in; nothing if it touches none. Throws XIO_ERR_ARG if it leaves one,
  // XIO_ERR_STATE if that one is being released.
  std::optional<gpu::block> around(const void* base, std::size_t bytes, const char* function) const;
  // The block that starts there. Throws as release() does.
  gpu::block at(const void* start, const char* function) const;

  void watch(watcher& w);
  void unwatch(watcher& w);  // on return it is called no more

 private:
  struct row {
    owner memory;
    bool going = false;
  };
  using by_address = std::map<std::uint64_t, row>;

  by_address::const_iterator holding(const void* address) const;
  by_address::const_iterator starting(const void* start, const char* function) const;

  mutable std::mutex lock_;  // of rows_; nothing is called under it
  by_address rows_;
  std::mutex watch_lock_;  // of watchers_, held while they are called
  std::vector<watcher*> watchers_;
};

}  // namespace xio::memory
