// SPDX-License-Identifier: MIT
#include <xio/hip.h>

#include <thread>
#include <vector>

#include "tools/xio-verify/litmus_parties.hpp"

namespace xio::verify {
namespace {

// More than half of the 64 KiB of workgroup memory that a compute unit of AMD's has: parties then run on different
// units, with caches of their own.
#if defined(XIO_PLATFORM_HIP)
constexpr unsigned k_shared_bytes = 40 * 1024;
#else
constexpr unsigned k_shared_bytes = 0;
#endif

// The party of the block'th workgroup: the block'th bit that is set.
__device__ inline u32 party_of(u32 block, u32 parties) {
  for (u32 party = 0; party < k_parties_max; ++party)
    if ((parties >> party & 1) != 0 && block-- == 0) return party;
  return k_parties_max;
}

// Keeps caches and buses busy until the first party has done.
__device__ inline void make_traffic(const litmus_work& w, const u64* until) {
  const u64 begin = dev::wall_clock();
  u32 at = (blockIdx.x * 4099u + threadIdx.x) % w.scratch_words;
  while (load_relaxed(until) != ~u64{0} && load_relaxed(gave_up(w)) == 0 && dev::wall_clock() - begin < w.gpu_ticks) {
    for (u32 k = 0; k < 32; ++k) {
      w.scratch[at] += k;
      at = (at + 977) % w.scratch_words;
    }
    keep_program_order();
    if (dev::k_pauses_at_once) dev::pause();
  }
}

__global__ void parties_of_gpu(litmus_work w, int test, u32 on_gpu, u32 parties) {
  const u32 party = party_of(blockIdx.x, on_gpu);
  if (party == k_parties_max) return make_traffic(w, w.gate + party_of(0, on_gpu) * k_words_per_line);
  if (threadIdx.x == 0) play_any(test, w, party, parties);
}

// Where the GPU sees memory of the host. Pages that were registered afterwards have another address there on AMD GPUs.
u64* as_gpu_sees(u64* words) {
  void* seen = words;
#if defined(XIO_PLATFORM_HIP)
  if (hipHostGetDevicePointer(&seen, words, 0) != hipSuccess) seen = words;
  (void)hipGetLastError();  // of memory of a GPU
#elif defined(XIO_PLATFORM_CUDA)
  if (cudaHostGetDevicePointer(&seen, words, 0) != cudaSuccess) seen = words;
  (void)cudaGetLastError();
#endif
  return static_cast<u64*>(seen);
}

u32 bits_in(u32 mask) { return static_cast<u32>(__builtin_popcount(mask)); }

}  // namespace

const char* play(litmus t, const litmus_work& work, u32 on_gpu, u32 on_host, u32 traffic) {
  const u32 parties = facts_of(t).parties;
  const u32 blocks = bits_in(on_gpu) + (work.scratch_words != 0 ? traffic : 0);
  if (on_gpu != 0) {
    litmus_work seen = work;
    for (u64** words : {&seen.data, &seen.flags, &seen.gate, &seen.registers}) *words = as_gpu_sees(*words);
    hipLaunchKernelGGL(parties_of_gpu, dim3(blocks), dim3(64), k_shared_bytes, nullptr, seen, static_cast<int>(t),
                       on_gpu, parties);
    if (const hipError_t e = hipGetLastError(); e != hipSuccess) return hipGetErrorString(e);
  }
  std::vector<std::thread> threads;
  for (u32 party = 0; party < parties; ++party)
    if ((on_host >> party & 1) != 0) threads.emplace_back([=] { play_any(static_cast<int>(t), work, party, parties); });
  for (std::thread& one : threads) one.join();
  const hipError_t e = hipDeviceSynchronize();
  return e == hipSuccess ? nullptr : hipGetErrorString(e);
}

}  // namespace xio::verify
