// SPDX-License-Identifier: MIT
// Thousands of workgroups that contend for one ring, far more than run at a time; and kernels on several streams that
// share a ctx. Every word arrives once, and every signal is counted.
#include "rig.hpp"

namespace {

constexpr unsigned k_groups = 3000, k_threads = 40;
constexpr unsigned k_streams = 4, k_launches = 5, k_stream_groups = 6;
constexpr unsigned k_words = 24;  // a workgroup's part of what a launch sends

// Of a group's threads two post: one of the first wave and, where waves have 32 lanes, one of the second.
__device__ inline bool posts(unsigned thread) { return thread == 0 || thread == 33; }

__global__ void crowd(xio_ctx_t ctx, uint64_t* in, const uint64_t* out, uint64_t* signal, int to, int* bad) {
  const unsigned thread = threadIdx.x;
  if (posts(thread)) {
    const size_t at = 2 * static_cast<size_t>(blockIdx.x) + (thread == 0 ? 0 : 1);
    xio_status_t s = XIO_OK;
    if (thread == 0)
      xio_put_nbi(ctx, in + at, out + at, sizeof *in, to);
    else
      s = xio_put_signal(ctx, in + at, out + at, sizeof *in, signal, 1, XIO_SIGNAL_ADD, to);
    if (s != XIO_OK) atomicCAS(bad, 0, s);
  }
  // One in a hundred waits for all of it: most must not.
  if (blockIdx.x % 100 != 0) return;
  const xio_status_t s = xio_quiet_wg(ctx);
  if (s != XIO_OK) atomicCAS(bad, 0, s);
}

// Launch `launch` of a stream: each workgroup sends its words and a signal.
__global__ void stream_work(xio_ctx_t ctx, uint64_t* in, const uint64_t* out, uint64_t* signal, int to, int* bad) {
  const size_t at = static_cast<size_t>(blockIdx.x) * k_words;
  xio_put_signal_nbi_wg(ctx, in + at, out + at, k_words * sizeof *in, signal, 1, XIO_SIGNAL_ADD, to);
  const xio_status_t s = xio_quiet_wg(ctx);
  if (s != XIO_OK) atomicCAS(bad, 0, s);
}

uint64_t word_of(int pe, size_t i) { return static_cast<uint64_t>(pe + 1) * 1000003u + i * 7919u; }

std::vector<uint64_t> words_of(int pe, size_t count) {
  std::vector<uint64_t> words(count);
  for (size_t i = 0; i < count; ++i) words[i] = word_of(pe, i);
  return words;
}

void expect_words(const std::vector<uint64_t>& got, int from, const char* what) {
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != word_of(from, i);
  rig::expect(wrong == 0, "%s: %zu of %zu words are wrong", what, wrong, got.size());
}

// Memory that each workgroup asks for and does not use: so that not all of the GPU is taken by workgroups that wait.
// The software NIC reaches a GPU's memory by kernels of its own, and these want room.
#if defined(XIO_ON_HOST)
constexpr unsigned k_room = 0;
#else
constexpr unsigned k_room = 40 << 10;
#endif

void one_ring(const rig::team& t) {
  constexpr size_t k_count = 2 * k_groups;
  auto* out = t.symmetric<uint64_t>(k_count);
  auto* in = t.symmetric<uint64_t>(k_count);
  auto* signal = t.symmetric<uint64_t>(1);
  rig::team::write(out, words_of(t.me, k_count));
  t.barrier();
  const rig::device_array<int> bad(1);
  hipLaunchKernelGGL(crowd, dim3(k_groups), dim3(k_threads), k_room, nullptr, t.ctx, in, out, signal, t.right,
                     bad.data());
  MUST(hipGetLastError());
  MUST(hipDeviceSynchronize());
  rig::expect_status(bad.get()[0], XIO_OK, "the crowd");
  t.barrier();
  expect_words(rig::team::read(in, k_count), t.left, "the crowd");
  rig::expect(rig::team::read(signal, 1)[0] == k_groups, "the crowd: signals");
}

void several_streams(const rig::team& t) {
  constexpr size_t k_launch = k_stream_groups * k_words, k_count = k_streams * k_launches * k_launch;
  auto* out = t.symmetric<uint64_t>(k_count);
  auto* in = t.symmetric<uint64_t>(k_count);
  auto* signals = t.symmetric<uint64_t>(k_streams);
  rig::team::write(out, words_of(t.me, k_count));
  t.barrier();
  const rig::device_array<int> bad(1);
  hipStream_t streams[k_streams];
  for (hipStream_t& s : streams) MUST(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
  for (unsigned launch = 0; launch < k_launches; ++launch)
    for (unsigned s = 0; s < k_streams; ++s) {
      const size_t at = (s * k_launches + launch) * k_launch;
      hipLaunchKernelGGL(stream_work, dim3(k_stream_groups), dim3(96), 0, streams[s], t.ctx, in + at, out + at,
                         signals + s, t.right, bad.data());
      MUST(hipGetLastError());
    }
  for (hipStream_t& s : streams) {
    MUST(hipStreamSynchronize(s));
    MUST(hipStreamDestroy(s));
  }
  rig::expect_status(bad.get()[0], XIO_OK, "several streams");
  t.barrier();
  expect_words(rig::team::read(in, k_count), t.left, "several streams");
  for (const uint64_t got : rig::team::read(signals, k_streams))
    rig::expect(got == k_launches * k_stream_groups, "several streams: %llu signals", rig::ull(got));
}

}  // namespace

int main() {
  rig::options o;
  // Unless the environment names a depth.
  o.ring_depth = std::getenv("XIO_RING_DEPTH") != nullptr ? 0 : 64;
  const rig::team t(o);
  one_ring(t);
  several_streams(t);
  return rig::verdict("crowd", t);
}
