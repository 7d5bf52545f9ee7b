// SPDX-License-Identifier: MIT
#include "transport/nvme/doorbell_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_clock.hpp"
#include "gpu/gpu.hpp"
#include "transport/nvme/status_text.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

constexpr std::size_t k_tried = 8;
constexpr std::chrono::milliseconds k_longest{5000};
constexpr std::chrono::microseconds k_pause{50};

struct posted : tried_queue {
  std::uint32_t tail;
};

// Ends the queues whose commands have not ended, before the memory that they would write to is gone.
struct posted_queues {
  ~posted_queues() {
    for (const posted& q : left) q.queue->stop();
  }
  std::vector<posted> left;
};

// Takes the completions of those that are left; returns how many have none within the time.
std::size_t await(const queue_maker& d, std::vector<posted>& left, std::chrono::milliseconds patience) {
  const auto until = run_clock::now() + patience;
  for (;; std::this_thread::sleep_for(k_pause)) {
    std::erase_if(left, [&](const posted& q) {
      const auto status = q.queue->take_first(q.host.cq);
      if (status.value_or(w::k_ok) != w::k_ok)
        log::debug("{}: block 0 cannot be read: {}", d.name(), status_text(*status));
      return status.has_value();
    });
    if (left.empty() || run_clock::now() > until) return left.size();
  }
}

}  // namespace

bool kernels_ring(const queue_maker& d, const std::vector<tried_queue>& all, const nvme_options& o) {
  const drive_facts& f = d.facts();
  if (f.block_bytes > f.page_bytes) {
    log::debug("{}: its doorbells are not tried: a block of {} bytes is longer than a page", d.name(), f.block_bytes);
    return true;
  }
  const std::size_t n = std::min(all.size(), k_tried);
  const drive_memory blocks(d.memory_bus(), n * f.page_bytes);
  posted_queues queues;
  std::vector<posted>& left = queues.left;
  std::vector<gpu::doorbell> doorbells;
  for (std::size_t i = 0; i < n; ++i) {
    const auto read = w::make_io(w::opcode::read, 0, f.nsid, blocks.address() + i * f.page_bytes, 0, 0, 1);
    left.push_back({all[i], all[i].queue->post_first(read)});
    doorbells.push_back({left[i].kernels, left[i].tail, sizeof left[i].tail});
  }
  gpu::ring_by_kernel(doorbells);
  const auto patience = o.timeout_ms == 0 ? k_longest : std::min(k_longest, std::chrono::milliseconds(o.timeout_ms));
  const std::size_t lost = await(d, left, patience);
  if (lost == 0) return true;
  for (const posted& q : left) __atomic_store_n(q.host.sq, q.tail, __ATOMIC_RELEASE);
  if (await(d, left, patience) != 0)
    fail(XIO_ERR_TIMEOUT,
         "{} has not completed a read of block 0 within {} ms, rung by a kernel and then by the host; reset it",
         d.name(), patience.count());
  const std::string what = fmt::format("{}: {} of {} doorbells that a kernel rang at once did not arrive within {} ms",
                                       d.name(), lost, n, patience.count());
  if (o.nvme_doorbell == option::nvme_doorbell::bar)
    fail(XIO_ERR_UNSUPPORTED, "{}, and XIO_NVME_DOORBELL=bar asks for no other way; use host or auto", what);
  log::warn("{}: a host thread rings its doorbells", what);
  return false;
}

}  // namespace xio::nvme
