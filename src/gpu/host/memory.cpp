// SPDX-License-Identifier: MIT
// memory.hpp on the host platform: the "GPU" is this process, its memory is the process's, and the caches of CPUs are
// coherent. Kinds differ in what the kernel is asked for.
#include "gpu/memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "gpu/host_pages.hpp"
#include "gpu/memory_file.hpp"
#include "memory/pages.hpp"

namespace xio::gpu {
namespace {

constexpr const char* k_shared_memory = "shared memory";

unsigned char* bytes_at(void* p) { return static_cast<unsigned char*>(p); }

// Takes addresses for b; gives them back unless kept.
class reservation {
 public:
  reservation(block& b, std::size_t alignment, const char* what) : b_(b) {
    b_.range = b_.base = reserve_pages(b_.bytes, alignment, what);
    b_.whole = b_.bytes;
  }
  // With a page before and after it whose touch is a fault.
  reservation(block& b, std::size_t alignment) : b_(b) {
    const std::size_t page = page_size();
    if (b.bytes > SIZE_MAX - 2 * alignment)
      fail(XIO_ERR_NO_MEMORY, "{} bytes are more than an address can count; ask for less", b.bytes);
    // The guard before it is as large as the alignment, so that the block behind it is aligned.
    b_.whole = alignment + b_.bytes + page;
    b_.range = reserve_pages(b_.whole, alignment, k_shared_memory);
    b_.base = bytes_at(b_.range) + alignment;
  }
  reservation& operator=(reservation&&) = delete;
  ~reservation() {
    if (!kept_) give_back(b_);
  }
  void keep() { kept_ = true; }

 private:
  block& b_;
  bool kept_ = false;
};

// The pages are there, but may be swapped out later.
void populate(const block& b) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(b.base, b.bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (std::size_t at = 0; at < b.bytes; at += page_size())
    *static_cast<volatile unsigned char*>(bytes_at(b.base) + at) = 0;
}

void lock_pages(const block& b) {
  // Not mlock(), which does nothing under sanitizers: memory that is called pinned has to be.
  if (syscall(SYS_mlock, b.base, b.bytes) == 0) return;
  fail(XIO_ERR_NO_MEMORY, "{} bytes cannot be locked in memory: {}; raise the limit of locked memory (ulimit -l)",
       b.bytes, errno_text(errno));
}

// Create, map, give access: the addresses are there, the memory is a file without a name.
void map_memory(block& b) {
  b.file = make_memory_file("xio-vmem", b.bytes, k_shared_memory, "ask for less").release();
  if (mmap(b.base, b.bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, b.file, 0) == MAP_FAILED ||
      mprotect(b.base, b.bytes, PROT_READ | PROT_WRITE) != 0)
    fail(XIO_ERR_NO_MEMORY, "mapping {} bytes of {}: {}; ask for less", b.bytes, k_shared_memory, errno_text(errno));
}

}  // namespace

std::string lacks(xio_mem_kind_t kind) {
  if (kind != XIO_MEM_DEVICE_UNCACHED) return "";
  return "the host platform has no uncached memory, CPU threads read all of it through their coherent caches; use "
         "DEVICE_FINE_GRAINED";
}

block take(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment) {
  const std::string why = lacks(kind);
  if (!why.empty()) fail(XIO_ERR_UNSUPPORTED, "{}", why);
  const auto whole = memory::align_up(bytes, page_size());
  if (!whole) fail(XIO_ERR_NO_MEMORY, "{} bytes are more than an address can count; ask for less", bytes);
  block b;
  b.kind = kind;
  b.bytes = *whole;
  if (kind == XIO_MEM_DEVICE_VMEM) {
    reservation addresses(b, alignment);
    map_memory(b);
    addresses.keep();
    return b;
  }
  const bool host = kind < XIO_MEM_DEVICE_FINE_GRAINED;
  const char* what = host ? "host memory" : "device memory";
  reservation addresses(b, alignment, what);
  fill_pages(b.base, b.bytes, what);
  if (kind == XIO_MEM_HOST_PINNED)
    lock_pages(b);
  else if (host && kind != XIO_MEM_HOST_PLAIN)
    populate(b);
  addresses.keep();
  return b;
}

void give_back(const block& b) noexcept {
  if (b.range != nullptr) unmap_pages(b.range, b.whole);
  if (b.file >= 0) close(b.file);
}

location locate(const void*) { return {}; }
std::string bus_id_of(int) { return ""; }
std::string identity_of(int) { return ""; }
bool has_device_memory() { return false; }

int export_dmabuf(const block* from, void* base, std::size_t bytes, bool pcie, std::uint64_t* offset) {
  if (from == nullptr || from->kind != XIO_MEM_DEVICE_VMEM)
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of the memory at {}: on the host platform only DEVICE_VMEM has a file to make it of; allocate that "
         "kind",
         base);
  if (pcie)
    fail(XIO_ERR_UNSUPPORTED, "a dma-buf of the memory at {} through PCIe: host memory has no BAR; leave the flag out",
         base);
  const auto span =
      memory::pages_of(static_cast<std::uint64_t>(bytes_at(base) - bytes_at(from->base)), bytes, page_size());
  if (!span) fail(XIO_ERR_ARG, "a dma-buf of {} bytes at {} leaves the address space; check the length", bytes, base);
  unique_fd made = make_udmabuf(from->file, span->first, span->bytes, base);
  *offset = span->offset;
  return made.release();
}

}  // namespace xio::gpu
