// SPDX-License-Identifier: MIT
// GPU memory of one process that another one opens: hipIpcGetMemHandle, hipIpcOpenMemHandle, and kernels on both sides.
#include <hip/hip_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::uint32_t k_words = 1u << 20;  // 4 MiB: a block of its own

__global__ void fill(std::uint32_t* to, std::uint32_t first) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < k_words) to[i] = first + i;
}

#define MUST(call)                                                                \
  if (const hipError_t e = (call)) {                                              \
    std::printf("share.hip:%d: %s: %s\n", __LINE__, #call, hipGetErrorString(e)); \
    return 1;                                                                     \
  }

bool holds(const std::uint32_t* at, std::uint32_t first) {
  std::vector<std::uint32_t> got(k_words);
  if (hipMemcpy(got.data(), at, k_words * 4, hipMemcpyDeviceToHost) != hipSuccess) return false;
  for (std::uint32_t i = 0; i < k_words; ++i)
    if (got[i] != first + i) return false;
  return true;
}

int other(int from, int to) {
  hipIpcMemHandle_t handle;
  if (read(from, &handle, sizeof handle) != sizeof handle) return 1;
  int gpus = 0;
  MUST(hipGetDeviceCount(&gpus));
  MUST(hipSetDevice(gpus - 1));
  void* there = nullptr;
  MUST(hipIpcOpenMemHandle(&there, handle, hipIpcMemLazyEnablePeerAccess));
  auto* words = static_cast<std::uint32_t*>(there);
  if (!holds(words, 1000)) {
    std::puts("the other process does not see what the first wrote");
    return 1;
  }
  fill<<<k_words / 256, 256>>>(words, 2000);
  MUST(hipDeviceSynchronize());
  MUST(hipIpcCloseMemHandle(there));
  return write(to, "x", 1) == 1 ? 0 : 1;
}

int first(int from, int to) {
  std::uint32_t* mine = nullptr;
  MUST(hipMalloc(&mine, k_words * 4));
  fill<<<k_words / 256, 256>>>(mine, 1000);
  MUST(hipDeviceSynchronize());
  hipIpcMemHandle_t handle;
  MUST(hipIpcGetMemHandle(&handle, mine));
  if (write(to, &handle, sizeof handle) != sizeof handle) return 1;
  char done = 0;
  if (read(from, &done, 1) != 1) return 1;
  if (!holds(mine, 2000)) {
    std::puts("the first process does not see what the other wrote");
    return 1;
  }
  MUST(hipFree(mine));
  return 0;
}

}  // namespace

int main() {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 2;
  // Before anything of HIP is there.
  const pid_t child = fork();
  if (child == 0) {
    close(there[1]);
    close(back[0]);
    return other(there[0], back[1]);
  }
  close(there[0]);
  close(back[1]);
  const int here = first(back[0], there[1]);
  close(there[1]);
  int status = 0;
  waitpid(child, &status, 0);
  return here != 0 || status != 0 ? 1 : 0;
}
