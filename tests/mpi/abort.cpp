// SPDX-License-Identifier: MIT
// abort CODE: one PE ends all others, which wait in a barrier or sleep. abort.sh looks at how they end.
#include <unistd.h>
#include <xio/xio.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  xio_world_t* world = nullptr;
  if (argc != 2 || xio_init(nullptr, &world) != XIO_OK) {
    std::fprintf(stderr, "abort: %s\n", xio_last_error());
    return 2;
  }
  const int me = xio_my_pe(world), n = xio_n_pes(world);
  if (xio_abort(nullptr, 1, nullptr) != XIO_ERR_ARG) return 3;
  if (xio_host_barrier(world) != XIO_OK) return 4;
  std::printf("PE %d buffers this line\n", me);
  // Not the first one, which is the root of a TCP world.
  if (me == n - 1) xio_abort(world, std::atoi(argv[1]), "the input has no end");
  // The timeout is longer than the test waits.
  if (me == 0) xio_host_barrier(world);
  sleep(60);
  return 5;
}
