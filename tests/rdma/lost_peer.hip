// SPDX-License-Identifier: MIT
// Puts without end, until the peer or the way to it is gone. Then must come, each within the deadline: a status
// from the transfer, the same from a new op at once, a status from a wait, and the end of the ctx and of the world.
// Says "moving" once data flows, so that the script that runs it knows when to strike. A run in which nothing happens
// fails.
#include "../mpi/rig.hpp"

namespace {

using rig::clock_type;
constexpr size_t k_bytes = 1 << 20;
constexpr unsigned k_puts = 8;
constexpr int k_patience_s = 60;  // for the strike
constexpr int k_slack_ms = 5000;  // of a busy machine

__global__ void push(xio_ctx_t ctx, unsigned char* to, const unsigned char* from, int pe, int* status) {
  xio_status_t first = XIO_OK;
  for (unsigned i = 0; i < k_puts && first == XIO_OK; ++i) {
    const xio_status_t now = xio_put_wg(ctx, to, from, k_bytes, pe);
    if (now != XIO_OK) first = now;
  }
  const xio_status_t last = xio_quiet_wg(ctx);
  if (threadIdx.x == 0) *status = first != XIO_OK ? first : last;
}

__global__ void wait(xio_ctx_t ctx, const uint64_t* word, int* status) {
  *status = xio_wait_until(ctx, word, XIO_CMP_EQ, 1);
}

int run_push(const rig::device_array<int>& status, xio_ctx_t ctx, unsigned char* to, const unsigned char* from,
             int pe) {
  RUN(push, 1, 64, ctx, to, from, pe, status.data());
  return status.get()[0];
}

bool is_loss(int status) { return status == XIO_ERR_TIMEOUT || status == XIO_ERR_PEER || status == XIO_ERR_TRANSPORT; }

// Milliseconds since `from`, expected to be below `most`.
long took(clock_type::time_point from, long most, const char* what) {
  const auto ms = static_cast<long>(rig::ms_since(from));
  rig::expect(ms <= most, "%s took %ld ms, the deadline is %ld", what, ms, most);
  return ms;
}

}  // namespace

int main() {
  const char* text = std::getenv("XIO_TIMEOUT_MS");
  const long deadline = (text != nullptr ? std::atol(text) : 30000) + k_slack_ms;
  // Never destroyed as a team: its destructor wants success.
  auto& t = *new rig::team();
  const int peer = t.right;
  auto* area = t.symmetric<unsigned char>(2 * k_bytes);
  auto* word = t.symmetric<uint64_t>(1);
  rig::team::write(area, rig::source_of(t.me, k_bytes));
  const rig::device_array<int> status(1);
  t.barrier();

  const auto begin = clock_type::now();
  auto last = begin;
  int lost = XIO_OK;
  for (long turns = 0; clock_type::now() - begin < std::chrono::seconds(k_patience_s); ++turns) {
    last = clock_type::now();
    lost = run_push(status, t.ctx, area + k_bytes, area, peer);
    if (lost != XIO_OK) break;
    if (turns == 0) {
      std::printf("moving\n");
      std::fflush(stdout);
    }
  }
  rig::expect(is_loss(lost), "the transfer ended with %s", xio_status_name(static_cast<xio_status_t>(lost)));
  const long until_lost = took(last, deadline, "the status of the transfer");
  const xio_error_info_t info = rig::error_of(t);
  std::printf("lost_peer: PE %d: %s after %ld ms from %s queue %u, vendor 0x%x\n", t.me,
              xio_status_name(static_cast<xio_status_t>(lost)), until_lost, info.engine != nullptr ? info.engine : "?",
              info.queue, info.vendor);
  std::fflush(stdout);

  auto from = clock_type::now();
  rig::expect(run_push(status, t.ctx, area + k_bytes, area, peer) != XIO_OK, "an op on a lost peer succeeded");
  took(from, deadline, "an op on a lost peer");
  from = clock_type::now();
  RUN(wait, 1, 1, t.ctx, word, status.data());
  rig::expect(status.get()[0] != XIO_OK, "a wait for a lost peer succeeded");
  took(from, deadline, "a wait for a lost peer");
  from = clock_type::now();
  (void)xio_ctx_destroy(t.world(), t.ctx);
  took(from, deadline, "xio_ctx_destroy");
  from = clock_type::now();
  (void)xio_finalize(t.world());
  took(from, deadline, "xio_finalize");
  std::printf("lost_peer: PE %d: %d checks, %d failed\n", t.me, rig::checks, rig::failures);
  std::fflush(stdout);
  // Without a leak checker's look at the team.
  std::_Exit(rig::failures == 0 ? 0 : 1);
}
