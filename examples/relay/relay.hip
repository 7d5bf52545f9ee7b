// SPDX-License-Identifier: MIT
// relay: a file crosses every engine. PE 0's kernel reads it from an NVMe queue and sends it chunk by chunk over
// the RDMA lane; PE 1's kernel moves each chunk with the SDMA lane and writes it through its own NVMe queue.
//
//   mpirun -np 2 examples/relay/relay --in FILE --out COPY        (or: xiorun -n 2 examples/relay/relay ...)
//
// The lesson: one lane of a wave owns one slot and walks a small state machine that never waits, so many
// reads, puts, copies and writes are in flight at once, and lanes that post together share a doorbell.
//
// send.hpp and receive.hpp are the kernels; the rest sets the stage. COPY appears when it is whole (output.hpp).
#include "run.hpp"

int main(int argc, char** argv) {
  open_standard_streams();
  const options o = parse(argc, argv);
  xio_world_t* world = nullptr;
  check(xio_init(nullptr, &world), "xio_init");
  if (xio_n_pes(world) != 2) leave(1, "relay: needs 2 PEs, not %d: start with mpirun -np 2", xio_n_pes(world));
  const int code = relay(world, o).run();
  check(xio_finalize(world), "xio_finalize");
  return ended(code);
}
