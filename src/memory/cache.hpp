// SPDX-License-Identifier: MIT
// What engines know of local memory besides the heap, kept for a while after nobody has it registered any more:
// registering is slow, and programs register the same buffers over and over.
//
// Kept is memory of xio_mem_alloc only, whole blocks of it, since the library knows when that goes. Other memory may be
// unmapped and mapped again without a word, and an engine would go on reading and writing the old pages.
#pragma once
#include <list>

#include "gpu/memory.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::memory {

// The engines: they fill in keys and bus address of a region.
class engine_side {
 public:
  virtual void reach(dev::region_view& known) = 0;  // every engine; all or nothing
  virtual void unreach(dev::region_view& known) noexcept = 0;

 protected:
  ~engine_side() = default;
};

class registration_cache {
 public:
  struct span {
    dev::region_view known{};
    bool block = false;           // a whole block, to be kept
    std::uint32_t uses = 0;       // registered buffers in it
    std::uint64_t last_used = 0;  // when uses became 0, in steps of a counter
  };

  // keep: spans without a use, at most.
  registration_cache(engine_side& engines, std::size_t keep) : engines_(engines), keep_(keep) {}

  // Makes [base, base + bytes) known. block is the one that it is in, null for other memory. Throws what reach throws.
  span& acquire(std::uint64_t base, std::uint64_t bytes, const gpu::block* block);
  void release(span& s);
  // The memory goes: spans that touch it are no longer kept. None of them is in use.
  void forget(std::uint64_t base, std::uint64_t bytes);

  // Every span, in use or not.
  template <class Step>
  void each(Step&& step) {
    for (span& s : spans_) step(s);
  }
  xio_mem_cache_stats_t stats() const;

 private:
  using place = std::list<span>::iterator;

  void drop(place at);
  std::size_t shrink(std::size_t most);  // to that many without a use; how many went

  engine_side& engines_;
  const std::size_t keep_;
  std::list<span> spans_;
  std::uint64_t now_ = 0, hits_ = 0, misses_ = 0, evictions_ = 0, forgotten_ = 0;
};

}  // namespace xio::memory
