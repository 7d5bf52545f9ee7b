// SPDX-License-Identifier: MIT
// The host's calls of rocSHMEM: the world, memory and contexts. A set-up that fails ends the process with a sentence.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "xio/compat/rocshmem/impl/state.hpp"

namespace rocshmem::impl {

struct host_state {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  std::uint32_t* first_error = nullptr;
  bool printed = false;
  xio_status_t status = XIO_OK;  // the first error, once it was seen
  std::map<unsigned long long, xio_ctx_t> others;
};
inline host_state& host() {
  static host_state one;
  return one;
}

[[noreturn]] inline void end_with(const char* call, const char* why) {
  std::fprintf(stderr, "%s: %s\n", call, why);
  std::exit(1);
}
inline void must(xio_status_t status, const char* call) {
  if (status != XIO_OK) end_with(call, xio_last_error());
}
inline void must(hipError_t error, const char* call) {
  if (error != hipSuccess) end_with(call, hipGetErrorString(error));
}

// The variables of rocSHMEM that mean something here, as options; a variable of XIO's goes before them.
struct variables {
  static constexpr const char* k_names[][2] = {{"ROCSHMEM_HEAP_SIZE", "XIO_HEAP_SIZE"},
                                               {"ROCSHMEM_MAX_NUM_CONTEXTS", "XIO_CTX_POOL"}};
  xio_option_t options[2];
  std::size_t count = 0;
  variables() {
    for (const auto& name : k_names) {
      const char* value = std::getenv(name[0]);
      if (value != nullptr && std::getenv(name[1]) == nullptr) options[count++] = {name[1], value};
    }
  }
  void print() const {
    if (count == 0) return;
    std::fputs("rocshmem over XIO: taken from ROCSHMEM_* variables:", stderr);
    for (std::size_t i = 0; i < count; ++i) std::fprintf(stderr, " %s=%s", options[i].name, options[i].value);
    std::fputc('\n', stderr);
  }
};

// The first status that a call could not return, as a sentence, once.
inline xio_status_t look_at_errors() {
  host_state& h = host();
  if (h.status != XIO_OK || h.first_error == nullptr) return h.status;
  std::uint32_t found = 0;
  must(hipMemcpy(&found, h.first_error, sizeof found, hipMemcpyDeviceToHost), "rocshmem");
  h.status = static_cast<xio_status_t>(static_cast<int>(found));
  if (h.status == XIO_OK || h.printed) return h.status;
  h.printed = true;
  xio_error_info_t info{};
  xio_ctx_error(h.world, h.ctx, &info);
  std::fprintf(stderr,
               "rocshmem over XIO: a call of a kernel on PE %d failed first with %s; the last that failed: %s\n",
               xio_my_pe(h.world), xio_status_name(h.status), info.sentence);
  return h.status;
}

inline void start(xio_init_attr_t attr, const char* call) {
  host_state& h = host();
  if (h.world != nullptr) end_with(call, "rocshmem is initialised already; call rocshmem_finalize first");
  const variables from_environment;
  attr.options = from_environment.options;
  attr.option_count = from_environment.count;
  must(xio_init(&attr, &h.world), call);
  if (xio_my_pe(h.world) == 0) from_environment.print();
  xio_ctx_attr_t ctx_attr = XIO_CTX_ATTR_INIT;
  if (std::getenv("ROCSHMEM_MAX_NUM_CONTEXTS") == nullptr && std::getenv("XIO_CTX_POOL") == nullptr) ctx_attr.pool = 32;
  must(xio_ctx_create(h.world, &ctx_attr, &h.ctx), call);
  must(hipMalloc(&h.first_error, sizeof *h.first_error), call);
  must(hipMemset(h.first_error, 0, sizeof *h.first_error), call);
  h.printed = false;
  h.status = XIO_OK;
  for (const fill one : files()) must(one({h.ctx, h.first_error}), call);
}

static __global__ void barrier_all_kernel() { keep(xio_barrier_all(resolve())); }
// Completes what kernels of this process have posted on the default context, and waits for the other PEs.
inline void host_barrier_all() {
  hipLaunchKernelGGL(barrier_all_kernel, dim3(1), dim3(1), 0, nullptr);
  must(hipDeviceSynchronize(), "rocshmem_barrier_all");
  look_at_errors();
}
static __global__ void quiet_kernel() { keep(xio_quiet(resolve())); }
inline void host_quiet() {
  hipLaunchKernelGGL(quiet_kernel, dim3(1), dim3(1), 0, nullptr);
  must(hipDeviceSynchronize(), "rocshmem_quiet");
  look_at_errors();
}

}  // namespace rocshmem::impl

