// SPDX-License-Identifier: MIT
// hello_put: every PE's kernel puts a greeting into the memory of the next PE.
//
//   mpirun -np 2 examples/hello_put                    (or: xiorun -n 2 examples/hello_put)
//
// The lesson: a symmetric address names the same object on every PE, so a put takes the address of this PE's own
// `greeting` and the number of the target PE. The return of a put does not mean that its data has arrived; the return
// of the barrier does: all puts are complete, and every PE has called it.
#include <cstring>

#include "arguments.hpp"
#include "session.hpp"

namespace {

constexpr size_t k_bytes = 64;

__global__ void hello(xio_ctx_t ctx, char* greeting, const char* mine, int* status) {
  const int next = (xio_my_pe(ctx) + 1) % xio_n_pes(ctx);
  keep(status, xio_put(ctx, greeting, mine, k_bytes, next));
  keep(status, xio_barrier_all(ctx));
}

std::vector<char> text_of(int pe) {
  std::vector<char> text(k_bytes);
  std::snprintf(text.data(), k_bytes, "hello from PE %d", pe);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  arguments(argc, argv, "hello_put").end();
  session s;
  auto* greeting = s.symmetric<char>(k_bytes);
  auto* mine = s.symmetric<char>(k_bytes);
  session::write(mine, text_of(s.me));

  hipLaunchKernelGGL(hello, dim3(1), dim3(1), 0, nullptr, s.ctx, greeting, mine, s.status);
  s.wait("hello");

  const std::vector<char> got = session::read(greeting, k_bytes);
  const bool right = got == text_of((s.me + s.n - 1) % s.n);
  std::printf("PE %d of %d got: %.*s%s\n", s.me, s.n, static_cast<int>(strnlen(got.data(), k_bytes)), got.data(),
              right ? "" : " (which is wrong)");
  return s.end(right ? 0 : 1);
}
