// SPDX-License-Identifier: MIT
// The bulk copy unit of NVIDIA GPUs from sm_90 on. Part of cuda.hpp.
#if defined(XIO_ON_CUDA) && !defined(XIO_DEVICE_BULK_HPP)
#define XIO_DEVICE_BULK_HPP
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define XIO_HAS_BULK_COPY 1

namespace xio::dev {

// PTX ISA 8.0: mbarrier, cp.async.bulk, and the order of the async proxy's accesses and ordinary ones.
namespace bulk {

constexpr u32 k_stages = 8;
constexpr u32 k_most_piece = 16384;
// Loads from a peer are far away; loads from own memory only keep stores waiting behind them.
constexpr u32 k_ahead_of_peer = k_stages - 1, k_ahead_of_own = 3;
constexpr u32 k_head_bytes = 128;  // the stages' barriers

XIO_DEVICE u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

XIO_DEVICE void barrier_init(u64* b) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(b)));
}
XIO_DEVICE void barrier_end(u64* b) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(b))); }

// Makes ordinary stores visible to the copy unit. In the other direction the unit's completion is enough (PTX ISA,
// "Async Proxy").
XIO_DEVICE void between_proxies() { asm volatile("fence.proxy.async;" ::: "memory"); }

XIO_DEVICE void load_into(void* stage, const void* from, u32 bytes, u64* b) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(stage)),
               "l"(from), "r"(bytes), "r"(shared_address(b))
               : "memory");
}

XIO_DEVICE bool loaded(u64* b, u32 parity) {
  u32 done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(shared_address(b)), "r"(parity)
               : "memory");
  return done != 0;
}

XIO_DEVICE void store_from(void* to, const void* stage, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(stage)),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// At most one store still reads its stage; none is left at all.
XIO_DEVICE void stores_but_one_have_read() { asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); }
XIO_DEVICE void stores_are_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Pieces go round the stages: loads run ahead of the stores by all stages but two.
struct pipe {
  unsigned char* to;
  const unsigned char* from;
  u64 bytes;
  unsigned char* stages;
  u64* barriers;
  u32 piece;
  u32 ahead;  // pieces loaded before the first is stored: one unit does both, in the order in which it is asked

  XIO_DEVICE u64 count() const { return (bytes + piece - 1) / piece; }
  XIO_DEVICE u32 size(u64 i) const { return static_cast<u32>(bytes - i * piece < piece ? bytes - i * piece : piece); }
  XIO_DEVICE unsigned char* stage(u64 i) const { return stages + i % k_stages * piece; }
  XIO_DEVICE void load(u64 i) const { load_into(stage(i), from + i * piece, size(i), barriers + i % k_stages); }

  // Returns false if the unit does not complete within the deadline that `deadline` makes.
  template <class Deadline>
  XIO_DEVICE bool run(const Deadline& deadline) const {
    const u64 n = count();
    u64 asked = 0;
    for (; asked < n && asked < ahead; ++asked) load(asked);
    for (u64 i = 0; i < n; ++i) {
      if (!loaded(barriers + i % k_stages, static_cast<u32>(i / k_stages & 1))) {
        const auto end = deadline();
        while (!loaded(barriers + i % k_stages, static_cast<u32>(i / k_stages & 1)))
          if (end.passed()) return false;
      }
      store_from(to + i * piece, stage(i), size(i));
      if (asked >= n) continue;
      stores_but_one_have_read();
      load(asked++);
    }
    stores_are_done();
    return true;
  }
};

// The shared memory that a copy goes through.
struct stage_memory {
  unsigned char* at;
  u64 bytes;
};

// The 16-byte aligned middle of a copy whose sides agree modulo 16; the caller does the ends.
template <class Deadline>
XIO_DEVICE xio_status_t copy(const Deadline& deadline, unsigned char* to, const unsigned char* from, u64 bytes,
                             const stage_memory& stage, u32 ahead) {
  auto* barriers = reinterpret_cast<u64*>(stage.at);
  const u32 piece = static_cast<u32>((stage.bytes - k_head_bytes) / k_stages / 128 * 128);
  const pipe p{to, from, bytes, stage.at + k_head_bytes, barriers, piece < k_most_piece ? piece : k_most_piece, ahead};
  const u32 used = p.count() < k_stages ? static_cast<u32>(p.count()) : k_stages;
  for (u32 i = 0; i < used; ++i) barrier_init(barriers + i);
  between_proxies();
  // Once the unit is known to be done, ordinary loads, and fences behind this, see what it wrote.
  const bool done = p.run(deadline);
  // If the unit has not completed, its barriers stay as they are: it may still use them.
  for (u32 i = 0; done && i < used; ++i) barrier_end(barriers + i);
  return done ? XIO_OK : XIO_ERR_TIMEOUT;
}

}  // namespace bulk

}  // namespace xio::dev

#endif
#endif
