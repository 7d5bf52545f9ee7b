// SPDX-License-Identifier: MIT
#include "gpu/host/stacks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "gpu/host/strand.hpp"
#if defined(XIO_FIBERS_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace xio::host_exec {
namespace {
constexpr std::size_t k_per_slab = 64;
// A guard of one page is stepped over by an array of a few pages, into the stack below. Address space is all that more
// of them take. Odd, so that the tops of stacks do not all fall into the same few sets of a TLB.
constexpr std::size_t k_guard_pages = 17;

std::size_t page() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
std::size_t guard() { return k_guard_pages * page(); }
}  // namespace

stack_slabs::stack_slabs(std::size_t stack_bytes)
    : stack_bytes_((stack_bytes + page() - 1) / page() * page()), stride_(stack_bytes_ + guard()), used_(k_per_slab) {}

stack_slabs::~stack_slabs() {
  for (const guarded_stacks& s : slabs_) {
    forget(s);
#if defined(XIO_FIBERS_ASAN)
    // AddressSanitizer would apply what it knows of the frames of resting fibers to the next mapping at this place.
    __asan_unpoison_memory_region(s.base, s.bytes);
#endif
    munmap(s.base, s.bytes);
  }
}

void stack_slabs::map_slab() {
  const std::size_t bytes = stride_ * k_per_slab;
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED)
    fail(XIO_ERR_NO_MEMORY, "{} stacks of {} bytes for GPU threads: {}; lower XIO_HOST_STACK or XIO_HOST_CUS",
         k_per_slab, stack_bytes_, errno_text(errno));
  const guarded_stacks made{static_cast<unsigned char*>(base), bytes, stride_, guard()};
  // Nobody gets a stack of a slab that lacks a guard.
  if (const int why = make_guards(made.base); why != 0) {
    munmap(base, bytes);
    fail(XIO_ERR_NO_MEMORY, "guard pages of GPU threads' stacks: {}; raise vm.max_map_count or lower XIO_HOST_CUS",
         errno_text(why));
  }
  slabs_.push_back(made);
  watch(made);
  used_ = 0;
}

// 0, or what mprotect said.
int stack_slabs::make_guards(unsigned char* base) const {
  for (std::size_t i = 0; i < k_per_slab; ++i)
    if (mprotect(base + i * stride_, guard(), PROT_NONE) != 0) return errno;
  return 0;
}

stack stack_slabs::make() {
  if (used_ == k_per_slab) map_slab();
  unsigned char* bottom = slabs_.back().base + used_ * stride_ + guard();
  // Tops at one page offset would all fall into the same cache sets: spread them over the page.
  const std::size_t colour = used_ * 7 % k_per_slab * 64 % page();
  ++used_;
  return stack{bottom, stack_bytes_ - colour};
}

}  // namespace xio::host_exec
