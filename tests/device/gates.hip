// SPDX-License-Identifier: MIT
// Device code as a GPU's compiler sees it: one kernel per thing to look at. Only compiled, never run: device_code.sh
// and device_code_clang.sh compile it for each GPU and read the assembly, compilers.sh shows it to every compiler that
// is here. Kernels that release or read from peers are in orders.hip, too.
#include <xio/hip.h>
#include <xio/memory.h>
#include <xio/xio_device.hpp>

using namespace xio::dev;

extern "C" {

// --- Entries: 64 bytes leave in four 16-byte stores ----------------------------------------------------------------

__global__ void gate_entry(void* slot, entry64 entry) { store_entry(slot, entry); }
__global__ void gate_entry_mlx5(ring_view r, u64 ticket, rdma::work w) { mlx5_codec::encode(r, ticket, 0, true, w); }
__global__ void gate_entry_sdma(ring_view r, u64 ticket, u64 dst, u64 src, u32 bytes) {
  sdma::fill_copy(r, ticket, true, dst, src, bytes);
}
__global__ void gate_entry_nvme(ring_view r, u64 ticket, transfer t, piece p) {
  write_command(r, ticket, command_of(t, p));
}

// --- The API: every op compiles ------------------------------------------------------------------------------------

__global__ void gate_put(xio_ctx_t c, void* to, const void* from, size_t n, int pe) { xio_put(c, to, from, n, pe); }
__global__ void gate_get(xio_ctx_t c, void* to, const void* from, size_t n, int pe) { xio_get(c, to, from, n, pe); }
#if defined(XIO_PLATFORM_HIP)
// In a kernel that must leave registers to others: what copies from peers names registers itself.
__attribute__((amdgpu_flat_work_group_size(1, 256), amdgpu_waves_per_eu(8))) __global__ void gate_get_bounded(
    xio_ctx_t c, void* to, const void* from, size_t n, int pe) {
  xio_get(c, to, from, n, pe);
}
#endif
__global__ void gate_put_nbi(xio_ctx_t c, void* to, const void* from, size_t n, int pe, xio_req_t* q) {
  *q = xio_put_nbi(c, to, from, n, pe);
}
__global__ void gate_put_wave(xio_ctx_t c, void* to, const void* from, size_t n, int pe) {
  xio_put_wave(c, to, from, n, pe);
}
__global__ void gate_put_wg(xio_ctx_t c, void* to, const void* from, size_t n, int pe) {
  xio_put_wg(c, to, from, n, pe);
}
__global__ void gate_p(xio_ctx_t c, long* to, long value, int pe) { xio_p(c, to, value, pe); }
__global__ void gate_g(xio_ctx_t c, const long* from, long* value, int pe) { *value = xio_g(c, from, pe); }
__global__ void gate_put_signal(xio_ctx_t c, void* to, const void* from, size_t n, uint64_t* signal, int pe) {
  xio_put_signal(c, to, from, n, signal, 1, XIO_SIGNAL_ADD, pe);
}
__global__ void gate_fetch_add(xio_ctx_t c, long* word, long* old, int pe) {
  *old = xio_atomic_fetch_add(c, word, 1L, pe);
}
__global__ void gate_read(xio_ctx_t c, void* b, xio_storage_t s, uint64_t at, uint64_t n, xio_req_t* q) {
  *q = xio_read_nbi(c, b, s, at, n);
}
__global__ void gate_write(xio_ctx_t c, const void* b, xio_storage_t s, uint64_t at, uint64_t n, int* status) {
  *status = xio_write(c, b, s, at, n);
}
__global__ void gate_signal_wait(xio_ctx_t c, uint64_t* signal, int* status) {
  *status = xio_signal_wait_until(c, signal, XIO_CMP_GE, 1);
}
__global__ void gate_fence(xio_ctx_t c) { xio_fence(c); }
__global__ void gate_quiet(xio_ctx_t c, int* status) { *status = xio_quiet(c); }
__global__ void gate_barrier(xio_ctx_t c, int* status) { *status = xio_barrier_all(c); }
__global__ void gate_sync_wg(xio_ctx_t c, int* status) { *status = xio_sync_all_wg(c); }
__global__ void gate_get_wave(xio_ctx_t c, void* to, const void* from, size_t n, int pe) {
  xio_get_wave(c, to, from, n, pe);
}
__global__ void gate_iget(xio_ctx_t c, float* to, const float* from, size_t n, int pe) {
  xio_iget(c, to, from, 3, 5, n, pe);
}
__global__ void gate_put_imm(xio_ctx_t c, void* to, const void* from, size_t n, uint32_t* seen, int pe) {
  xio_put_imm(c, to, from, n, 1, pe);
  xio_imm_wait(c, seen, pe);
}
__global__ void gate_packet(xio_ctx_t c, uint64_t* to, uint32_t* from, size_t n, int pe) {
  xio_put_packet(c, to, from, n, 1, pe);
  xio_wait_packet(c, from, to, n, 1);
}
__global__ void gate_put_counter(xio_ctx_t c, void* to, const void* from, size_t n, uint64_t* counter, int pe) {
  xio_put_counter(c, to, from, n, counter, pe);
}
__global__ void gate_sdma_put_signal(xio_sdma_queue_t q, void* to, const void* from, size_t n, uint64_t* word) {
  xio_sdma_wait(q, xio_sdma_put_signal(q, to, from, n, word, 1, XIO_SIGNAL_ADD));
}

}  // extern "C"

// --- Arguments in each other's place: such calls do not compile -----------------------------------------------------

template <class... A>
concept puts_signal = requires(A... a) {
  xio_put_signal(xio_ctx_t{}, nullptr, nullptr, 8, a...);
};
template <class... A>
concept signals = requires(A... a) {
  xio_signal_op(xio_ctx_t{}, a...);
};
template <class... A>
concept signals_by_queue = requires(A... a) {
  xio_sdma_signal(xio_sdma_queue_t{}, a...);
};
template <class... A>
concept waits = requires(A... a) {
  xio_wait_until(xio_ctx_t{}, a...);
};
template <class... A>
concept waits_for_any = requires(A... a) {
  xio_wait_until_any(xio_ctx_t{}, a...);
};
template <class... A>
concept waits_for_signal = requires(A... a) {
  xio_signal_wait_until(xio_ctx_t{}, a...);
};

using op = xio_signal_op_t;
using cmp = xio_cmp_t;
static_assert(puts_signal<u64*, u64, op, int>);
static_assert(!puts_signal<u64*, u64, int, op> && !puts_signal<u64*, op, u64, int> &&
              !puts_signal<u64*, u64, cmp, int>);
static_assert(signals<u64*, u64, op, int>);
static_assert(!signals<u64*, u64, int, op> && !signals<u64*, op, u64, int> && !signals<u64*, u64, int, int>);
static_assert(signals_by_queue<u64*, u64, op> && !signals_by_queue<u64*, op, u64>);
static_assert(waits<int*, cmp, int> && !waits<int*, int, cmp> && !waits<int*, op, int>);
static_assert(waits_for_any<int*, size_t, int*, cmp, int, size_t*>);
static_assert(!waits_for_any<int*, size_t, int*, int, cmp, size_t*>);
static_assert(waits_for_signal<u64*, cmp, u64> && !waits_for_signal<u64*, u64, cmp>);
