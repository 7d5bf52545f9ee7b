// SPDX-License-Identifier: MIT
// A stream is captured in global mode while two PEs talk: another thread of each makes a ctx, puts, and destroys the
// ctx, and XIO's own threads serve software devices. The capture holds, and XIO's calls succeed.
#include "../mpi/rig.hpp"
#include "xio/memory.h"

namespace {

constexpr size_t k_words = 4096;
constexpr uint64_t k_graph_value = 77;

__global__ void put_words(xio_ctx_t ctx, uint64_t* in, const uint64_t* out, int to, int* status) {
  xio_status_t s = xio_put(ctx, in, out, k_words * sizeof *in, to);
  if (s == XIO_OK) s = xio_quiet(ctx);
  *status = s;
}

__global__ void store_value(uint64_t* word, uint64_t value) { *word = value; }

// HIP 5.7 lets nobody wait for a stream or an event meanwhile; to store the status is the kernel's last deed.
void wait_for(const volatile int* status) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (*status == -1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// All that a program does with XIO beside a capture.
void talk(const rig::team& t, uint64_t* in, const uint64_t* out, int* status) {
  hipStream_t stream = nullptr;
  MUST(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    xio_ctx_t ctx;
    MUST(xio_ctx_create(t.world(), &attr, &ctx));
    *status = -1;
    hipLaunchKernelGGL(put_words, dim3(1), dim3(1), 0, stream, ctx, in, out, t.right, status);
    wait_for(status);
    rig::expect_status(*status, XIO_OK, "a put beside a capture");
    t.barrier();
    MUST(xio_ctx_destroy(t.world(), ctx));
    void* block = nullptr;
    MUST(xio_mem_alloc(XIO_MEM_DEVICE_HIP, 1 << 20, nullptr, &block));
    MUST(xio_mem_register(t.world(), block, 1 << 20));
    MUST(xio_mem_unregister(t.world(), block));
    MUST(xio_mem_free(block));
  }
  MUST(hipStreamDestroy(stream));
  // Memory that the library frees behind kernels is freed by a thread of its own.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

void capture_while_talking(const rig::team& t) {
  auto* out = t.symmetric<uint64_t>(k_words);
  auto* in = t.symmetric<uint64_t>(k_words);
  std::vector<uint64_t> words(k_words);
  for (size_t i = 0; i < k_words; ++i) words[i] = static_cast<uint64_t>(t.me + 1) * 1000003u + i;
  rig::team::write(out, words);
  const rig::device_array<uint64_t> word(1);
  int* status = nullptr;
  MUST(hipHostMalloc(&status, sizeof *status));
  int device = 0;
  MUST(hipGetDevice(&device));
  hipStream_t captured = nullptr;
  MUST(hipStreamCreateWithFlags(&captured, hipStreamNonBlocking));
  t.barrier();

  MUST(hipStreamBeginCapture(captured, hipStreamCaptureModeGlobal));
  hipLaunchKernelGGL(store_value, dim3(1), dim3(1), 0, captured, word.data(), k_graph_value);
  std::thread([&] {
    MUST(hipSetDevice(device));
    talk(t, in, out, status);
  }).join();
  hipStreamCaptureStatus is = hipStreamCaptureStatusNone;
  MUST(hipStreamIsCapturing(captured, &is));
  rig::expect(is == hipStreamCaptureStatusActive, "the capture is in state %d", static_cast<int>(is));
  hipGraph_t graph = nullptr;
  MUST(hipStreamEndCapture(captured, &graph));

  rig::expect(word.get()[0] == 0, "what is captured does not run yet");
  hipGraphExec_t ready = nullptr;
  MUST(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  MUST(hipGraphLaunch(ready, captured));
  MUST(hipStreamSynchronize(captured));
  rig::expect(word.get()[0] == k_graph_value, "the graph stored %llu", static_cast<unsigned long long>(word.get()[0]));
  const std::vector<uint64_t> got = rig::team::read(in, k_words);
  size_t wrong = 0;
  const int from = t.left;
  for (size_t i = 0; i < k_words; ++i) wrong += got[i] != static_cast<uint64_t>(from + 1) * 1000003u + i;
  rig::expect(wrong == 0, "%zu of %zu words are wrong", wrong, k_words);
  t.barrier();
  MUST(hipGraphExecDestroy(ready));
  MUST(hipGraphDestroy(graph));
  MUST(hipStreamDestroy(captured));
  MUST(hipHostFree(status));
}

}  // namespace

int main() {
  const rig::team t;
  capture_while_talking(t);
  // Other ctxs than its own put.
  return rig::verdict("capture", t, false);
}
