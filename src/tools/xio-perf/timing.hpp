// SPDX-License-Identifier: MIT
// Device code that all measuring kernels share: stamps, samples, failures, and who does what.
#pragma once
#include "tools/xio-perf/work.hpp"
#include "xio/xio_device.hpp"

namespace xio::perf {

// Of samples. On NVIDIA GPUs the wall clock moves in steps that are longer than what is measured: cycles, which the
// host scales by the wall clock's view of all of them.
XIO_DEVICE std::uint64_t stamp() {
#if defined(XIO_ON_CUDA)
  std::uint64_t cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
  return cycles;
#else
  return dev::wall_clock();
#endif
}

// Returns whether it is good; else reports it to the host.
XIO_DEVICE bool keep(const work& w, xio_status_t status) {
  if (status == XIO_OK) return true;
  // The first failure is the cause, but for a timeout: what it had waited for may say why later.
  int was = XIO_OK;
  while ((was == XIO_OK || was == XIO_ERR_TIMEOUT) &&
         !dev::compare_exchange<dev::scope::agent, dev::order::relaxed>(w.status, was, static_cast<int>(status))) {
  }
  return false;
}

// The same value, and the compiler does not know what it is or where it came from: an address, say, is then kept in
// registers instead of being worked out again.
template <class T>
XIO_DEVICE T held(T value) {
#if defined(XIO_ON_CUDA)
  if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
#elif defined(XIO_ON_HIP)
  asm volatile("" : "+v"(value));
#endif
  return value;
}

// The same number or address, and not what the kernel was given: an NVIDIA GPU would fetch that anew for every op, and
// wait for it. A program's own addresses and lengths are in registers, too.
template <class T>
XIO_DEVICE T in_register(T value) {
#if defined(XIO_ON_CUDA)
  // 0, which the assembler does not know.
  const std::uint32_t nothing = static_cast<std::uint32_t>(stamp() >> 63);
  return static_cast<T>(held(value + nothing));
#else
  return value;
#endif
}

// The arguments of an op that is repeated.
struct operands {
  char* dst;
  const char* src;
  std::size_t bytes;
  int peer;

