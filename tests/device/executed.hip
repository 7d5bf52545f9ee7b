// SPDX-License-Identifier: MIT
// Runs ops in kernels of one op and of eleven, on two PEs: executed.sh takes the difference of what they executed.
#include "../../examples/session.hpp"

namespace {

constexpr size_t k_small = 8, k_large = 65536;
constexpr unsigned k_workgroup = 256;

}  // namespace

extern "C" {

__global__ void executed_put_nbi(xio_ctx_t c, char* to, const char* from, int pe, unsigned times) {
  for (unsigned i = 0; i < times; ++i) xio_put_nbi(c, to, from, k_small, pe);
}
__global__ void executed_p(xio_ctx_t c, long* to, int pe, unsigned times) {
  for (unsigned i = 0; i < times; ++i) xio_p(c, to, static_cast<long>(i), pe);
}
// Nothing is under way.
__global__ void executed_quiet(xio_ctx_t c, unsigned times, int* status) {
  for (unsigned i = 0; i < times; ++i) keep(status, xio_quiet(c));
}
// The word has the value from the start.
__global__ void executed_wait(xio_ctx_t c, const uint64_t* flag, unsigned times, int* status) {
  for (unsigned i = 0; i < times; ++i) keep(status, xio_signal_wait_until(c, flag, XIO_CMP_EQ, 0));
}
__global__ void executed_put_nbi_wg(xio_ctx_t c, char* to, const char* from, int pe, unsigned times) {
  for (unsigned i = 0; i < times; ++i) xio_put_nbi_wg(c, to, from, k_large, pe);
}

}  // extern "C"

namespace {

// A wait for completions runs as often as it must: in a kernel that is not counted.
__global__ void end(xio_ctx_t c, int* status) { keep(status, xio_quiet(c)); }

void end_ops(const session& s) {
  hipLaunchKernelGGL(end, dim3(1), dim3(1), 0, nullptr, s.ctx, s.status);
  s.wait("an op");
}

}  // namespace

int main() {
  session s(2, 2);
  auto* to = s.symmetric<char>(k_large);
  auto* from = s.symmetric<char>(k_large);
  auto* flag = s.symmetric<uint64_t>(1);
  for (const unsigned times : {1u, 11u}) {
    if (s.me != 0) break;
    const dim3 one(1);
    hipLaunchKernelGGL(executed_put_nbi, one, one, 0, nullptr, s.ctx, to, from, 1, times);
    end_ops(s);
    hipLaunchKernelGGL(executed_p, one, one, 0, nullptr, s.ctx, reinterpret_cast<long*>(to), 1, times);
    end_ops(s);
    hipLaunchKernelGGL(executed_quiet, one, one, 0, nullptr, s.ctx, times, s.status);
    hipLaunchKernelGGL(executed_wait, one, one, 0, nullptr, s.ctx, flag, times, s.status);
    hipLaunchKernelGGL(executed_put_nbi_wg, one, dim3(k_workgroup), 0, nullptr, s.ctx, to, from, 1, times);
    end_ops(s);
  }
  return s.end(0);
}
