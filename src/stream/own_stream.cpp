// SPDX-License-Identifier: MIT
#include "stream/own_stream.hpp"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace xio::stream {

// Never destroyed: threads may call while the process ends, and the GPU's runtime may be gone by then.
struct own_stream::kept {
  std::mutex lock;
  std::vector<parts> free, lost;
};
own_stream::kept& own_stream::all() {
  static auto* one = new kept;
  return *one;
}

own_stream::own_stream() {
  {
    kept& k = all();
    const std::lock_guard hold(k.lock);
    if (!k.free.empty()) {
      parts_ = std::move(k.free.back());
      k.free.pop_back();
    }
  }
  if (parts_.stream == nullptr) {
    parts_.words = gpu::buffer(2 * sizeof(std::uint64_t), gpu::place::shared);
    parts_.mark = gpu::buffer(sizeof(std::uint32_t), gpu::place::device);
    if (const char* why = make_stream(&parts_.stream))
      fail(XIO_ERR_IO, "the runtime makes no stream for calls of the host: {}", why);
  }
  *status() = XIO_PENDING;
}

own_stream::~own_stream() {
  if (parts_.stream == nullptr) return;
  kept& k = all();
  const std::lock_guard hold(k.lock);
  // A call that is under way stores to its words.
  (given_ && !ended_ ? k.lost : k.free).push_back(std::move(parts_));
}

xio_status_t own_stream::wait(std::uint64_t timeout_ms) {
  using clock = std::chrono::steady_clock;
  constexpr unsigned k_yields = 2000;
  given_ = true;
  const auto begin = clock::now();
  for (unsigned turn = 0;; ++turn) {
    const auto found = static_cast<xio_status_t>(__atomic_load_n(reinterpret_cast<int*>(status()), __ATOMIC_ACQUIRE));
    if (found != XIO_PENDING) {
      ended_ = true;
      if (found != XIO_OK) gpu::fill_zero(parts_.mark.data(), parts_.mark.size());
      return found;
    }
    if (turn < k_yields) {
      std::this_thread::yield();
      continue;
    }
    if (timeout_ms != 0 && clock::now() - begin > std::chrono::milliseconds(timeout_ms)) return XIO_PENDING;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace xio::stream
