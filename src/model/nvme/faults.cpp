// SPDX-License-Identifier: MIT
#include "model/nvme/faults.hpp"
#include "model/chance.hpp"
#include "model/fault_text.hpp"

namespace xio::model::nvme {

fault_plan plan_faults(const std::string& text) {
  if (text.empty()) return {};
  fault_rules all = parse_faults(text);
  return fault_plan{std::move(all.drive), all.seed, all.shuffle};
}

void fault_list::add(const fault& f) {
  std::lock_guard hold(lock_);
  faults_.push_back(f);
  any_.store(true, std::memory_order_release);
}

void fault_list::seed(std::uint64_t s) {
  std::lock_guard hold(lock_);
  seed_ = s;
}

std::optional<fault> fault_list::find(const occasion& o) {
  std::lock_guard hold(lock_);
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    fault& f = faults_[i];
    if (f.times == 0 || f.opcode.value_or(o.opcode) != o.opcode || f.nth.value_or(o.nth) != o.nth ||
        f.queue.value_or(o.queue) != o.queue || o.lba > f.last_lba || o.lba + o.blocks <= f.first_lba || !strikes(i, o))
      continue;
    --f.times;
    return f;
  }
  return std::nullopt;
}

// Drawn from what names the occasion, so that other queues' commands change nothing.
bool fault_list::strikes(std::size_t index, const occasion& o) const {
  return faults_[index].chance >= 1 || drawn({seed_, o.queue, o.nth, index}, faults_[index].chance);
}

}  // namespace xio::model::nvme
