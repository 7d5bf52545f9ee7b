// SPDX-License-Identifier: MIT
// moe_alltoall: a layer of experts, one on each PE. Tokens travel to the two experts that a router chose, and back.
//
//   mpirun -np 4 examples/moe_alltoall [TOKENS [HIDDEN]]   (or: xiorun -n 4 ...)
//
// The lesson: an all-to-all whose sizes no PE knows before. Each sender has rows of its own in an expert's inbox, puts
// its tokens there as they are, and behind a fence sends their number: the signal is the message's length. A kernel
// that waits depends only on kernels that never wait, so nothing here needs all workgroups on the GPU at once.
#include "arguments.hpp"
#include "moe_router.hpp"
#include "session.hpp"

namespace {

struct layer {
  xio_ctx_t ctx;
  float* x;               // symmetric: our tokens
  float* inbox;           // symmetric: at an expert, for each PE the tokens from there
  float* reply;           // symmetric: at a PE, for each expert the tokens back from there
  uint64_t* sent;         // symmetric: for each PE, 1 + how many tokens it sent us
  uint64_t* done;         // symmetric: for each expert, 1 when its reply has come
  float* y;               // the result
  const uint64_t* first;  // our routing, as the router made it
  const uint64_t* token;
  const uint64_t* row;
  uint64_t tokens, hidden, room;  // room: tokens that one PE can send to one expert
  int* status;
};

// Workgroup e sends expert e its tokens.
__global__ void dispatch(layer l) {
  const int me = xio_my_pe(l.ctx), expert = static_cast<int>(blockIdx.x);
  const uint64_t first = l.first[expert], count = l.first[expert + 1] - first;
  float* rows = l.inbox + static_cast<uint64_t>(me) * l.room * l.hidden;
  for (uint64_t i = 0; i < count; ++i)
    xio_put_nbi_wg(l.ctx, rows + i * l.hidden, l.x + l.token[first + i] * l.hidden, l.hidden * sizeof(float), expert);
  if (threadIdx.x != 0) return;
  keep(l.status, xio_fence_pe(l.ctx, expert));
  keep(l.status, xio_signal_op(l.ctx, &l.sent[me], count + 1, XIO_SIGNAL_SET, expert));
}

// Workgroup s works on what PE s sent, and sends it back as one message.
__global__ void expert(layer l) {
  const int me = xio_my_pe(l.ctx), source = static_cast<int>(blockIdx.x);
  XIO_SHARED(uint64_t, count);
  if (threadIdx.x == 0) {
    uint64_t seen = 1;
    const xio_status_t s = xio_signal_wait_until(l.ctx, &l.sent[source], XIO_CMP_NE, 0, &seen);
    keep(l.status, s);
    count = s == XIO_OK && seen - 1 <= l.room ? seen - 1 : 0;
  }
  __syncthreads();
  float* rows = l.inbox + static_cast<uint64_t>(source) * l.room * l.hidden;
  for (uint64_t i = threadIdx.x; i < count * l.hidden; i += blockDim.x) rows[i] = apply_expert(me, rows[i]);
  xio_put_signal_nbi_wg(l.ctx, l.reply + static_cast<uint64_t>(me) * l.room * l.hidden, rows,
                        count * l.hidden * sizeof(float), &l.done[me], 1, XIO_SIGNAL_SET, source);
  const xio_status_t s = xio_quiet_wg(l.ctx);
  if (threadIdx.x == 0) keep(l.status, s);
}

// A token's result is the sum of what its experts made of it.
__global__ void combine(layer l) {
  if (threadIdx.x == 0) {
    for (int e = 0; e < xio_n_pes(l.ctx); ++e) keep(l.status, xio_signal_wait_until(l.ctx, &l.done[e], XIO_CMP_EQ, 1));
  }
  __syncthreads();
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < l.tokens * l.hidden; i += gridDim.x * blockDim.x) {
    const uint64_t t = i / l.hidden, column = i % l.hidden;
    float sum = 0;
    for (int k = 0; k < k_experts_per_token; ++k)
      sum += l.reply[l.row[t * k_experts_per_token + k] * l.hidden + column];
    l.y[i] = sum;
  }
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "moe_alltoall [TOKENS [HIDDEN]]");
  layer l{};
  l.tokens = given.number("TOKENS", 96, 1, 65536);
  l.hidden = given.number("HIDDEN", 64, 1, 16384);
  given.end();
  session s;
  const auto n = static_cast<unsigned>(s.n);
  l.ctx = s.ctx;
  l.status = s.status;
  l.room = l.tokens * k_experts_per_token;
  l.x = s.symmetric<float>(l.tokens * l.hidden);
  l.inbox = s.symmetric<float>(n * l.room * l.hidden);
  l.reply = s.symmetric<float>(n * l.room * l.hidden);
  l.y = s.symmetric<float>(l.tokens * l.hidden);
  l.sent = s.symmetric<uint64_t>(n);
  l.done = s.symmetric<uint64_t>(n);
  const routing r = route_tokens(s.me, s.n, l.tokens, l.room);
  session::write(l.x, tokens_of(s.me, l.tokens, l.hidden));
  session::write(const_cast<uint64_t*>(l.first = s.symmetric<uint64_t>(n + 1)), r.first);
  session::write(const_cast<uint64_t*>(l.token = s.symmetric<uint64_t>(l.room)), r.token);
  session::write(const_cast<uint64_t*>(l.row = s.symmetric<uint64_t>(l.room)), r.row);
  s.barrier();

  hipLaunchKernelGGL(dispatch, dim3(n), dim3(128), 0, nullptr, l);
  hipLaunchKernelGGL(expert, dim3(n), dim3(128), 0, nullptr, l);
  hipLaunchKernelGGL(combine, dim3(n), dim3(128), 0, nullptr, l);
  s.wait("dispatch, expert, combine");

  const uint64_t wrong = count_wrong(session::read(l.y, l.tokens * l.hidden), s.me, s.n, l.hidden);
  std::printf("PE %d: %llu tokens of %llu floats through %d experts, %llu values wrong\n", s.me,
              static_cast<unsigned long long>(l.tokens), static_cast<unsigned long long>(l.hidden), s.n,
              static_cast<unsigned long long>(wrong));
  return s.end(wrong);
}
