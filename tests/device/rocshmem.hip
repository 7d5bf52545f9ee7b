// SPDX-License-Identifier: MIT
// rocSHMEM's names that are objects: compilers differ in what device code may use.
#include <rocshmem/rocshmem.hpp>

using namespace rocshmem;

__global__ void by_number(int* to, int value, int pe) {
  const rocshmem_ctx_t ctx = rocshmem_ctx_array[blockIdx.x];
  if (ctx.ctx_opaque != ROCSHMEM_CTX_INVALID.ctx_opaque) rocshmem_ctx_int_p(ctx, to, value, pe);
  if (rocshmem_team_n_pes(ROCSHMEM_TEAM_WORLD) > pe) rocshmem_ctx_quiet(ROCSHMEM_CTX_DEFAULT);
}
