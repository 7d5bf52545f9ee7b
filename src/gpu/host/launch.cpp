// SPDX-License-Identifier: MIT
#include "gpu/host/launch.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "gpu/host/fibers.hpp"
#include "gpu/host/pool.hpp"
#include "gpu/host/settings.hpp"
#include "gpu/host/threads.hpp"

namespace xio::host_exec {

void launch::fail_with(const std::string& sentence) {
  const std::lock_guard lock(guard_);
  if (sentence_.empty()) {
    sentence_ = sentence;
    log::error("a kernel failed: {}", sentence);
  }
  failed.store(true, std::memory_order_release);
}

std::string launch::failure() {
  const std::lock_guard lock(guard_);
  return sentence_;
}

std::string check_launch(const launch& l) {
  const auto empty = [](const index3& size) { return size.x == 0 || size.y == 0 || size.z == 0; };
  if (empty(l.grid) || empty(l.block)) return "a kernel launch needs at least one workgroup of one thread";
  const std::uint64_t threads = std::uint64_t{l.block.x} * l.block.y * l.block.z;
  if (l.block.x > k_max_workgroup || l.block.y > k_max_workgroup || l.block.z > k_max_workgroup ||
      threads > k_max_workgroup)
    return fmt::format("a workgroup of {}x{}x{} threads is larger than {}; use more and smaller workgroups", l.block.x,
                       l.block.y, l.block.z, k_max_workgroup);
  return {};
}

namespace {

void run_fibers(launch& l) {
  static thread_local fiber_workgroup group;  // its stacks stay with the thread
  try {
    while (!l.failed.load(std::memory_order_relaxed)) {
      const std::uint64_t next = l.next.fetch_add(1, std::memory_order_relaxed);
      if (next >= l.workgroups) break;
      group.run(l, next);
    }
  } catch (const std::exception& e) {
    l.fail_with(e.what());
  }
}

}  // namespace

void start(const std::shared_ptr<launch>& l) {
  const settings& s = config();
  l->workgroups = std::uint64_t{l->grid.x} * l->grid.y * l->grid.z;
  unsigned resident = static_cast<unsigned>(std::min<std::uint64_t>(l->workgroups, s.cus));
  const auto finished = [l] { l->on_finished(*l); };
  if (!s.threads)
    return run_on_threads(
        resident, [l](unsigned) { run_fibers(*l); }, finished);
  const unsigned team = l->block_threads();
  resident = std::max(1u, std::min(resident, k_max_threads / team));
  const auto groups = std::make_shared<std::vector<std::unique_ptr<thread_workgroup>>>();
  for (unsigned i = 0; i < resident; ++i) groups->push_back(std::make_unique<thread_workgroup>(team));
  run_on_threads(
      resident * team, [l, groups, team](unsigned i) { (*groups)[i / team]->serve(*l, i % team); }, finished);
}

}  // namespace xio::host_exec
