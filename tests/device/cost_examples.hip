// SPDX-License-Identifier: MIT
// The examples' kernels, for cost.sh: what programs pay that use several calls. Never run.
//   COST_OF_STORAGE   those that need a drive, else those that do not
#if defined(COST_OF_STORAGE)
#define main kv_fetch_main
#include "../../examples/kv_fetch.hip"
#else
#define main halo_main
#include "../../examples/halo.hip"
#undef main
#define main moe_main
#include "../../examples/moe_alltoall.hip"
#endif
