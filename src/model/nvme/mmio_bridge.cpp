// SPDX-License-Identifier: MIT
#include "model/nvme/mmio_bridge.hpp"
#include "base/sleeper.hpp"

namespace xio::model::nvme {

namespace bridge = wire::mmio_bridge;

mmio_bridge::mmio_bridge(std::byte* ring, std::size_t bytes, std::uint32_t bdf, void* registers,
                         std::size_t register_bytes)
    : ring_(ring),
      depth_(bridge::depth_of(bytes)),
      bdf_(bdf),
      registers_(static_cast<unsigned char*>(registers)),
      register_bytes_(register_bytes) {
  auto* m = reinterpret_cast<bridge::meta*>(ring_);
  *m = bridge::meta{0, 0, depth_, 0};
}

bool mmio_bridge::poll() {
  auto* m = reinterpret_cast<bridge::meta*>(ring_);
  const std::uint32_t end = __atomic_load_n(&m->producer, __ATOMIC_ACQUIRE);
  const bool some = next_ != end;
  for (; next_ != end; ++next_) {
    auto& c = *reinterpret_cast<bridge::command*>(ring_ + bridge::slot_of(next_, depth_));
    if (__atomic_load_n(&c.status, __ATOMIC_ACQUIRE) == bridge::k_pending) execute(c);
  }
  if (some) __atomic_store_n(&m->consumer, next_, __ATOMIC_RELEASE);
  return some;
}

void mmio_bridge::execute(bridge::command& c) {
  const bool fits = (c.size == 4 || c.size == 8) && c.offset % c.size == 0 && c.offset < register_bytes_ &&
                    c.size <= register_bytes_ - c.offset;
  const bool sound = fits && c.bdf == bdf_ && c.bar == 0 && (c.what == bridge::k_write || c.what == bridge::k_read);
  if (sound && c.what == bridge::k_write) {
    if (c.size == 4)
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(registers_ + c.offset), static_cast<std::uint32_t>(c.value),
                       __ATOMIC_RELEASE);
    else
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(registers_ + c.offset), c.value, __ATOMIC_RELEASE);
    wake_sleepers();
    writes_.fetch_add(1, std::memory_order_relaxed);
  } else if (sound) {
    c.value = c.size == 4 ? __atomic_load_n(reinterpret_cast<std::uint32_t*>(registers_ + c.offset), __ATOMIC_ACQUIRE)
                          : __atomic_load_n(reinterpret_cast<std::uint64_t*>(registers_ + c.offset), __ATOMIC_ACQUIRE);
  } else {
    errors_.fetch_add(1, std::memory_order_relaxed);
  }
  __atomic_store_n(&c.status, sound ? bridge::k_complete : bridge::k_error, __ATOMIC_RELEASE);
}

}  // namespace xio::model::nvme
