// SPDX-License-Identifier: MIT
// PEs that are stopped in mid-run; stopped.sh sends the signals. Usage: stopped all|one FOLDER. Each PE writes its
// process id to FOLDER/pid.PE and goes through rounds of a kernel's wait for its neighbour and a barrier of the host.
//   all  until FOLDER/continued is there; every round must be well
//   one  until a round fails, which must be with XIO_ERR_TIMEOUT or XIO_ERR_PEER; PE 1 is the one that is stopped
#include <fstream>

#include "rig.hpp"

namespace {

// Signals the next PE and waits for the previous one.
__global__ void pass_on(xio_ctx_t ctx, uint64_t* word, const uint64_t* given, uint64_t round, int next, int* status) {
  *status = xio_put_signal(ctx, word + 1, given, sizeof *given, word, round, XIO_SIGNAL_SET, next);
  if (*status == XIO_OK) *status = xio_signal_wait_until(ctx, word, XIO_CMP_GE, round);
}

using rig::clock_type;

bool is_there(const std::string& file) { return access(file.c_str(), F_OK) == 0; }

// True on every PE, or on none, when one of them has seen the file: sizes that differ are an error on all.
bool agreed(xio_world_t* world, bool seen, int* failed) {
  void* block = nullptr;
  const xio_status_t status = xio_malloc(world, seen ? 128 : 64, &block);
  if (status == XIO_ERR_NOT_SYMMETRIC) return true;
  *failed = status;
  if (status == XIO_OK) *failed = xio_free(world, block);
  return seen;
}

struct ring_of_pes {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  int me = 0, n = 0;
  uint64_t* word = nullptr;  // the signal, and the data behind it
};

int play_round(const ring_of_pes& r, uint64_t round, const uint64_t* given) {
  const int failed = rig::result_of(pass_on, 1, 1, r.ctx, r.word, given, round, (r.me + 1) % r.n);
  return failed != XIO_OK ? failed : xio_host_barrier(r.world);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool all = std::string(argv[1]) == "all";
  const std::string folder = argv[2];
  ring_of_pes r;
  MUST(xio_init(nullptr, &r.world));
  r.me = xio_my_pe(r.world);
  r.n = xio_n_pes(r.world);
  MUST(xio_ctx_create(r.world, nullptr, &r.ctx));
  void* word = nullptr;
  MUST(xio_calloc(r.world, 2, sizeof(uint64_t), &word));
  r.word = static_cast<uint64_t*>(word);
  const rig::device_array<uint64_t> given(1);
  MUST(xio_mem_register(r.world, given.data(), sizeof(uint64_t)));
  MUST(xio_host_barrier(r.world));
  std::ofstream(folder + "/pid." + std::to_string(r.me)) << getpid() << std::endl;

  int failed = XIO_OK;
  clock_type::time_point began;
  for (uint64_t round = 1; failed == XIO_OK; ++round) {
    began = clock_type::now();
    failed = play_round(r, round, given.data());
    if (failed == XIO_OK && agreed(r.world, all && is_there(folder + "/continued"), &failed)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto took = std::chrono::duration<double>(clock_type::now() - began).count();
  if (all) {
    rig::expect(failed == XIO_OK, "PE %d: %s: %s", r.me, xio_status_name(static_cast<xio_status_t>(failed)),
                xio_last_error());
    if (failed == XIO_OK) MUST(xio_finalize(r.world));
  } else {
    rig::expect(failed == XIO_ERR_TIMEOUT || failed == XIO_ERR_PEER, "PE %d: %s", r.me,
                xio_status_name(static_cast<xio_status_t>(failed)));
    // XIO_TIMEOUT_MS is 2000: once for the kernel and once for the barrier, and a busy machine; PE 1 was stopped for
    // 4 s besides.
    rig::expect(took < (r.me == 1 ? 16 : 12), "PE %d: it took %.1f s", r.me, took);
    (void)xio_finalize(r.world);
  }
  std::printf("stopped %s: PE %d, %d failed\n", argv[1], r.me, rig::failures);
  return rig::failures != 0 ? 1 : 0;
}
