// SPDX-License-Identifier: MIT
// two_level_allreduce: the sums of all PEs' vectors at every PE, by teams of two levels.
//
//   mpirun -np 4 examples/two_level_allreduce [COUNT [WIDTH]]   (or: xiorun -n 4 ...)
//
// PEs stand in rows of WIDTH. The row adds up first, each member a share of the vector; columns add up the shares; then
// the row collects them. So between rows goes only the WIDTH-th part of what an allreduce of all would send. A row is
// what is close together: xio_team_shared and xio_team_same_local_rank make such teams of the PEs of a machine.
#include <xio/team.h>

#include "arguments.hpp"
#include "session.hpp"

namespace {

struct levels {
  xio_ctx_t ctx;
  xio_team_t row, column;
  const float* vector;                // symmetric, a share for each member of the row
  float *row_sum, *all_sum, *result;  // symmetric: a share, a share, all shares
  uint64_t share;                     // elements
  int* status;
};

// One workgroup. Each step has a destination of its own, for members of another row may be a step ahead.
__global__ void allreduce(levels l) {
  xio_status_t s = xio_reduce_scatter_wg<xio_reduction::sum>(l.ctx, l.row, l.row_sum, l.vector, l.share);
  if (s == XIO_OK) s = xio_reduce_wg<xio_reduction::sum>(l.ctx, l.column, l.all_sum, l.row_sum, l.share);
  if (s == XIO_OK) s = xio_fcollect_wg(l.ctx, l.row, l.result, l.all_sum, l.share * sizeof(float));
  if (threadIdx.x == 0) keep(l.status, s);
}

// Small whole numbers: their sums are exact, in any order.
float value_of(int pe, uint64_t i) { return static_cast<float>(pe + 1) + static_cast<float>(i % 7); }

// Against a serial run over all PEs' vectors.
uint64_t count_wrong(const std::vector<float>& result, int n) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < result.size(); ++i) {
    float sum = 0;
    for (int pe = 0; pe < n; ++pe) sum += value_of(pe, i);
    wrong += result[i] != sum ? 1 : 0;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "two_level_allreduce [COUNT [WIDTH]]");
  const uint64_t count = given.number("COUNT", 1000, 1, 1 << 24);
  uint64_t width = given.number("WIDTH", 0, 1, 4096);
  given.end();
  session s;
  const auto n = static_cast<uint64_t>(s.n);
  if (width == 0) width = n % 2 == 0 ? 2 : n;
  if (n % width != 0)
    leave(2, "WIDTH is %llu, but must divide the %llu PEs", static_cast<unsigned long long>(width),
          static_cast<unsigned long long>(n));
  levels l{};
  l.ctx = s.ctx;
  l.status = s.status;
  l.share = (count + width - 1) / width;
  xio_team_t all{};
  check(xio_team_world(s.world, &all), "xio_team_world");
  check(xio_team_split_2d(s.world, all, static_cast<int>(width), &l.row, &l.column), "xio_team_split_2d");
  auto* vector = s.symmetric<float>(l.share * width);
  l.row_sum = s.symmetric<float>(l.share);
  l.all_sum = s.symmetric<float>(l.share);
  l.result = s.symmetric<float>(l.share * width);
  std::vector<float> mine(count);
  for (uint64_t i = 0; i < count; ++i) mine[i] = value_of(s.me, i);
  session::write(vector, mine);
  l.vector = vector;
  s.barrier();

  hipLaunchKernelGGL(allreduce, dim3(1), dim3(128), 0, nullptr, l);
  s.wait("allreduce");

  const uint64_t wrong = count_wrong(session::read(l.result, count), s.n);
  std::printf("PE %d: sums of %llu floats in rows of %llu, %llu values wrong\n", s.me,
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(width),
              static_cast<unsigned long long>(wrong));
  for (xio_team_t* team : {&l.row, &l.column, &all}) check(xio_team_destroy(s.world, *team), "xio_team_destroy");
  return s.end(wrong);
}
