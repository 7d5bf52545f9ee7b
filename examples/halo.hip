// SPDX-License-Identifier: MIT
// halo: heat spreads over a square that is cut into tiles, one for each PE; a serial run checks every cell.
//
//   mpirun -np 4 examples/halo [SIDE [STEPS]]          (or: xiorun -n 4 examples/halo)
//
// The lesson: a PE synchronises with its neighbours only. A row goes by put_signal; a column is a tile one cell wide,
// and its signal follows behind a fence. One kernel does all steps, without a global barrier: two grids in turn are
// enough, for a neighbour that sends its border of step k no longer reads ours of step k - 1.
#include <cmath>

#include "arguments.hpp"
#include "halo_serial.hpp"
#include "session.hpp"

namespace {

enum side { north, south, west, east };

struct tile {
  xio_ctx_t ctx;
  double* grid[2];     // symmetric: (rows + 2) x pitch; the outermost cells belong to neighbours or to the rim
  uint64_t* arrived;   // symmetric: for each side, how many borders have come from there
  size_t rows, pitch;  // pitch = columns + 2
  uint64_t steps;
  int neighbour[4];  // -1 beyond the rim
  int* status;
};

__device__ void send_borders(const tile& t, uint64_t step) {
  double* g = t.grid[step % 2];
  const size_t columns = t.pitch - 2, row_bytes = t.pitch * sizeof(double);
  for (int to = north; to <= east; ++to) {
    const int pe = t.neighbour[to];
    if (pe < 0) continue;
    uint64_t* signal = &t.arrived[to ^ 1];  // we are the neighbour's opposite side
    if (to == north || to == south) {
      const size_t from = to == north ? 1 : t.rows, halo = to == north ? t.rows + 1 : 0;
      xio_put_signal_nbi_wg(t.ctx, g + halo * t.pitch + 1, g + from * t.pitch + 1, columns * sizeof(double), signal,
                            step + 1, XIO_SIGNAL_SET, pe);
    } else {
      const size_t from = to == west ? 1 : columns, halo = to == west ? columns + 1 : 0;
      xio_put_2d_wg(t.ctx, g + t.pitch + halo, row_bytes, g + t.pitch + from, row_bytes, sizeof(double), t.rows, pe);
      if (threadIdx.x == 0) {
        xio_fence_pe(t.ctx, pe);
        xio_signal_op(t.ctx, signal, step + 1, XIO_SIGNAL_SET, pe);
      }
    }
  }
}

// One workgroup. Failed ops need no look of their own: quiet repeats the first failure.
__global__ void spread(tile t) {
  XIO_SHARED(int, failed);
  for (uint64_t step = 0; step < t.steps; ++step) {
    send_borders(t, step);
    if (threadIdx.x == 0) {
      xio_status_t s = XIO_OK;
      for (int from = north; from <= east && s == XIO_OK; ++from)
        if (t.neighbour[from] >= 0) s = xio_signal_wait_until(t.ctx, &t.arrived[from], XIO_CMP_GT, step);
      keep(t.status, s);
      failed = s;
    }
    // This PE's puts must be complete, too: the step after this one overwrites the borders that they read.
    const xio_status_t s = xio_quiet_wg(t.ctx);
    __syncthreads();
    if (threadIdx.x == 0) keep(t.status, s);
    if (s != XIO_OK || failed != XIO_OK) return;
    const double* now = t.grid[step % 2];
    double* next = t.grid[(step + 1) % 2];
    const size_t columns = t.pitch - 2;
    for (size_t i = threadIdx.x; i < t.rows * columns; i += blockDim.x) {
      const size_t at = (i / columns + 1) * t.pitch + i % columns + 1;
      next[at] = mean(now[at - t.pitch], now[at + t.pitch], now[at - 1], now[at + 1]);
    }
    __syncthreads();
  }
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "halo [SIDE [STEPS]]");
  const size_t side = given.number("SIDE", 48, 1, 4096);
  const uint64_t steps = given.number("STEPS", 30, 0, 100000);
  given.end();
  session s;
  const place p = place_of(s.me, s.n, side);
  if (p.rows == 0) leave(2, "SIDE is %zu, but %d PEs cannot share it evenly", side, s.n);

  const size_t cells = (p.rows + 2) * (p.columns + 2);
  tile t{s.ctx,
         {s.symmetric<double>(cells), s.symmetric<double>(cells)},
         s.symmetric<uint64_t>(4),
         p.rows,
         p.columns + 2,
         steps,
         {p.north, p.south, p.west, p.east},
         s.status};
  // Halos start as no number at all: one that does not come spoils the result.
  for (double* grid : t.grid) session::write(grid, first_tile(p, side, std::nan("")));
  s.barrier();
  hipLaunchKernelGGL(spread, dim3(1), dim3(128), 0, nullptr, t);
  s.wait("spread");

  const std::vector<double> whole = serial(side, steps), mine = session::read(t.grid[steps % 2], cells);
  uint64_t wrong = 0;
  for (size_t r = 1; r <= p.rows; ++r)
    for (size_t c = 1; c <= p.columns; ++c)
      wrong += mine[r * t.pitch + c] != whole[(p.top + r) * (side + 2) + p.left + c] ? 1 : 0;
  std::printf("PE %d: %zu x %zu of %zu x %zu cells, %llu steps, %llu cells differ from the serial run\n", s.me, p.rows,
              p.columns, side, side, static_cast<unsigned long long>(steps), static_cast<unsigned long long>(wrong));
  return s.end(wrong);
}
