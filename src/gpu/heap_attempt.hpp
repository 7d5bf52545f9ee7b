// SPDX-License-Identifier: MIT
// Taking the symmetric heap in GPU memory: of the kind that is wanted, in a way that peers can map it, and what comes
// next where the runtime refuses one or the other. Over the calls of a runtime, so that tests put another one there.
#pragma once
#include <cstddef>

#include "base/error.hpp"
#include "gpu/memory_choice.hpp"

namespace xio::gpu {

// How other processes map a heap.
enum class heap_sharing : unsigned {
  none,    // not at all; PEs reach it by RDMA
  ipc,     // the runtime's IPC handle
  dmabuf,  // the dma-buf of the allocation, see lent_file.hpp
};

struct heap_wish {
  std::size_t bytes;
  caching kind;
  bool forced;      // that kind or an error; else fine-grained memory is the next choice
  bool shared;      // other processes will map it
  std::string why;  // kind was chosen, for people
};

struct taken_heap {
  void* data = nullptr;
  caching kind = caching::fine;
  heap_sharing sharing = heap_sharing::none;
  std::string lost;            // what was wanted and is not so, and why; empty: all is as wanted
  std::string why_not_shared;  // of sharing none
};

// Runtime has
//   int allocate(void** out, std::size_t bytes, caching kind);   its error, 0 for none
//   bool out_of_memory(int e);
//   std::string text(int e);
//   void release(void* p);
//   std::string share_ipc(void* p);      "" or why not
//   std::string share_dmabuf(void* p);   likewise; asked where the first refuses
// Throws XIO_ERR_NO_MEMORY with no_memory's words, and XIO_ERR_UNSUPPORTED for what is forced and refused.
template <class Runtime>
taken_heap take_heap(Runtime& r, const heap_wish& wish, const std::string& no_memory) {
  std::string lost;
  for (caching kind = wish.kind;; kind = caching::fine) {
    const bool last = wish.forced || kind == caching::fine;
    taken_heap t;
    t.kind = kind;
    if (const int e = r.allocate(&t.data, wish.bytes, kind); e != 0) {
      if (r.out_of_memory(e)) fail(XIO_ERR_NO_MEMORY, "{} ({})", no_memory, r.text(e));
      if (last && wish.forced)
        fail(
            XIO_ERR_UNSUPPORTED,
            "XIO_HEAP_KIND={}: the runtime refuses such memory ({}); set XIO_HEAP_KIND=device, or install a newer ROCm",
            name_of(kind), r.text(e));
      if (last) fail(XIO_ERR_IO, "{}: {}{}", no_memory, r.text(e), lost.empty() ? "" : "; " + lost);
      lost = fmt::format("the heap is fine-grained instead of {}: the runtime refuses such memory ({}); {}",
                         name_of(kind), r.text(e), wish.why);
      continue;
    }
    if (!wish.shared) {
      t.why_not_shared = "it was alone when it started";
      t.lost = std::move(lost);
      return t;
    }
    std::string ipc, file;
    try {
      if (ipc = r.share_ipc(t.data); ipc.empty()) {
        t.sharing = heap_sharing::ipc;
      } else if (file = r.share_dmabuf(t.data); file.empty()) {
        t.sharing = heap_sharing::dmabuf;
      }
    } catch (...) {
      r.release(t.data);
      throw;
    }
    if (t.sharing != heap_sharing::none || last) {
      if (t.sharing == heap_sharing::none) {
        t.why_not_shared = fmt::format("IPC handle: {}; dma-buf: {}", ipc, file);
        lost += fmt::format("{}peers cannot map this heap: no IPC handle ({}) and no dma-buf ({})",
                            lost.empty() ? "" : "; ", ipc, file);
      }
      t.lost = std::move(lost);
      return t;
    }
    r.release(t.data);
    lost = fmt::format(
        "the heap is fine-grained instead of {}: peers could not map it, by IPC handle ({}) or by dma-buf "
        "({}); XIO_HEAP_KIND={} keeps it so, and PEs go by RDMA; {}",
        name_of(kind), ipc, file, name_of(kind), wish.why);
  }
}

}  // namespace xio::gpu
