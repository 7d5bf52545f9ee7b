// SPDX-License-Identifier: MIT
#include "memory/blocks.hpp"

#include <iterator>

#include "base/error.hpp"
#include "memory/pages.hpp"

namespace xio::memory {
blocks& blocks::all() {
  // Programs may free from destructors of their own statics.
  static auto* one = new blocks;
  return *one;
}

void* blocks::allocate(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment, const char* function) {
  owner memory(kind, bytes, alignment, function);
  void* start = memory.data();
  const std::lock_guard hold(lock_);
  rows_.emplace(number(start), row{std::move(memory)});
  return start;
}

blocks::by_address::const_iterator blocks::holding(const void* address) const {
  auto after = rows_.upper_bound(number(address));
  if (after == rows_.begin()) return rows_.end();
  const auto found = std::prev(after);
  return !found->second.going && number(address) - found->first < found->second.memory.size() ? found : rows_.end();
}

blocks::by_address::const_iterator blocks::starting(const void* start, const char* function) const {
  const auto found = holding(start);
  if (found == rows_.end())
    fail(XIO_ERR_STATE, "{}: {} is no block: freed already, or never returned by xio_mem_alloc", function, start);
  if (found->first != number(start))
    fail(XIO_ERR_ARG, "{}: {} is {} bytes into a block; give the block's start", function, start,
         number(start) - found->first);
  return found;
}

void blocks::release(void* start, const char* function) {
  gpu::block b;
  {
    const std::lock_guard hold(lock_);
    row& going = rows_.find(starting(start, function)->first)->second;
    going.going = true;
    b = going.memory.block();
  }
  {
    const std::lock_guard hold(watch_lock_);
    for (watcher* w : watchers_) w->forget(b);
  }
  // The row goes before the memory: the system may hand out its addresses again at once.
  owner last;
  const std::lock_guard hold(lock_);
  const auto found = rows_.find(number(start));
  last = std::move(found->second.memory);
  rows_.erase(found);
}

std::optional<gpu::block> blocks::find(const void* address) const {
  const std::lock_guard hold(lock_);
  const auto found = holding(address);
  if (found == rows_.end()) return {};
  return found->second.memory.block();
}

std::optional<gpu::block> blocks::around(const void* base, std::size_t bytes, const char* function) const {
  const std::lock_guard hold(lock_);
  const std::uint64_t first = number(base);
  auto found = rows_.upper_bound(first);
  if (found != rows_.begin() && first - std::prev(found)->first < std::prev(found)->second.memory.size()) --found;
  if (found == rows_.end() || (found->first > first && found->first - first >= bytes)) return {};
  if (found->second.going)
    fail(XIO_ERR_STATE, "{}: the block at {} is being freed", function, found->second.memory.data());
  const gpu::block& b = found->second.memory.block();
  if (found->first > first || bytes > b.bytes || first - found->first > b.bytes - bytes)
    fail(XIO_ERR_ARG, "{}: {} bytes at {} leave the block of {} bytes at {}; stay inside one block", function, bytes,
         base, b.bytes, b.base);
  return b;
}

gpu::block blocks::at(const void* start, const char* function) const {
  const std::lock_guard hold(lock_);
  return starting(start, function)->second.memory.block();
}

void blocks::watch(watcher& w) {
  const std::lock_guard hold(watch_lock_);
  watchers_.push_back(&w);
}

void blocks::unwatch(watcher& w) {
  const std::lock_guard hold(watch_lock_);
  std::erase(watchers_, &w);
}

}  // namespace xio::memory