namespace rocshmem {

inline void rocshmem_init() { impl::start(XIO_INIT_ATTR_INIT, "rocshmem_init"); }
inline int rocshmem_init_thread(int, int* provided) {
  rocshmem_init();
  if (provided != nullptr) *provided = ROCSHMEM_THREAD_MULTIPLE;
  return ROCSHMEM_SUCCESS;
}
inline int rocshmem_get_uniqueid(rocshmem_uniqueid_t* id) {
  xio_unique_id_t made;
  if (id == nullptr || xio_get_unique_id(&made) != XIO_OK) return ROCSHMEM_ERROR;
  std::memcpy(id->data(), made.bytes, sizeof made);
  return ROCSHMEM_SUCCESS;
}
inline int rocshmem_set_attr_uniqueid_args(int rank, int nranks, rocshmem_uniqueid_t* id, rocshmem_init_attr_t* attr) {
  if (id == nullptr || attr == nullptr) return ROCSHMEM_ERROR;
  attr->rank = rank;
  attr->nranks = nranks;
  attr->uid = *id;
  return ROCSHMEM_SUCCESS;
}
inline int rocshmem_init_attr(unsigned flags, rocshmem_init_attr_t* attr) {
  xio_init_attr_t init = XIO_INIT_ATTR_INIT;
  xio_unique_id_t id;
  if (attr == nullptr) return ROCSHMEM_ERROR;
  if (flags == ROCSHMEM_INIT_WITH_UNIQUEID) {
    std::memcpy(id.bytes, attr->uid.data(), sizeof id);
    init.unique_id = &id;
    init.unique_rank = attr->rank;
    init.unique_size = attr->nranks;
  } else if (attr->mpi_comm != nullptr) {
#if defined(MPI_VERSION)
    init.mpi_comm = attr->mpi_comm;
    init.mpi_comm_bytes = static_cast<std::uint32_t>(sizeof(MPI_Comm));
#if defined(OPEN_MPI)
    init.mpi_kind = XIO_MPI_OPEN_MPI;
#else
    init.mpi_kind = XIO_MPI_MPICH;
#endif
#else
    impl::end_with("rocshmem_init_attr", "a communicator needs <mpi.h> to be included before <rocshmem/rocshmem.hpp>");
#endif
  }
  impl::start(init, "rocshmem_init_attr");
  return ROCSHMEM_SUCCESS;
}

// The first status that a call of a kernel could not return, and that the host has printed. XIO's own addition.
inline xio_status_t rocshmem_status() { return impl::look_at_errors(); }

inline void rocshmem_finalize() {
  impl::host_state& h = impl::host();
  if (h.world == nullptr) return;
  (void)hipDeviceSynchronize();
  impl::look_at_errors();
  const xio_status_t first = h.status;
  for (const impl::fill one : impl::files()) (void)one({xio_ctx_t{}, nullptr});
  (void)hipFree(h.first_error);
  const xio_status_t ended = xio_finalize(h.world);
  if (ended != XIO_OK) std::fprintf(stderr, "rocshmem_finalize: %s\n", xio_last_error());
  h = {};
  h.status = first != XIO_OK ? first : ended;
}

inline void* rocshmem_malloc(std::size_t bytes) {
  void* out = nullptr;
  if (xio_malloc(impl::host().world, bytes, &out) == XIO_OK) return out;
  std::fprintf(stderr, "rocshmem_malloc: %s\n", xio_last_error());
  return nullptr;
}
inline void* rocshmem_calloc(std::size_t count, std::size_t bytes) {
  void* out = nullptr;
  return xio_calloc(impl::host().world, count, bytes, &out) == XIO_OK ? out : nullptr;
}
inline void* rocshmem_align(std::size_t alignment, std::size_t bytes) {
  void* out = nullptr;
  return xio_align(impl::host().world, alignment, bytes, &out) == XIO_OK ? out : nullptr;
}
inline void rocshmem_free(void* block) { impl::must(xio_free(impl::host().world, block), "rocshmem_free"); }

inline int rocshmem_ctx_create(std::int64_t, rocshmem_ctx_t* ctx) {
  impl::host_state& h = impl::host();
  xio_ctx_t made{};
  *ctx = ROCSHMEM_CTX_INVALID;
  if (xio_ctx_create(h.world, nullptr, &made) != XIO_OK) return ROCSHMEM_ERROR;
  ctx->ctx_opaque = reinterpret_cast<unsigned long long>(made.view);
  ctx->team_opaque = 0;
  h.others[ctx->ctx_opaque] = made;
  return ROCSHMEM_SUCCESS;
}
inline void rocshmem_ctx_destroy(rocshmem_ctx_t ctx) {
  impl::host_state& h = impl::host();
  const auto found = h.others.find(ctx.ctx_opaque);
  if (found == h.others.end()) return;
  impl::must(xio_ctx_destroy(h.world, found->second), "rocshmem_ctx_destroy");
  h.others.erase(found);
}

inline int rocshmem_buffer_register(void* base, std::size_t bytes) {
  return xio_mem_register(impl::host().world, base, bytes) == XIO_OK ? ROCSHMEM_SUCCESS : ROCSHMEM_ERROR;
}
inline int rocshmem_buffer_unregister(void* base) {
  return xio_mem_unregister(impl::host().world, base) == XIO_OK ? ROCSHMEM_SUCCESS : ROCSHMEM_ERROR;
}
inline void rocshmem_dump_stats() {}
inline void rocshmem_reset_stats() {}

}  // namespace rocshmem
