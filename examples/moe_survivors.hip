// SPDX-License-Identifier: MIT
// moe_survivors: a layer of experts goes on when a PE is killed. Those that live share out the experts of the dead one,
// and their kernels read its weights from a file.
//
//   xiorun --survive -n 4 examples/moe_survivors FILE [STEPS [KILL_AT [PE]]]
//   FILE is made if it does not exist. In step KILL_AT (from 1; 0: none) PE kills itself when it has sent some tokens.
//
// The lesson: every PE writes to places of its own at the others, and every signal has the step and the view in it. So
// a step can be repeated: what a dead PE still had under way is stored where nobody reads any more. All that live must
// compute the same from the same: which PEs they are (xio_world_shrink), which owns which expert, and which step comes
// next.
#include <xio/peers.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "arguments.hpp"
#include "moe_weights.hpp"
#include "session.hpp"

namespace {

constexpr uint64_t k_tokens = 64;   // of a PE in a step
constexpr uint64_t k_none = ~0ull;  // a message that did not come

struct layer {
  xio_ctx_t ctx;
  xio_storage_t drive;
  weights* w;         // symmetric: of each expert; those of other PEs' experts are not filled in
  row* x;             // symmetric: our tokens
  row* inbox;         // symmetric: at an expert's PE, for each PE the tokens from there
  row* result;        // symmetric: what our experts made of them
  row* reply;         // symmetric: for each PE the results back from there
  uint64_t* sent;     // symmetric: for each PE, the round and how many tokens it sent us
  uint64_t* done;     // symmetric: for each PE, the round whose results have come
  uint64_t* step_of;  // symmetric: for each PE, the step that it was in when somebody died
  row* y;             // on the host, as the rest: the results in the order of our tokens
  int* owner;         // of each expert
  int* lives;         // 1 for each PE that goes on
  int* wanted;        // 1 for each expert whose weights we are to read, 2 where we have them
  uint64_t view, step;
  int* status;
};

// The words of the signals of this step, without their count, grow: also where a step is repeated.
__device__ uint64_t round_of(const layer& l) { return (l.view << 32 | l.step) << 8; }

// Workgroup e reads expert e's weights.
__global__ void read_weights(layer l) {
  const uint64_t e = blockIdx.x;
  if (l.wanted[e] != 1) return;
  const xio_status_t s = xio_read_wg(l.ctx, &l.w[e], l.drive, place_of(e), sizeof(weights));
  if (threadIdx.x == 0) keep(l.status, s);
}

// Workgroup p sends PE p the tokens for its experts.
__global__ void dispatch(layer l) {
  const int me = xio_my_pe(l.ctx), pe = static_cast<int>(blockIdx.x);
  if (l.lives[pe] == 0) return;
  uint64_t count = 0;
  for (uint64_t t = 0; t < k_tokens; ++t)
    if (l.owner[l.x[t].expert] == pe)
      xio_put_nbi_wg(l.ctx, &l.inbox[static_cast<uint64_t>(me) * k_tokens + count++], &l.x[t], sizeof(row), pe);
  if (threadIdx.x != 0) return;
  keep(l.status, xio_fence_pe(l.ctx, pe));
  keep(l.status, xio_signal_op(l.ctx, &l.sent[me], round_of(l) + count, XIO_SIGNAL_SET, pe));
}

// Waits for a signal of this round, and returns its count. Behind a failure it does not wait: one timeout is enough.
__device__ uint64_t count_from(const layer& l, const uint64_t* word) {
  if (*l.status != XIO_OK) return k_none;
  uint64_t seen = 0;
  const xio_status_t s = xio_signal_wait_until(l.ctx, word, XIO_CMP_GE, round_of(l), &seen);
  const uint64_t count = seen - round_of(l);
  if (s == XIO_OK && count <= k_tokens) return count;
  keep(l.status, s == XIO_OK ? XIO_ERR_PEER : s);  // or a PE that is in another round
  return k_none;
}

// Workgroup p works on what PE p sent, and sends it back as one message.
__global__ void expert(layer l) {
  const int me = xio_my_pe(l.ctx), pe = static_cast<int>(blockIdx.x);
  if (l.lives[pe] == 0) return;
  XIO_SHARED(uint64_t, count);
  if (threadIdx.x == 0) count = count_from(l, &l.sent[pe]);
  __syncthreads();
  if (count == k_none) return;
  const row* in = l.inbox + static_cast<uint64_t>(pe) * k_tokens;
  row* out = l.result + static_cast<uint64_t>(pe) * k_tokens;
  for (uint64_t k = threadIdx.x; k < count * k_hidden; k += blockDim.x) {
    const row& token = in[k / k_hidden];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < k_hidden; ++i) sum += token.value[i] * l.w[token.expert].at[i][k % k_hidden];
    out[k / k_hidden].value[k % k_hidden] = sum;
  }
  xio_put_signal_nbi_wg(l.ctx, l.reply + static_cast<uint64_t>(me) * k_tokens, out, count * sizeof(row), &l.done[me],
                        round_of(l), XIO_SIGNAL_SET, pe);
  const xio_status_t s = xio_quiet_wg(l.ctx);
  if (threadIdx.x == 0) keep(l.status, s);
}

