// SPDX-License-Identifier: MIT
// Types and constants of rocSHMEM.
#pragma once
// Programs get MPI by this header, as there, if the compiler finds it. Its C interface alone.
#if __has_include(<mpi.h>)
#if !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace rocshmem {

enum ROCSHMEM_STATUS { ROCSHMEM_SUCCESS = 0, ROCSHMEM_ERROR = 1 };
// Names for programs that choose an operation by a number or a template parameter of theirs.
enum ROCSHMEM_OP {
  ROCSHMEM_SUM,
  ROCSHMEM_MAX,
  ROCSHMEM_MIN,
  ROCSHMEM_PROD,
  ROCSHMEM_AND,
  ROCSHMEM_OR,
  ROCSHMEM_XOR,
  ROCSHMEM_REPLACE
};
enum ROCSHMEM_SIGNAL_OPS { ROCSHMEM_SIGNAL_SET = XIO_SIGNAL_SET, ROCSHMEM_SIGNAL_ADD = XIO_SIGNAL_ADD };
enum rocshmem_cmps {
  ROCSHMEM_CMP_EQ = XIO_CMP_EQ,
  ROCSHMEM_CMP_NE = XIO_CMP_NE,
  ROCSHMEM_CMP_GT = XIO_CMP_GT,
  ROCSHMEM_CMP_GE = XIO_CMP_GE,
  ROCSHMEM_CMP_LT = XIO_CMP_LT,
  ROCSHMEM_CMP_LE = XIO_CMP_LE
};
enum rocshmem_thread_ops {
  ROCSHMEM_THREAD_SINGLE,
  ROCSHMEM_THREAD_FUNNELED,
  ROCSHMEM_THREAD_WG_FUNNELED,
  ROCSHMEM_THREAD_SERIALIZED,
  ROCSHMEM_THREAD_MULTIPLE
};
// Options of contexts. XIO's contexts serve any number of callers, so none of them changes anything.
constexpr int ROCSHMEM_CTX_ZERO = 0;
constexpr int ROCSHMEM_CTX_NOSTORE = 1;
constexpr int ROCSHMEM_CTX_SERIALIZED = 2;
constexpr int ROCSHMEM_CTX_WG_PRIVATE = 4;
constexpr int ROCSHMEM_CTX_SHARED = 8;

// A context of 16 bytes. ctx_opaque: 0 is the default context, all ones none, else the address of a context's view.
// team_opaque: the team whose members' numbers its calls take, 0 for the world.
struct rocshmem_ctx_t {
  unsigned long long ctx_opaque, team_opaque;
};
constexpr rocshmem_ctx_t ROCSHMEM_CTX_DEFAULT{0, 0};
constexpr rocshmem_ctx_t ROCSHMEM_CTX_INVALID{~0ull, 0};

// A team: a handle that host and kernels share. It is compared, copied and set to null like the pointer that it is
// there.
struct rocshmem_team_t {
  std::uint32_t index;
  rocshmem_team_t() = default;
  XIO_HOST_DEVICE constexpr explicit rocshmem_team_t(std::uint32_t at) : index(at) {}
  XIO_HOST_DEVICE constexpr rocshmem_team_t(std::nullptr_t) : index(0) {}
  XIO_HOST_DEVICE constexpr explicit operator bool() const { return index != 0; }
  friend XIO_HOST_DEVICE constexpr bool operator==(rocshmem_team_t a, rocshmem_team_t b) { return a.index == b.index; }
  friend XIO_HOST_DEVICE constexpr bool operator!=(rocshmem_team_t a, rocshmem_team_t b) { return a.index != b.index; }
};
constexpr rocshmem_team_t ROCSHMEM_TEAM_INVALID{nullptr};
constexpr rocshmem_team_t ROCSHMEM_TEAM_WORLD{1u};
constexpr rocshmem_team_t ROCSHMEM_TEAM_SHARED{2u};  // the PEs of this machine
// What teams are made with there. It is accepted and changes nothing.
struct rocshmem_team_config_t {
  int num_contexts;
};
enum rocshmem_team_configs { ROCSHMEM_TEAM_DEFAULT_CONFIGS, ROCSHMEM_TEAM_NUM_CONTEXTS };

using rocshmem_uniqueid_t = std::array<std::uint8_t, sizeof(xio_unique_id_t)>;
// Flags of rocshmem_init_attr.
constexpr unsigned ROCSHMEM_INIT_WITH_MPI_COMM = 0;
constexpr unsigned ROCSHMEM_INIT_WITH_UNIQUEID = 1;
struct rocshmem_init_attr_t {
  int rank = 0, nranks = 0;
  rocshmem_uniqueid_t uid{};
  void* mpi_comm = nullptr;  // to an MPI_Comm
};

}  // namespace rocshmem
