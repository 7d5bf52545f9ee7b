// SPDX-License-Identifier: MIT
#include "ctx/shared_heap.hpp"

#include <iterator>

#include "base/error.hpp"
#include "ctx/engines.hpp"
#include "ctx/hello.hpp"
#include "ctx/peer_atomics.hpp"
#include "memory/mode.hpp"

namespace xio {
namespace {

constexpr std::uint64_t k_page = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

gpu::heap_kind kind_of_heap(const heap_options& o) {
  switch (o.heap_kind) {
    case option::heap_kind::host: return gpu::heap_kind::host;
    case option::heap_kind::managed: return gpu::heap_kind::managed;
    case option::heap_kind::uncached: return gpu::heap_kind::uncached;
    case option::heap_kind::fine: return gpu::heap_kind::fine;
    case option::heap_kind::device: break;
  }
  return gpu::heap_kind::device;
}

// Whether the symmetric heap lies where the memory mode wants it.
void check_heap_place(const heap_options& o) {
  memory::ability can{gpu::place::device, "XIO_HEAP_KIND=device makes the symmetric heap of GPU memory"};
  if (o.heap_kind == option::heap_kind::host)
    can = {gpu::place::shared, "XIO_HEAP_KIND=host makes the symmetric heap of host memory"};
  // There both are the same memory; managed memory moves.
  if (gpu::host_reads_device_memory() || o.heap_kind == option::heap_kind::managed) can.why_not = nullptr;
  memory::mode(o.memory_mode).place(memory::part::data, "the symmetric heap", can);
}

}  // namespace

shared_heap::shared_heap(const options& o, membership& members) : members_(members) {
  const topology::placement& place = members_.place();
  const int me = members_.me(), n = members_.size();
  heap_offer mine{};
  members_.agree().each(call::init, [&] {
    gpu::init(gpu::device_for(place.local_rank, o.gpu_device == option::gpu_device::current));
    check_heap_place(o);
    const bool shared = std::count(place.together.begin(), place.together.end(), true) > 1;
    heap_ = gpu::make_heap(k_head_bytes + whole_pages(o.heap_size), kind_of_heap(o),
                           shared && o.peer_access != option::peer_access::off);
    mine = make_offer(*heap_);
  });
  const auto all = bootstrap::allgather_value(members_.channel(), mine);
  check_offers(all);
  gpus_ = gpus_of(all, place.together);
  members_.agree().each(call::init, [&] {
    check_sharing(o, gpus_, gpu::device_count());
    peers_ = std::make_unique<direct::peers>(n, me, *heap_);
    base_alignment_ = mine.alignment;
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
      base_alignment_ = std::min(base_alignment_, all[pe].alignment);
      if (place.together[pe] && static_cast<int>(pe) != me)
        map_peer(o, static_cast<int>(pe), {all[pe].handle, all[pe].handle + all[pe].handle_bytes});
    }
    allocator_.emplace(k_head_bytes, heap_->size());
  });
  const auto& my_gpu = gpus_[static_cast<std::size_t>(me)];
  const bool one_gpu = std::all_of(gpus_.begin(), gpus_.end(), [&](const std::string& id) { return id == my_gpu; });
  if (direct_obstacle_.empty())
    direct_obstacle_ = gpu::heap_atomics_obstacle(kind_of_heap(o), n == 1 || (!my_gpu.empty() && one_gpu));
  direct_obstacle_ = find_direct_obstacle(members_.agree(), members_.channel(), o, gpus_, place, direct_obstacle_);
}

// A heap that cannot be mapped is an obstacle of the direct route, and no error: another route may serve.
void shared_heap::map_peer(const heap_options& o, int pe, const std::vector<std::byte>& handle) {
  if (o.peer_access == option::peer_access::off) {
    direct_obstacle_ = "XIO_PEER_ACCESS=off keeps PEs from mapping each other's heaps";
    return;
  }
  try {
    peers_->map(pe, handle, heap_->size(), kind_of_heap(o));
  } catch (const error& e) {
    direct_obstacle_ = fmt::format("{}; XIO_PEER_ACCESS=off does not try it", e.what());
  }
}

std::optional<std::uint64_t> shared_heap::offset_of(const void* p) const {
  const auto at = reinterpret_cast<std::uint64_t>(p) - reinterpret_cast<std::uint64_t>(heap_->data());
  if (at >= heap_->size()) return {};
  return at;
}

