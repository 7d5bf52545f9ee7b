// SPDX-License-Identifier: MIT
// Calls that cannot return a status: the first failure is kept and printed once, and the program goes on.
#include "rig.hpp"

namespace {

__global__ void two_mistakes(int* word, int n) {
  rocshmem_int_p(word, 1, n);                                  // no such PE
  rocshmem_quiet();                                            // returns it once more
  rocshmem_ctx_int_p(ROCSHMEM_CTX_INVALID, word, 1, 0);        // no context
  rocshmem_int_put_nbi(word + (size_t{1} << 40), word, 1, 0);  // not symmetric
}
__global__ void well(int* word, int to) {
  rocshmem_int_p(word, 5, to);
  rocshmem_quiet();
}

}  // namespace

int main(int argc, char**) {
  rocshmem_init();
  // With an argument: the last PE ends all others, which wait in a barrier.
  if (argc > 1 && rocshmem_my_pe() == rocshmem_n_pes() - 1) rocshmem_global_exit(6);
  if (argc > 1) rocshmem_barrier_all();
  const int n = rocshmem_n_pes(), me = rocshmem_my_pe();
  auto* word = rig::symmetric<int>(1, 0);
  rocshmem_barrier_all();
  RUN(two_mistakes, 1, 1, word, n);
  rocshmem_barrier_all();
  rig::expect(rocshmem_status() == XIO_ERR_PE, "the first status", rocshmem_status(), XIO_ERR_PE);
  RUN(well, 1, 1, word, (me + 1) % n);
  rocshmem_barrier_all();
  rig::expect(rig::read(word, 1)[0] == 5, "a put after them", rig::read(word, 1)[0], 5);
  rocshmem_finalize();
  rig::expect(rocshmem_status() == XIO_ERR_PE, "after finalize", rocshmem_status(), XIO_ERR_PE);
  std::printf("mistakes: PE %d of %d: %d checks, %d failed\n", me, n, rig::checks, rig::failures);
  return rig::failures == 0 ? 0 : 1;
}
