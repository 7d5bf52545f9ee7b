// SPDX-License-Identifier: MIT
// The symmetric heap: this PE's memory, that of its machine's other PEs as far as it is mapped here, and which of its
// bytes are allocated.
#pragma once
#include "ctx/membership.hpp"
#include "memory/allocator.hpp"
#include "transport/direct/peers.hpp"

namespace xio {

struct allocation {
  const char* function;  // for sentences
  std::size_t count, bytes, alignment = 1;
  bool zero = false;  // the block reads as zeroes on every PE once any PE has it
};

class shared_heap {
 public:
  // Collective; takes this PE's GPU, too. Throws on every PE or on none. `members` must outlive the heap.
  shared_heap(const options& o, membership& members);
  shared_heap& operator=(shared_heap&&) = delete;

  // The program's blocks. Collective.
  void allocate(const allocation& wanted, void** out);
  void release(void* block);
  // Those of them that every PE names; they leave the list.
  void release_dropped(std::vector<void*>& blocks);
  // Null where pe's heap is not mapped, and for memory that is not the program's.
  void* reach(const void* symmetric, int pe) const;

  // Blocks of the library's own, by offset; 0 is none. Local: every PE does the same in the same order.
  std::uint64_t take(const allocation& wanted);
  void give_back(std::uint64_t offset);
  // For a block that only some PEs hold, at one offset: see memory::allocator. 0: none.
  std::uint64_t place_below(std::uint64_t end, std::uint64_t bytes) const {
    return allocator_->place_below(end, bytes).value_or(0);
  }
  void hold(std::uint64_t offset, std::uint64_t bytes) { allocator_->hold(offset, bytes); }
  void let_go(std::uint64_t offset) { allocator_->let_go(offset); }
  bool has_block(std::uint64_t offset) const { return allocator_->find(offset).has_value(); }
  std::uint64_t digest() const { return allocator_->digest(); }
  // As it will be once that block is given back; 0: none.
  std::uint64_t digest_without(std::uint64_t offset) const;

  gpu::heap& memory() { return *heap_; }
  unsigned char* data() const { return heap_->data(); }
  std::size_t size() const { return heap_->size(); }
  const direct::peers& peers() const { return *peers_; }
  const std::vector<std::string>& gpus() const { return gpus_; }
  // Why no PE of this world may change another's heap by loads and stores, or "".
  const std::string& direct_obstacle() const { return direct_obstacle_; }

  // Before the last barrier: a heap goes away only after every PE has let go of it.
  void unmap_peers() { peers_.reset(); }

 private:
  void map_peer(const heap_options& o, int pe, const std::vector<std::byte>& handle);
  std::optional<std::uint64_t> offset_of(const void* p) const;
  std::uint64_t live_block_at(const void* block, const char* function) const;

  membership& members_;
  std::vector<std::string> gpus_;     // bus ids by PE, see hello.hpp
  std::string direct_obstacle_;       // see peer_atomics.hpp
  std::uint64_t base_alignment_ = 0;  // what every PE's heap address is a multiple of
  // Later members use earlier ones; they go in reverse.
  std::unique_ptr<gpu::heap> heap_;
  std::unique_ptr<direct::peers> peers_;
  std::optional<memory::allocator> allocator_;
};

}  // namespace xio