std::uint64_t shared_heap::take(const allocation& wanted) {
  if (!std::has_single_bit(wanted.alignment))
    fail(XIO_ERR_ARG, "{}: alignment {} is no power of two; use one such as 256", wanted.function, wanted.alignment);
  if (wanted.alignment > base_alignment_)
    fail(XIO_ERR_ARG, "{}: alignment {} is more than the heap's own, {}; use at most that", wanted.function,
         wanted.alignment, base_alignment_);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(wanted.count, wanted.bytes, &bytes))
    fail(XIO_ERR_ARG, "{}: {} times {} bytes are more than an address can count; ask for less", wanted.function,
         wanted.count, wanted.bytes);
  if (bytes == 0) return 0;
  const auto offset = allocator_->allocate(bytes, wanted.alignment);
  if (!offset)
    fail(XIO_ERR_NO_MEMORY,
         "{}: no {} bytes (alignment {}) in the symmetric heap: {} of {} are free, {} in one piece{}; raise "
         "XIO_HEAP_SIZE or free something",
         wanted.function, bytes, wanted.alignment, allocator_->free_bytes(), heap_->size() - k_head_bytes,
         allocator_->largest_free(),
         allocator_->holds_any() ? ", at whose end lies memory of teams that some PEs have made" : "");
  return *offset;
}

void shared_heap::give_back(std::uint64_t offset) {
  if (offset != 0) allocator_->release(offset);
}

std::uint64_t shared_heap::digest_without(std::uint64_t offset) const {
  memory::allocator later = *allocator_;
  if (offset != 0) later.release(offset);
  return later.digest();
}

void shared_heap::allocate(const allocation& wanted, void** out) {
  std::uint64_t offset = 0;
  if (out != nullptr) *out = nullptr;
  try {
    members_.agree().vote(
        call::malloc,
        [&] {
          if (out == nullptr) fail(XIO_ERR_ARG, "{}: out is null; give a pointer", wanted.function);
          offset = take(wanted);
          const std::size_t bytes = wanted.count * wanted.bytes;
          // Before the vote: a PE that returns may put into this block at once.
          if (wanted.zero && offset != 0) gpu::fill_zero(heap_->data() + offset, bytes);
          return arguments{
              {"the size", bytes}, {"the alignment", wanted.alignment}, {"the offset in the heap", offset}};
        },
        XIO_ERR_NOT_SYMMETRIC);
  } catch (...) {
    give_back(offset);
    throw;
  }
  members_.note({call::malloc, offset, wanted.count * wanted.bytes, wanted.alignment}, [&] { return digest(); });
  if (offset != 0) *out = heap_->data() + offset;
}

std::uint64_t shared_heap::live_block_at(const void* block, const char* function) const {
  const auto offset = offset_of(block);
  if (!offset || *offset < k_head_bytes)
    fail(XIO_ERR_NOT_SYMMETRIC, "{}: {} is not in the symmetric heap; give what xio_malloc returned", function, block);
  const auto found = allocator_->find(*offset);
  if (!found)
    fail(XIO_ERR_STATE, "{}: {} (offset {}) is no allocated block: freed already, or never returned by xio_malloc",
         function, block, *offset);
  if (found->offset != *offset)
    fail(XIO_ERR_ARG, "{}: {} is {} bytes into a block; give the block's start", function, block,
         *offset - found->offset);
  return *offset;
}

void shared_heap::release(void* block) {
  std::uint64_t offset = 0;
  members_.agree().vote(
      call::free,
      [&] {
        if (block != nullptr) offset = live_block_at(block, "xio_free");
        return arguments{{"the block's offset in the heap (0 is null)", offset}};
      },
      XIO_ERR_NOT_SYMMETRIC);
  give_back(offset);
  members_.note({call::free, offset}, [&] { return digest(); });
}

// The blocks go one by one, each by a vote of its own: a PE that dies in the middle leaves one call that some have
// done.
void shared_heap::release_dropped(std::vector<void*>& blocks) {
  const auto together = members_.one_call();
  std::vector<std::uint64_t> mine;
  members_.agree().each(call::free_dropped, [&] {
    for (const void* block : blocks) mine.push_back(live_block_at(block, "xio_free_dropped"));
  });
  std::sort(mine.begin(), mine.end());
  mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  // More than that wait for the next call.
  constexpr std::size_t k_most = 4096;
  if (mine.size() > k_most) mine.resize(k_most);
  bootstrap::channel& c = members_.channel();
  const auto all = bootstrap::allgather_unequal(c, std::as_bytes(std::span(mine)), k_most * sizeof mine[0]);
  for (int pe = 0; pe < members_.size(); ++pe) {
    const auto given = all[static_cast<std::size_t>(pe)];
    std::vector<std::uint64_t> theirs(given.size() / sizeof mine[0]), both;
    std::memcpy(theirs.data(), given.data(), theirs.size() * sizeof mine[0]);
    std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(both));
    mine = std::move(both);
  }
  for (const std::uint64_t offset : mine) {
    void* block = heap_->data() + offset;
    release(block);
    std::erase(blocks, block);
  }
}

void* shared_heap::reach(const void* symmetric, int pe) const {
  const auto offset = offset_of(symmetric);
  if (!offset || *offset < k_head_bytes || pe < 0 || pe >= members_.size() || members_.states().is_excluded(pe))
    return nullptr;
  unsigned char* base = peers_->base(pe);
  return base == nullptr ? nullptr : base + *offset;
}

}  // namespace xio
