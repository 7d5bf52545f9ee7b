// SPDX-License-Identifier: MIT
// Every PE puts to every other PE at once, by workgroups of 256 that are dealt out to the peers: GB/s that leave a PE.
//
//   mpirun -np 4 bench/all_peers [BYTES [TIMES [WORKGROUPS]]]       (or xiorun -n 4)
//
// BYTES go to each peer TIMES times in one kernel; the route is XIO_ROUTE's. PE 0 prints a line; each PE checks what
// came.
#include <xio/hip.h>
#include <xio/xio.h>
#include <xio/xio_device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "all_peers: %s: %s\n", what, why);
  std::exit(1);
}
void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) give_up(what, xio_last_error());
}
void check(hipError_t e, const char* what) {
  if (e != hipSuccess) give_up(what, hipGetErrorString(e));
}
#define CHECK(call) check((call), #call)

// Of every peer's area one part lies with each sender. Workgroups of a peer share its bytes evenly.
__global__ void put_to_all(xio_ctx_t ctx, unsigned char* in, const unsigned char* out, size_t bytes, int times, int me,
                           int n, int* bad) {
  const unsigned peers = static_cast<unsigned>(n - 1), group = static_cast<unsigned>(blockIdx.x);
  const int to = (me + 1 + static_cast<int>(group % peers)) % n;
  const size_t share = group / peers, shares = (gridDim.x - 1 - group % peers) / peers + 1;
  const size_t first = bytes * share / shares / 16 * 16,
               end = share + 1 == shares ? bytes : bytes * (share + 1) / shares / 16 * 16;
  unsigned char* there = in + static_cast<size_t>(me) * bytes;
  xio_status_t s = XIO_OK;
  for (int i = 0; i < times; ++i) xio_put_nbi_wg(ctx, there + first, out + first, end - first, to);
  s = xio_quiet_wg(ctx);
  if (s != XIO_OK) *bad = s;
}

__global__ void send_share(xio_ctx_t ctx, double* all, double mine, int me, int* bad) {
  if (xio_p(ctx, &all[me], mine, 0) != XIO_OK || xio_quiet(ctx) != XIO_OK) *bad = 1;
}

struct session {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  int me = 0, n = 0;
  int* bad = nullptr;

  void end_of_kernel(const char* what) const {
    CHECK(hipDeviceSynchronize());
    int status = 0;
    CHECK(hipMemcpy(&status, bad, sizeof status, hipMemcpyDeviceToHost));
    if (status != 0) give_up(what, xio_status_name(static_cast<xio_status_t>(status)));
  }
};

unsigned char byte_of(int pe, size_t i) {
  return static_cast<unsigned char>(static_cast<size_t>(pe) * 37 + i * 13 + (i >> 8));
}

double seconds_of(const session& s, unsigned char* in, const unsigned char* out, size_t bytes, int times,
                  unsigned groups) {
  CHECK(xio_host_barrier(s.world));
  const auto begin = std::chrono::steady_clock::now();
  hipLaunchKernelGGL(put_to_all, dim3(groups), dim3(256), 0, nullptr, s.ctx, in, out, bytes, times, s.me, s.n, s.bad);
  s.end_of_kernel("put_to_all");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void expect_data(const session& s, const unsigned char* in, size_t bytes) {
  CHECK(xio_host_barrier(s.world));
  std::vector<unsigned char> got(bytes);
  for (int from = 0; from < s.n; ++from) {
    if (from == s.me) continue;
    CHECK(hipMemcpy(got.data(), in + static_cast<size_t>(from) * bytes, bytes, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; ++i)
      if (got[i] != byte_of(from, i)) give_up("the data", "what came is not what was sent");
  }
}

void print(const session& s, double mine, double* all, size_t bytes, int times) {
  CHECK(xio_host_barrier(s.world));
  hipLaunchKernelGGL(send_share, dim3(1), dim3(1), 0, nullptr, s.ctx, all, mine, s.me, s.bad);
  s.end_of_kernel("tell");
  CHECK(xio_host_barrier(s.world));
  if (s.me != 0) return;
  std::vector<double> rates(static_cast<size_t>(s.n));
  CHECK(hipMemcpy(rates.data(), all, rates.size() * sizeof(double), hipMemcpyDeviceToHost));
  double sum = 0;
  for (const double r : rates) sum += r;
  std::printf("%d PEs, %zu bytes to each peer, %d times, route %s: %.1f GB/s leave a PE (least %.1f), %.1f in all\n",
              s.n, bytes, times, xio_route_name(s.world, s.ctx, bytes, 1), sum / s.n,
              *std::min_element(rates.begin(), rates.end()), sum);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : size_t{1} << 20;
  const int times = argc > 2 ? std::atoi(argv[2]) : 20;
  const long groups = argc > 3 ? std::atol(argv[3]) : 32;
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr) size = std::getenv("XIO_TCP_SIZE");
  const size_t pes = size != nullptr ? std::strtoull(size, nullptr, 10) : 1;
  if (bytes == 0 || times < 1 || groups < static_cast<long>(pes) - 1 || groups > 65535)
    give_up("arguments", "all_peers [BYTES [TIMES [WORKGROUPS]]], numbers, and a workgroup for each peer at least");

  session s;
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = std::max<size_t>((pes + 1) * bytes + (size_t{1} << 20), size_t{2} << 20);
  CHECK(xio_init(&attr, &s.world));
  CHECK(xio_ctx_create(s.world, nullptr, &s.ctx));
  s.me = xio_my_pe(s.world);
  s.n = xio_n_pes(s.world);
  if (s.n < 2) give_up("the world", "one PE has no peers; start two at least, as mpirun -np 2");
  CHECK(hipMalloc(&s.bad, sizeof *s.bad));
  CHECK(hipMemset(s.bad, 0, sizeof *s.bad));
  void *in = nullptr, *out = nullptr, *all = nullptr;
  CHECK(xio_malloc(s.world, static_cast<size_t>(s.n) * bytes, &in));
  CHECK(xio_malloc(s.world, bytes, &out));
  CHECK(xio_malloc(s.world, static_cast<size_t>(s.n) * sizeof(double), &all));
  std::vector<unsigned char> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_of(s.me, i);
  CHECK(hipMemcpy(out, data.data(), bytes, hipMemcpyHostToDevice));

  auto* to = static_cast<unsigned char*>(in);
  const auto* from = static_cast<const unsigned char*>(out);
  seconds_of(s, to, from, bytes, 1, static_cast<unsigned>(groups));
  const double took = seconds_of(s, to, from, bytes, times, static_cast<unsigned>(groups));
  expect_data(s, to, bytes);
  const double sent = static_cast<double>(bytes) * times * (s.n - 1);
  print(s, sent / took / 1e9, static_cast<double*>(all), bytes, times);
  CHECK(hipFree(s.bad));
  CHECK(xio_ctx_destroy(s.world, s.ctx));
  CHECK(xio_finalize(s.world));
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
