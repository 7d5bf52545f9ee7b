// SPDX-License-Identifier: MIT
#include "amdgpu/driver/page_table.hpp"

namespace amdgpu {

bool page_table::add(const mapping& m) {
  if (m.bytes == 0 || m.base + (m.bytes - 1) < m.base) return false;
  const auto next = mappings_.lower_bound(m.base);
  if (next != mappings_.end() && next->first - m.base < m.bytes) return false;
  if (find(m.base) != nullptr) return false;
  mappings_.emplace_hint(next, m.base, m);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool page_table::remove(std::uint64_t base) {
  if (mappings_.erase(base) == 0) return false;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

const mapping* page_table::find(std::uint64_t address) const {
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return nullptr;
  const mapping& m = std::prev(next)->second;
  return address - m.base < m.bytes ? &m : nullptr;
}

void* page_table::host(std::uint64_t address, std::uint64_t bytes) const {
  const mapping* m = find(address);
  if (m == nullptr || bytes > m->bytes - (address - m->base)) return nullptr;
  return reinterpret_cast<void*>(m->host + (address - m->base));
}

}  // namespace amdgpu
