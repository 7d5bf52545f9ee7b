// SPDX-License-Identifier: MIT
// The host's calls of rocSHMEM: the world, memory and contexts. A set-up that fails ends the process with a sentence.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>

#include "xio/compat/rocshmem/impl/failure.hpp"
#include "xio/compat/rocshmem/impl/state.hpp"
#include "xio/compat/rocshmem/impl/teams.hpp"

namespace rocshmem::impl {

struct host_state {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  std::uint32_t* first_error = nullptr;
  bool printed = false;
  xio_status_t status = XIO_OK;  // the first error, once it was seen
  std::map<unsigned long long, xio_ctx_t> others;
  team_table teams;
};
inline host_state& host() {
  static host_state one;
  return one;
}

// The variables of rocSHMEM that mean something here, as options; a variable of XIO's goes before them.
struct variables {
  static constexpr const char* k_names[][2] = {{"ROCSHMEM_HEAP_SIZE", "XIO_HEAP_SIZE"},
                                               {"ROCSHMEM_MAX_NUM_CONTEXTS", "XIO_CTX_POOL"}};
  xio_option_t options[3];
  std::size_t count = 0, taken = 0;
  variables() {
    for (const auto& name : k_names) {
      const char* value = std::getenv(name[0]);
      if (value != nullptr && std::getenv(name[1]) == nullptr) options[count++] = {name[1], value};
    }
    taken = count;
    // A team runs one collective at a time, as there.
    if (std::getenv("XIO_TEAM_CHANNELS") == nullptr) options[count++] = {"XIO_TEAM_CHANNELS", "1"};
  }
  void print() const {
    if (taken == 0) return;
    std::fputs("rocshmem over XIO: taken from ROCSHMEM_* variables:", stderr);
    for (std::size_t i = 0; i < taken; ++i) std::fprintf(stderr, " %s=%s", options[i].name, options[i].value);
    std::fputc('\n', stderr);
  }
};

// Programs choose their GPU by their rank before they call rocshmem_init, so the launcher gives it.
inline int launcher_number(std::initializer_list<const char*> variables, int otherwise) {
  for (const char* name : variables)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return std::atoi(value);
  return otherwise;
}
inline int host_my_pe() {
  if (host().world != nullptr) return xio_my_pe(host().world);
  return launcher_number({"XIO_TCP_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}, 0);
}
inline int host_n_pes() {
  if (host().world != nullptr) return xio_n_pes(host().world);
  return launcher_number({"XIO_TCP_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}, 1);
}

// The first status that a call could not return, as a sentence, once.
inline xio_status_t look_at_errors() {
  host_state& h = host();
  if (h.status != XIO_OK || h.first_error == nullptr) return h.status;
  std::uint32_t found = 0;
  must(hipMemcpy(&found, h.first_error, sizeof found, hipMemcpyDeviceToHost), "rocshmem");
  h.status = static_cast<xio_status_t>(static_cast<int>(found));
  if (h.status == XIO_OK || h.printed) return h.status;
  h.printed = true;
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  xio_ctx_error(h.world, h.ctx, &info);
  const bool known = info.sentence[0] != '\0';
  // At once: PEs share a terminal, and printf may write a line in pieces (glibc 2.37 and later in 128 bytes each).
  const std::string line = "rocshmem over XIO: a call of a kernel on PE " + std::to_string(xio_my_pe(h.world)) +
                           " failed first with " + xio_status_name(h.status) +
                           (known ? "; the last that failed: " : "") + info.sentence + "\n";
  std::fputs(line.c_str(), stderr);
  return h.status;
}

// The default context, with a pool for rocshmem_wg_ctx_create. Where nobody said how large, 32, halved down to 4 while
// a GPU's queues do not go round: by copy engines each context takes some for each PE.
inline xio_status_t create_default_context(host_state& h) {
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  const bool chosen = std::getenv("ROCSHMEM_MAX_NUM_CONTEXTS") != nullptr || std::getenv("XIO_CTX_POOL") != nullptr;
  constexpr std::uint32_t usual = 32, fewest = 4;
  if (!chosen) attr.pool = usual;
  xio_status_t status = xio_ctx_create(h.world, &attr, &h.ctx);
  if (status == XIO_OK || chosen) return status;
  const std::string why = xio_last_error();
  while (status != XIO_OK && attr.pool > fewest) {
    attr.pool /= 2;
    status = xio_ctx_create(h.world, &attr, &h.ctx);
  }
  if (status == XIO_OK && xio_my_pe(h.world) == 0)
    std::fprintf(stderr, "rocshmem: %u contexts are too many, there are %u (ROCSHMEM_MAX_NUM_CONTEXTS): %s\n", usual,
                 attr.pool, why.c_str());
  return status;
}

inline void start(xio_init_attr_t attr, const char* call) {
  host_state& h = host();
  if (h.world != nullptr) end_with(call, "rocshmem is initialised already; call rocshmem_finalize first");
  const variables from_environment;
  attr.options = from_environment.options;
  attr.option_count = from_environment.count;
  must(xio_init(&attr, &h.world), call);
  if (xio_my_pe(h.world) == 0) from_environment.print();
  must(create_default_context(h), call);
  must(hipMalloc(&h.first_error, sizeof *h.first_error), call);
  must(hipMemset(h.first_error, 0, sizeof *h.first_error), call);
  h.printed = false;
  h.status = XIO_OK;
  start_teams(h.teams, h.world);
  const device_state state{h.ctx, h.first_error, h.teams.on_device, static_cast<std::uint32_t>(h.teams.all.size())};
  for (const fill one : files()) must(one(state), call);
}

static __global__ void barrier_all_kernel() { keep(xio_barrier_all(resolve())); }
// Completes what kernels of this process have posted on the default context, and waits for the other PEs.
inline void host_barrier_all() {
  hipLaunchKernelGGL(barrier_all_kernel, dim3(1), dim3(1), 0, nullptr);
  must(hipDeviceSynchronize(), "rocshmem_barrier_all");
  look_at_errors();
}
inline int host_team_my_pe(rocshmem_team_t team) {
  const team_table& t = host().teams;
  return is_team(t, team) ? xio_team_my_pe(t.all[team.index]) : -1;
}
inline int host_team_n_pes(rocshmem_team_t team) {
  const team_table& t = host().teams;
  return is_team(t, team) ? xio_team_n_pes(t.all[team.index]) : -1;
}
inline int host_team_translate(rocshmem_team_t from, int pe, rocshmem_team_t to) {
  const team_table& t = host().teams;
  if (!is_team(t, from) || !is_team(t, to)) return -1;
  return xio_team_translate(t.world, t.all[from.index], t.all[to.index], pe);
}

static __global__ void team_sync_kernel(std::uint32_t team) {
  keep(xio_team_sync_wg(resolve(), in_kernels.teams[team]));
}
static __global__ void team_barrier_kernel(std::uint32_t team) {
  keep(xio_team_barrier_wg(resolve(), in_kernels.teams[team]));
}
inline void host_barrier(rocshmem_team_t team) {
  if (!is_team(host().teams, team)) return;
  hipLaunchKernelGGL(team_barrier_kernel, dim3(1), dim3(64), 0, nullptr, team.index);
  must(hipDeviceSynchronize(), "rocshmem_barrier");
  look_at_errors();
}
inline void host_team_sync(rocshmem_team_t team) {
  if (!is_team(host().teams, team)) return;
  hipLaunchKernelGGL(team_sync_kernel, dim3(1), dim3(64), 0, nullptr, team.index);
  must(hipDeviceSynchronize(), "rocshmem_team_sync");
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
#if defined(MPI_VERSION)
namespace impl {
inline void take_comm(xio_init_attr_t* init, const MPI_Comm* comm) {
  init->mpi_comm = comm;
  init->mpi_comm_bytes = static_cast<std::uint32_t>(sizeof(MPI_Comm));
#if defined(OPEN_MPI)
  init->mpi_kind = XIO_MPI_OPEN_MPI;
#else
  init->mpi_kind = XIO_MPI_MPICH;
#endif
}
}  // namespace impl
// MPI_COMM_NULL is the world. MPI is started.
inline void rocshmem_init(MPI_Comm comm) {
  xio_init_attr_t init = XIO_INIT_ATTR_INIT;
  if (comm != MPI_COMM_NULL) impl::take_comm(&init, &comm);
  impl::start(init, "rocshmem_init");
}
inline int rocshmem_init_thread(int, int* provided, MPI_Comm comm) {
  rocshmem_init(comm);
  if (provided != nullptr) *provided = ROCSHMEM_THREAD_MULTIPLE;
  return ROCSHMEM_SUCCESS;
}
#endif
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
    impl::take_comm(&init, static_cast<const MPI_Comm*>(attr->mpi_comm));
#else
    impl::end_with("rocshmem_init_attr", "a communicator needs <mpi.h> to be included before <rocshmem/rocshmem.hpp>");
#endif
  }
  impl::start(init, "rocshmem_init_attr");
  return ROCSHMEM_SUCCESS;
}

// Ends the program of every PE. A status of 0, by which launchers would let the others run, becomes 1.
[[noreturn]] inline void rocshmem_global_exit(int status) {
  xio_abort(impl::host().world, status, "rocshmem_global_exit");
  std::exit(status);  // before rocshmem_init there is this process alone
}

// The first status that a call of a kernel could not return, and that the host has printed. XIO's own addition.
inline xio_status_t rocshmem_status() { return impl::look_at_errors(); }

inline void rocshmem_finalize() {
  impl::host_state& h = impl::host();
  if (h.world == nullptr) return;
  (void)hipDeviceSynchronize();
  impl::look_at_errors();
  const xio_status_t first = h.status;
  for (const impl::fill one : impl::files()) (void)one({});
  impl::end_teams(h.teams);
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

// --- Teams -------------------------------------------------------------------------------------------

// All members of `parent` call. A PE that is not in the new team gets ROCSHMEM_TEAM_INVALID and 0. Where a member has
// no place for another team, none gets one.
inline int rocshmem_team_split_strided(rocshmem_team_t parent, int start, int stride, int size,
                                       const rocshmem_team_config_t*, long, rocshmem_team_t* made) {
  impl::team_table& t = impl::host().teams;
  if (made != nullptr) *made = ROCSHMEM_TEAM_INVALID;
  if (!impl::is_team(t, parent)) return ROCSHMEM_ERROR;
  const auto places = impl::free_places(t, 1);
  const bool good = made != nullptr && !places.empty();
  xio_team_t out{};
  const auto count = static_cast<std::size_t>(std::max(size, 0));
  const xio_status_t status =
      xio_team_split_strided(t.world, t.all[parent.index], start, size == 1 ? 1 : stride, count, good ? &out : nullptr);
  if (!impl::went_well(status, "rocshmem_team_split_strided")) return ROCSHMEM_ERROR;
  impl::keep_team(t, places[0], out, made);
  return ROCSHMEM_SUCCESS;
}
// Rows of `width` members of `parent`: x is the row of this PE, y its column. All members of `parent` call.
inline int rocshmem_team_split_2d(rocshmem_team_t parent, int width, const rocshmem_team_config_t*, long,
                                  rocshmem_team_t* x, const rocshmem_team_config_t*, long, rocshmem_team_t* y) {
  impl::team_table& t = impl::host().teams;
  for (rocshmem_team_t* one : {x, y})
    if (one != nullptr) *one = ROCSHMEM_TEAM_INVALID;
  if (!impl::is_team(t, parent)) return ROCSHMEM_ERROR;
  const auto places = impl::free_places(t, 2);
  const bool good = x != nullptr && y != nullptr && !places.empty();
  xio_team_t row{}, column{};
  const xio_status_t status =
      xio_team_split_2d(t.world, t.all[parent.index], width, good ? &row : nullptr, good ? &column : nullptr);
  if (!impl::went_well(status, "rocshmem_team_split_2d")) return ROCSHMEM_ERROR;
  impl::keep_team(t, places[0], row, x);
  impl::keep_team(t, places[1], column, y);
  return ROCSHMEM_SUCCESS;
}
// All members call. The teams that were there from the start stay as they are, and an empty handle is ignored.
inline void rocshmem_team_destroy(rocshmem_team_t team) {
  impl::team_table& t = impl::host().teams;
  if (team.index < impl::k_first_split || !impl::is_team(t, team)) return;
  if (impl::went_well(xio_team_destroy(t.world, t.all[team.index]), "rocshmem_team_destroy"))
    impl::put_team(t, team.index, {});
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
