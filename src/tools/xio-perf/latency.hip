// SPDX-License-Identifier: MIT
// One put or get after another, each complete before the next begins.
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {

namespace {

template <class Scope>
__global__ void put_latency(work w) {
  timed(w, [&](std::uint32_t) {
    Scope::put_nbi(w, 0, w.bytes);
    keep(w, Scope::quiet(w));
  });
}

template <class Scope>
__global__ void get_latency(work w) {
  timed(w, [&](std::uint32_t) { keep(w, Scope::get(w)); });
}

}  // namespace

void launch_put_latency(scope s, unsigned threads, const work& w) {
  switch (s) {
    case scope::thread: hipLaunchKernelGGL(put_latency<by_thread>, dim3(1), dim3(1), 0, nullptr, w); break;
    case scope::wave: hipLaunchKernelGGL(put_latency<by_wave>, dim3(1), dim3(threads), 0, nullptr, w); break;
    case scope::block: hipLaunchKernelGGL(put_latency<by_block>, dim3(1), dim3(threads), 0, nullptr, w); break;
  }
}

void launch_get_latency(scope s, unsigned threads, const work& w) {
  switch (s) {
    case scope::thread: hipLaunchKernelGGL(get_latency<by_thread>, dim3(1), dim3(1), 0, nullptr, w); break;
    case scope::wave: hipLaunchKernelGGL(get_latency<by_wave>, dim3(1), dim3(threads), 0, nullptr, w); break;
    case scope::block: hipLaunchKernelGGL(get_latency<by_block>, dim3(1), dim3(threads), 0, nullptr, w); break;
  }
}

}  // namespace xio::perf
