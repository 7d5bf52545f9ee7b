// SPDX-License-Identifier: MIT
// What releases, and what reads a peer's memory: a kernel for each, with nothing else in it. Only compiled, never run.
// The first word of a kernel's name says what orders.awk asks of it.
#include <xio/hip.h>
#include <xio/xio_device.hpp>

using namespace xio::dev;

// Nothing is under way when this returns, which is where compilers have dropped the wait of a release.
XIO_DEVICE void wait_for(const u64* flag) {
  while (load<scope::agent, order::relaxed>(flag) == 0) {
  }
}

extern "C" {

// --- release_SCOPE_: every store and atomic comes after a release of its own -----------------------------------------

#define RELEASES(where, how)                                                                    \
  __global__ void release_##where##_exchange_##how(u64* p, const u64* flag, u64 v) {            \
    wait_for(flag);                                                                             \
    exchange<scope::where, order::how>(p, v);                                                   \
  }                                                                                             \
  __global__ void release_##where##_compare_##how(u64* p, const u64* flag, u64 v, u64 wanted) { \
    wait_for(flag);                                                                             \
    compare_exchange<scope::where, order::how>(p, wanted, v);                                   \
  }                                                                                             \
  __global__ void release_##where##_add_##how(u64* p, const u64* flag, u64 v) {                 \
    wait_for(flag);                                                                             \
    add<scope::where, order::how>(p, v);                                                        \
    add<scope::where, order::how>(p + 1, v);                                                    \
  }                                                                                             \
  __global__ void release_##where##_bits_##how(u32* p, const u64* flag, u32 v) {                \
    wait_for(flag);                                                                             \
    fetch_and<scope::where, order::how>(p, v);                                                  \
    fetch_or<scope::where, order::how>(p, v);                                                   \
    fetch_xor<scope::where, order::how>(p, v);                                                  \
  }                                                                                             \
  __global__ void release_##where##_fence_##how(u64* p, const u64* flag, u64 v) {               \
    wait_for(flag);                                                                             \
    fence<scope::where, order::how>();                                                          \
    store<scope::where, order::relaxed>(p, v);                                                  \
  }
RELEASES(system, release)
RELEASES(system, acq_rel)
RELEASES(system, seq_cst)
RELEASES(agent, release)
RELEASES(agent, acq_rel)
RELEASES(agent, seq_cst)

#define RELEASING_STORES(where, how)                                              \
  __global__ void release_##where##_store_##how(u64* p, const u64* flag, u64 v) { \
    wait_for(flag);                                                               \
    store<scope::where, order::how>(p, v);                                        \
    store<scope::where, order::how>(p + 1, v);                                    \
  }
RELEASING_STORES(system, release)
RELEASING_STORES(system, seq_cst)
RELEASING_STORES(agent, release)
RELEASING_STORES(agent, seq_cst)

__global__ void release_system_signal_set(u64* p, const u64* flag, u64 v) {
  wait_for(flag);
  direct::signal<order::release>(p, v, XIO_SIGNAL_SET);
}
__global__ void release_system_signal_add(u64* p, const u64* flag, u64 v) {
  wait_for(flag);
  direct::signal<order::release>(p, v, XIO_SIGNAL_ADD);
}
__global__ void release_system_flag(u64* p, const u64* flag, u64 v) {
  wait_for(flag);
  fence_before_stores<scope::system>();
  store<scope::system, direct::k_flag_store>(p, v);
}
__global__ void release_system_hdp(hdp_view h, const u64* flag, u64 number) {
  wait_for(flag);
  hdp_publish(h, number);
}
__global__ void release_system_bell_mlx5(ring_view r, u64 from, u64 to) { mlx5_codec::announce(r, from, to); }
__global__ void release_system_bell_bnxt(ring_view r, u64 from, u64 to) { bnxt_codec::announce(r, from, to); }
__global__ void release_system_bell_ionic(ring_view r, u64 from, u64 to) { ionic_codec::announce(r, from, to); }
__global__ void release_system_bell_ernic(ring_view r, u64 from, u64 to) { ernic_codec::announce(r, from, to); }
__global__ void release_system_bell_sdma(ring_view r, u64 from, u64 to) { sdma_codec::announce(r, from, to); }
__global__ void release_system_bell_nvme(ring_view r, u64 from, u64 to) { nvme_codec::announce(r, from, to); }

// --- post_: likewise behind a slot, which is what is stored 16 bytes at a time ---------------------------------------

#define POSTS(codec)                                                                   \
  __global__ void post_##codec(ring_view r, void* slot, entry64 e, u64 from, u64 to) { \
    store_entry(slot, e);                                                              \
    codec##_codec::announce(r, from, to);                                              \
  }
POSTS(mlx5)
POSTS(bnxt)
POSTS(ionic)
POSTS(ernic)
POSTS(sdma)
POSTS(nvme)
__global__ void post_signal_set(void* at, entry64 e, u64* p, u64 v) {
  store_entry(at, e);
  direct::signal<order::release>(p, v, XIO_SIGNAL_SET);
}
__global__ void post_signal_add(void* at, entry64 e, u64* p, u64 v) {
  store_entry(at, e);
  direct::signal<order::release>(p, v, XIO_SIGNAL_ADD);
}

// --- fetch_: every load from memory goes past the caches that do not see a peer's writes -----------------------------

__global__ void fetch_thread(void* to, const void* from, u64 n) { direct::fetch(thread_group::here(), to, from, n); }
__global__ void fetch_wave(void* to, const void* from, u64 n) { direct::fetch(wave_group::here(), to, from, n); }
__global__ void fetch_wg(void* to, const void* from, u64 n) { direct::fetch(workgroup_group::here(), to, from, n); }
__global__ void fetch_ends(ring_view r, sdma::chain op, u64* left) {
  sdma::trim(r, op);
  *left = op.bytes;
}
__global__ void fetch_scalar(u64* to, const unsigned char* from, u32 n) { *to = direct::load_bits(from, n); }
__global__ void fetch_scalar_if(u64* to, const u64* from, bool good) { *to = direct::load_if(good, from); }
__global__ void fetch_atomically(u64* to, u64* from) { *to = direct::atomic<amo::fetch, u64>(from, 0, 0); }
__global__ void fetch_packet(u64* to, const u64* from, u32 words) { load_packet_words<false>(from, 0, words, to); }

}  // extern "C"
