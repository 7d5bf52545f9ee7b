// SPDX-License-Identifier: MIT
// HIP's own calls on the software GPU, without XIO: memory, copies of all kinds, kernels, streams, events, errors.
#include <hip/hip_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  std::printf("hip_calls.hip:%d: %s\n", line, what);
}
#define EXPECT(holds) expect(holds, #holds, __LINE__)
#define HIP(call) expect((call) == hipSuccess, #call, __LINE__)

constexpr std::uint32_t k_poison = 0xa5a5a5a5u;

std::uint32_t value_at(std::uint32_t i) { return i * 2654435761u + 12345u; }

__global__ void add(std::uint32_t* to, const std::uint32_t* from, std::uint32_t more, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] + more;
}

// Each workgroup turns its part round in LDS.
__global__ void turn_round(std::uint32_t* data) {
  __shared__ std::uint32_t part[256];
  const std::uint32_t i = blockIdx.x * 256 + threadIdx.x;
  part[255 - threadIdx.x] = data[i];
  __syncthreads();
  data[i] = part[threadIdx.x];
}

__global__ void wait_for(volatile std::uint32_t* flag, std::uint32_t* seen) {
  while (__hip_atomic_load(const_cast<std::uint32_t*>(flag), __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  *seen = 1;
}
__global__ void set(std::uint32_t* flag) { __hip_atomic_store(flag, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM); }

// Memory of each work-item's own, by an index that is not known to the compiler.
__global__ void scratch(std::uint32_t* to, const std::uint32_t* order, std::uint32_t rounds) {
  std::uint32_t own[64];
  for (std::uint32_t i = 0; i < 64; ++i) own[i] = threadIdx.x + i;
  for (std::uint32_t r = 0; r < rounds; ++r) own[order[r] & 63] += r;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < 64; ++i) sum += own[i] * (i + 1);
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void copies(std::size_t bytes) {
  const auto words = static_cast<std::uint32_t>(bytes / 4);
  std::vector<std::uint32_t> in(words), out(words + 2, k_poison);
  for (std::uint32_t i = 0; i < words; ++i) in[i] = value_at(i);
  void *a = nullptr, *b = nullptr, *pinned = nullptr;
  HIP(hipMalloc(&a, bytes));
  HIP(hipMalloc(&b, bytes));
  HIP(hipHostMalloc(&pinned, bytes, 0));
  HIP(hipMemcpy(a, in.data(), bytes, hipMemcpyHostToDevice));
  HIP(hipMemcpy(b, a, bytes, hipMemcpyDeviceToDevice));
  HIP(hipMemcpy(pinned, b, bytes, hipMemcpyDeviceToHost));
  HIP(hipMemcpy(out.data() + 1, pinned, bytes, hipMemcpyHostToHost));
  EXPECT(std::memcmp(out.data() + 1, in.data(), bytes) == 0);
  EXPECT(out.front() == k_poison && out.back() == k_poison);
  std::memset(out.data(), 0x5a, out.size() * 4);
  HIP(hipMemcpy(out.data() + 1, b, bytes, hipMemcpyDefault));
  EXPECT(std::memcmp(out.data() + 1, in.data(), bytes) == 0);
  EXPECT(out.front() == 0x5a5a5a5au && out.back() == 0x5a5a5a5au);
  HIP(hipMemset(a, 0x33, bytes));
  HIP(hipMemcpy(out.data() + 1, a, bytes, hipMemcpyDeviceToHost));
  bool all = true;
  for (std::uint32_t i = 0; i < words; ++i) all &= out[i + 1] == 0x33333333u;
  EXPECT(all);
  HIP(hipFree(a));
  HIP(hipFree(b));
  HIP(hipHostFree(pinned));
}

void kernels() {
  constexpr std::uint32_t k_count = 1000, k_blocks = 4, k_part = 256;
  std::uint32_t *from = nullptr, *to = nullptr;
  HIP(hipMalloc(&from, 4096));
  HIP(hipMalloc(&to, 4096));
  std::vector<std::uint32_t> in(1024), out(1024);
  for (std::uint32_t i = 0; i < 1024; ++i) in[i] = value_at(i);
  HIP(hipMemcpy(from, in.data(), 4096, hipMemcpyHostToDevice));
  HIP(hipMemset(to, 0xa5, 4096));
  hipStream_t stream = nullptr;
  hipEvent_t begin = nullptr, end = nullptr;
  HIP(hipStreamCreate(&stream));
  HIP(hipEventCreate(&begin));
  HIP(hipEventCreate(&end));
  HIP(hipEventRecord(begin, stream));
  add<<<k_blocks, k_part, 0, stream>>>(to, from, 7, k_count);
  HIP(hipEventRecord(end, stream));
  HIP(hipStreamSynchronize(stream));
  float ms = -1;
  HIP(hipEventElapsedTime(&ms, begin, end));
  EXPECT(ms >= 0 && ms < 10000);
  HIP(hipMemcpy(out.data(), to, 4096, hipMemcpyDeviceToHost));
  bool all = true;
  for (std::uint32_t i = 0; i < 1024; ++i) all &= out[i] == (i < k_count ? value_at(i) + 7 : k_poison);
  EXPECT(all);
  turn_round<<<k_blocks, k_part>>>(from);
  HIP(hipDeviceSynchronize());
  HIP(hipMemcpy(out.data(), from, 4096, hipMemcpyDeviceToHost));
  all = true;
  for (std::uint32_t i = 0; i < 1024; ++i) all &= out[i] == value_at(i / 256 * 256 + 255 - i % 256);
  EXPECT(all);
  HIP(hipEventDestroy(begin));
  HIP(hipEventDestroy(end));
  HIP(hipStreamDestroy(stream));
  HIP(hipFree(from));
  HIP(hipFree(to));
}

// A kernel that waits for another kernel, and one that waits for the host.
void waits() {
  hipStream_t first = nullptr, second = nullptr;
  HIP(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  std::uint32_t* words = nullptr;
  HIP(hipHostMalloc(&words, 4096, hipHostMallocCoherent));
  std::memset(words, 0, 4096);
  wait_for<<<1, 1, 0, first>>>(words, words + 1);
  set<<<1, 1, 0, second>>>(words);
  HIP(hipStreamSynchronize(second));
  HIP(hipStreamSynchronize(first));
  EXPECT(words[1] == 1);
  wait_for<<<1, 1, 0, first>>>(words + 2, words + 3);
  EXPECT(hipStreamQuery(first) == hipErrorNotReady);
  __atomic_store_n(words + 2, 1u, __ATOMIC_RELEASE);
  HIP(hipStreamSynchronize(first));
  EXPECT(words[3] == 1);
  HIP(hipStreamDestroy(first));
  HIP(hipStreamDestroy(second));
  HIP(hipHostFree(words));
}

void registered() {
  std::vector<std::uint32_t> mine(3000, 5);
  std::uint32_t* seen = nullptr;
  HIP(hipHostRegister(mine.data(), mine.size() * 4, hipHostRegisterMapped));
  HIP(hipHostGetDevicePointer(reinterpret_cast<void**>(&seen), mine.data(), 0));
  add<<<12, 256>>>(seen, seen, 3, 3000);
  HIP(hipDeviceSynchronize());
  bool all = true;
  for (const std::uint32_t v : mine) all &= v == 8;
  EXPECT(all);
  HIP(hipHostUnregister(mine.data()));
}

void own_memory() {
  constexpr std::uint32_t k_rounds = 100, k_threads = 128, k_blocks = 3;
  std::uint32_t *to = nullptr, *order = nullptr;
  HIP(hipMalloc(&to, k_threads * k_blocks * 4));
  HIP(hipMalloc(&order, k_rounds * 4));
  std::vector<std::uint32_t> steps(k_rounds), out(k_threads * k_blocks);
  for (std::uint32_t r = 0; r < k_rounds; ++r) steps[r] = value_at(r) >> 7;
  HIP(hipMemcpy(order, steps.data(), k_rounds * 4, hipMemcpyHostToDevice));
  scratch<<<k_blocks, k_threads>>>(to, order, k_rounds);
  HIP(hipDeviceSynchronize());
  HIP(hipMemcpy(out.data(), to, out.size() * 4, hipMemcpyDeviceToHost));
  bool all = true;
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    std::uint32_t own[64], sum = 0;
    for (std::uint32_t k = 0; k < 64; ++k) own[k] = i % k_threads + k;
    for (std::uint32_t r = 0; r < k_rounds; ++r) own[steps[r] & 63] += r;
    for (std::uint32_t k = 0; k < 64; ++k) sum += own[k] * (k + 1);
    all &= out[i] == sum;
  }
  EXPECT(all);
  HIP(hipFree(to));
  HIP(hipFree(order));
}

void errors() {
  void* p = nullptr;
  EXPECT(hipMalloc(&p, std::size_t{1} << 44) == hipErrorOutOfMemory);
  static_cast<void>(hipGetLastError());
}

void peers() {
  int gpus = 0;
  HIP(hipGetDeviceCount(&gpus));
  if (gpus < 2) return;
  int can = 0;
  HIP(hipDeviceCanAccessPeer(&can, 0, 1));
  EXPECT(can == 1);
  std::uint32_t *own = nullptr, *peer = nullptr;
  HIP(hipSetDevice(1));
  HIP(hipMalloc(&peer, 4096));
  HIP(hipMemset(peer, 0, 4096));
  HIP(hipDeviceSynchronize());
  HIP(hipSetDevice(0));
  HIP(hipDeviceEnablePeerAccess(1, 0));
  HIP(hipMalloc(&own, 4096));
  std::vector<std::uint32_t> in(1024, 41), out(1024);
  HIP(hipMemcpy(own, in.data(), 4096, hipMemcpyHostToDevice));
  add<<<4, 256>>>(peer, own, 1, 1024);
  HIP(hipDeviceSynchronize());
  HIP(hipMemcpyPeer(own, 0, peer, 1, 4096));
  HIP(hipMemcpy(out.data(), own, 4096, hipMemcpyDeviceToHost));
  bool all = true;
  for (const std::uint32_t v : out) all &= v == 42;
  EXPECT(all);
  HIP(hipFree(own));
  HIP(hipFree(peer));
}

}  // namespace

// A page of a device's registers, as AMD's driver package takes it.
void register_page() {
  const int file = memfd_create("registers", 0);
  EXPECT(ftruncate(file, 4096) == 0);
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  EXPECT(page != MAP_FAILED);
  HIP(hipHostRegister(page, 4096, hipHostRegisterMapped | hipHostRegisterIoMemory));
  void* seen = nullptr;
  HIP(hipHostGetDevicePointer(&seen, page, 0));
  set<<<1, 1>>>(static_cast<std::uint32_t*>(seen));
  HIP(hipDeviceSynchronize());
  EXPECT(*static_cast<volatile std::uint32_t*>(page) == 1);
  HIP(hipHostUnregister(page));
  munmap(page, 4096);
  close(file);
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"copies", [] { copies(4096); }},
               {"large_copies", [] { copies((5u << 20) + 4); }},
               {"kernels", kernels},
               {"waits", waits},
               {"registered", registered},
               {"register_page", register_page},
               {"own_memory", own_memory},
               {"errors", errors},
               {"peers", peers}};
  for (const auto& part : parts) {
    if (argc > 1 && std::strcmp(argv[1], part.name) != 0) continue;
    const int before = failures;
    part.run();
    std::printf("%s: %s\n", part.name, failures == before ? "ok" : "FAILED");
    std::fflush(stdout);
  }
  return failures == 0 ? 0 : 1;
}