  XIO_DEVICE static operands of(const work& w) {
    return {in_register(w.dst), in_register(w.src), in_register(w.bytes), in_register(w.peer)};
  }
};

// A PE's bytes as single values.
template <class T>
XIO_DEVICE T* values(char* p) {
  return reinterpret_cast<T*>(p);
}
template <class T>
XIO_DEVICE const T* values(const char* p) {
  return reinterpret_cast<const T*>(p);
}

// How one kind of caller calls.
#define XIO_PERF_SCOPE(name, suffix, group_type)                                                               \
  struct name {                                                                                                \
    using group = dev::group_type;                                                                             \
    XIO_DEVICE static xio_req_t put_nbi(const work& w, const operands& o) {                                    \
      return xio_put_nbi##suffix(w.ctx, o.dst, o.src, o.bytes, o.peer);                                        \
    }                                                                                                          \
    XIO_DEVICE static xio_req_t get_nbi(const work& w, const operands& o) {                                    \
      return xio_get_nbi##suffix(w.ctx, o.dst, o.src, o.bytes, o.peer);                                        \
    }                                                                                                          \
    XIO_DEVICE static xio_status_t get(const work& w, const operands& o) {                                     \
      return xio_get##suffix(w.ctx, o.dst, o.src, o.bytes, o.peer);                                            \
    }                                                                                                          \
    XIO_DEVICE static xio_req_t put_signal_nbi(const work& w, const operands& o, place& at, std::uint64_t v) { \
      return xio_put_signal_nbi##suffix(w.ctx, o.dst, o.src, o.bytes, &at.flag, v, XIO_SIGNAL_SET, o.peer);    \
    }                                                                                                          \
    XIO_DEVICE static xio_status_t quiet(const work& w) { return xio_quiet##suffix(w.ctx); }                   \
    XIO_DEVICE static xio_status_t read(const work& w, char* to, std::uint64_t offset) {                       \
      return xio_read##suffix(w.ctx, to, w.storage, offset, w.bytes);                                          \
    }                                                                                                          \
    XIO_DEVICE static xio_status_t write(const work& w, const char* from, std::uint64_t offset) {              \
      return xio_write##suffix(w.ctx, from, w.storage, offset, w.bytes);                                       \
    }                                                                                                          \
  };
XIO_PERF_SCOPE(by_thread, , thread_group)
XIO_PERF_SCOPE(by_wave, _wave, wave_group)
XIO_PERF_SCOPE(by_block, _wg, workgroup_group)
#undef XIO_PERF_SCOPE

// Which group of the whole grid the caller is in, and how many there are.
XIO_DEVICE unsigned group_index(const by_thread&) { return blockIdx.x * blockDim.x + threadIdx.x; }
XIO_DEVICE unsigned group_count(const by_thread&) { return gridDim.x * blockDim.x; }
XIO_DEVICE unsigned group_index(const by_wave&) {
  return blockIdx.x * (blockDim.x / dev::wave_size()) + threadIdx.x / dev::wave_size();
}
XIO_DEVICE unsigned group_count(const by_wave&) { return gridDim.x * (blockDim.x / dev::wave_size()); }
XIO_DEVICE unsigned group_index(const by_block&) { return blockIdx.x; }
XIO_DEVICE unsigned group_count(const by_block&) { return gridDim.x; }

// Runs body(i) one after another, first those that warm up, and keeps what each of the others took. For grids of one
// workgroup; `body` is collective over the threads that call. It returns a status, and the first that is not XIO_OK
// ends it all and is returned: each wait for a peer that is lost takes a whole deadline. The caller reports it to the
// host, so that there is one test behind each op and nothing else.
template <class Body>
XIO_DEVICE xio_status_t timed(const work& w, Body&& body) {
  for (std::uint32_t i = 0; i < w.warm_up; ++i) {
    if (const xio_status_t status = body(i); status != XIO_OK) return status;
  }
  const bool keeps = threadIdx.x == 0;
  std::uint64_t* const samples = in_register(w.samples);
  const std::uint32_t before = in_register(w.warm_up);
  span all;
  all.begin = dev::wall_clock();
  all.first = stamp();
  std::uint64_t last = all.first;
  for (std::uint32_t i = 0; i < w.iterations; ++i) {
    if (const xio_status_t status = body(before + i); status != XIO_OK) return status;
    const std::uint64_t now = stamp();
    if (keeps) samples[i] = now - last;
    last = now;
  }
  all.last = last;
  all.end = dev::wall_clock();
  if (keeps) w.spans[0] = all;
  return XIO_OK;
}

// Waits until every workgroup has come to the end of iteration i. False, for all of the workgroup, when one did not
// come in time.
XIO_DEVICE bool wait_for_others(const work& w, std::uint32_t i) {
  XIO_SHARED(int, came);
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint64_t all = static_cast<std::uint64_t>(gridDim.x) * (i + 1);
    const xio_deadline_t end = xio_deadline(w.ctx);
    bool late = false;
    dev::fetch_add<dev::scope::agent, dev::order::acq_rel>(w.gate, std::uint64_t{1});
    while (!late && dev::load<dev::scope::agent, dev::order::acquire>(w.gate) < all) {
      late = !xio_pause_until(end);
    }
    if (late) keep(w, XIO_ERR_TIMEOUT);
    came = late ? 0 : 1;
  }
  __syncthreads();
  return came != 0;
}

// Runs body() for every iteration on all workgroups, completes what they did, and keeps how long it took.
template <class Body>
XIO_DEVICE void streamed(const work& w, Body&& body) {
  span all{dev::wall_clock(), 0, 0, 0};
  for (std::uint32_t i = 0; i < w.iterations; ++i) {
    body(i);
    if (w.lockstep != 0 && !wait_for_others(w, i)) break;
  }
  keep(w, xio_quiet_wg(w.ctx));
  all.end = dev::wall_clock();
  if (threadIdx.x == 0) w.spans[blockIdx.x] = all;
}

// Of a latency test: a thread that calls is alone.
inline dim3 threads_of(scope s, unsigned threads) { return dim3(s == scope::thread ? 1 : threads); }

}  // namespace xio::perf

// Starts a kernel for values as long as was asked.
#define XIO_PERF_BY_SIZE(kernel, grid, block)                              \
  if (w.element == 4) {                                                    \
    hipLaunchKernelGGL(kernel<std::uint32_t>, grid, block, 0, nullptr, w); \
  } else {                                                                 \
    hipLaunchKernelGGL(kernel<std::uint64_t>, grid, block, 0, nullptr, w); \
  }

#define XIO_PERF_BY_ANY_SIZE(kernel, grid, block)                          \
  if (w.element == 2) {                                                    \
    hipLaunchKernelGGL(kernel<std::uint16_t>, grid, block, 0, nullptr, w); \
  } else {                                                                 \
    XIO_PERF_BY_SIZE(kernel, grid, block)                                  \
  }

// Starts a kernel for callers of scope `s`, which is its first template argument; the others stand behind it.
#define XIO_PERF_BY_SCOPE(s, grid, threads, kernel, ...)                                                     \
  switch (s) {                                                                                               \
    case scope::thread: XIO_PERF_LAUNCH(grid, threads, kernel<by_thread __VA_OPT__(, ) __VA_ARGS__>); break; \
    case scope::wave: XIO_PERF_LAUNCH(grid, threads, kernel<by_wave __VA_OPT__(, ) __VA_ARGS__>); break;     \
    case scope::block: XIO_PERF_LAUNCH(grid, threads, kernel<by_block __VA_OPT__(, ) __VA_ARGS__>); break;   \
  }
#define XIO_PERF_LAUNCH(grid, threads, ...) \
  hipLaunchKernelGGL(HIP_KERNEL_NAME(__VA_ARGS__), grid, threads, 0, nullptr, w)