// Workgroup p puts PE p's results to the places of their tokens. They come in the order in which those were sent.
__global__ void combine(layer l) {
  const int pe = static_cast<int>(blockIdx.x);
  if (l.lives[pe] == 0 || threadIdx.x != 0 || count_from(l, &l.done[pe]) == k_none) return;
  const row* next = l.reply + static_cast<uint64_t>(pe) * k_tokens;
  for (uint64_t t = 0; t < k_tokens; ++t)
    if (l.owner[l.x[t].expert] == pe) l.y[t] = *next++;
}

// Tells all that live the step that we were in. Behind the barrier nothing of that step is under way any more.
__global__ void share_steps(layer l) {
  (void)xio_quiet(l.ctx);  // it says once what was lost with the dead
  for (int pe = 0; pe < xio_n_pes(l.ctx); ++pe)
    if (l.lives[pe] != 0) keep(l.status, xio_p(l.ctx, &l.step_of[xio_my_pe(l.ctx)], l.step, pe));
  keep(l.status, xio_barrier_all(l.ctx));
}

// --- The host -----------------------------------------------------------------------------------------------------

// Returns the status of the kernels since the last call, and resets it.
xio_status_t outcome(const layer& l) {
  check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  const auto s = static_cast<xio_status_t>(*l.status);
  *l.status = XIO_OK;
  return s;
}

bool may_be_a_death(xio_status_t s) { return s == XIO_ERR_PEER || s == XIO_ERR_TIMEOUT || s == XIO_ERR_TRANSPORT; }

xio_status_t run_step(const session& s, const layer& l, bool dies) {
  std::vector<row> tokens(k_tokens);
  for (uint64_t t = 0; t < k_tokens; ++t) tokens[t] = token_of(s.me, l.step, t);
  session::write(l.x, tokens);
  const auto n = static_cast<unsigned>(s.n);
  hipLaunchKernelGGL(dispatch, dim3(dies ? n / 2 : n), dim3(64), 0, nullptr, l);
  if (dies) {
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    std::raise(SIGKILL);
  }
  hipLaunchKernelGGL(expert, dim3(n), dim3(64), 0, nullptr, l);
  hipLaunchKernelGGL(combine, dim3(n), dim3(64), 0, nullptr, l);
  return outcome(l);
}

// Gives each expert to a PE: a function of those that live, so that all have the same. Reads the weights of those that
// are new here, and returns their names.
std::string share_out(const session& s, const layer& l) {
  std::vector<int> living;
  for (int pe = 0; pe < s.n; ++pe)
    if (l.lives[pe] != 0) living.push_back(pe);
  std::string names;
  for (int e = 0; e < k_experts; ++e) {
    const int first = e % s.n;
    l.owner[e] = l.lives[first] != 0 ? first : living[static_cast<size_t>(e) % living.size()];
    if (l.owner[e] != s.me || l.wanted[e] == 2) continue;
    l.wanted[e] = 1;
    names += " " + std::to_string(e);
  }
  hipLaunchKernelGGL(read_weights, dim3(k_experts), dim3(64), 0, nullptr, l);
  check(outcome(l), "reading weights");
  std::replace(l.wanted, l.wanted + k_experts, 1, 2);
  return names;
}

// Agrees with the others that live on who goes on, and from which step. l.step becomes that.
void go_on(session& s, layer& l) {
  // Again where one dies meanwhile, or is late.
  for (int tries = 0; tries < 5; ++tries) {
    xio_shrink_report_t report = XIO_SHRINK_REPORT_INIT;
    const xio_status_t shrunk = xio_world_shrink(s.world, &report);
    if (may_be_a_death(shrunk)) continue;
    check(shrunk, "xio_world_shrink");
    check(xio_ctx_refresh(s.world, &s.ctx), "xio_ctx_refresh");
    l.ctx = s.ctx;
    l.view = report.view;
    for (int pe = 0; pe < s.n; ++pe) {
      xio_pe_info_t info = XIO_PE_INFO_INIT;
      check(xio_pe_state(s.world, pe, &info), "xio_pe_state");
      l.lives[pe] = info.life == XIO_PE_EXCLUDED ? 0 : 1;
    }
    const std::string read = share_out(s, l);
    hipLaunchKernelGGL(share_steps, dim3(1), dim3(1), 0, nullptr, l);
    const xio_status_t shared = outcome(l);
    const auto steps = session::read(l.step_of, static_cast<size_t>(s.n));
    if (shared == XIO_OK)
      for (int pe = 0; pe < s.n; ++pe)
        if (l.lives[pe] != 0) l.step = std::min(l.step, steps[static_cast<size_t>(pe)]);
    std::printf("PE %d: %d of %d PEs go on, from step %llu; experts read:%s\n", s.me, report.n_living, s.n,
                static_cast<unsigned long long>(l.step), read.empty() ? " none" : read.c_str());
    if (shared == XIO_OK) return;
    if (!may_be_a_death(shared)) check(shared, "share_steps");
  }
  leave(1, "the PEs that live do not come together: %s", xio_last_error());
}

layer make_layer(const session& s, const char* file) {
  const auto n = static_cast<size_t>(s.n);
  layer l{};
  l.ctx = s.ctx;
  l.status = s.status;
  l.w = s.symmetric<weights>(k_experts);
  l.x = s.symmetric<row>(k_tokens);
  l.inbox = s.symmetric<row>(n * k_tokens);
  l.result = s.symmetric<row>(n * k_tokens);
  l.reply = s.symmetric<row>(n * k_tokens);
  l.sent = s.symmetric<uint64_t>(n);
  l.done = s.symmetric<uint64_t>(n);
  l.step_of = s.symmetric<uint64_t>(n);
  l.y = session::on_host<row>(k_tokens);
  l.owner = session::on_host<int>(k_experts);
  l.lives = session::on_host<int>(n);
  l.wanted = session::on_host<int>(k_experts);
  std::fill_n(l.lives, n, 1);
  // PE 0 makes the file; each opens it for itself, as all will read.
  if (s.me == 0) make_file(file);
  s.barrier();
  const int fd = open_file(file);
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_READ_ONLY;
  check(xio_storage_open(s.world, ("file:/proc/self/fd/" + std::to_string(fd)).c_str(), &attr, &l.drive), file);
  close(fd);
  return l;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "moe_survivors FILE [STEPS [KILL_AT [PE]]]");
  const char* const file = given.text("FILE");
  const uint64_t steps = given.number("STEPS", 20, 1, 1 << 20), kill_at = given.number("KILL_AT", 0, 0, steps);
  const uint64_t victim = given.number("PE", 0, 0, 1 << 20);
  given.end();
  setenv("XIO_TIMEOUT_MS", "3000", 0);  // so long a dead PE is waited for, unless the user says otherwise
  session s;
  if (kill_at != 0 && (s.n < 2 || victim >= static_cast<uint64_t>(s.n)))
    leave(2, "PE %llu cannot be killed and leave others: there are %d", static_cast<unsigned long long>(victim), s.n);
  layer l = make_layer(s, file);
  share_out(s, l);
  s.barrier();

  std::vector<uint64_t> right(steps + 1);
  for (l.step = 1;;) {
    const bool ends = l.step > steps, dies = l.step == kill_at && victim == static_cast<uint64_t>(s.me);
    const xio_status_t got = ends ? xio_host_barrier(s.world) : run_step(s, l, dies);
    if (may_be_a_death(got)) {
      go_on(s, l);
      continue;
    }
    check(got, "a step");
    if (ends) break;
    right[l.step] = 0;
    for (uint64_t t = 0; t < k_tokens; ++t) right[l.step] += is_right(token_of(s.me, l.step, t), l.y[t]) ? 1 : 0;
    ++l.step;
  }

  uint64_t sum = 0;
  for (const uint64_t one : right) sum += one;
  std::printf("PE %d: %llu of %llu tokens right\n", s.me, static_cast<unsigned long long>(sum),
              static_cast<unsigned long long>(steps * k_tokens));
  check(xio_storage_close(s.world, l.drive), "xio_storage_close");
  return s.end(steps * k_tokens - sum);
}
