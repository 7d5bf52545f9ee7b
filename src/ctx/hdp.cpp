// SPDX-License-Identifier: MIT
#include "ctx/hdp.hpp"

#include <filesystem>

#include "base/log.hpp"
#include "memory/hdp_facts.hpp"
#include "memory/mode.hpp"

namespace xio {
namespace {

static_assert(sizeof(dev::heap_head::hdp_line) >= memory::k_readback_bytes);

// A packet that the software engine takes flushes no real HDP.
bool has_own_copy_queue(engines& e) {
  try {
    return std::string(e.open_sdma().backend()).rfind("model", 0) != 0;
  } catch (const std::exception& x) {
    log::debug("no copy queue for the HDP: {}", x.what());
    return false;
  }
}

bool has_rdma_device() {
  std::error_code error;
  return !std::filesystem::is_empty("/sys/class/infiniband", error) && !error;
}

// Rings are polled without flushing.
void warn_of_completions(const sdma_options& o) {
  const std::uint64_t mode = o.memory_mode.value_or(0);
  if ((mode & static_cast<std::uint64_t>(memory::part::completion)) != 0)
    log::warn(
        "XIO_MEMORY_MODE={} puts completions into GPU memory, where this GPU's HDP may hold them back from kernels; "
        "leave 2 out of it",
        mode);
}

}  // namespace

memory::hdp_facts find_hdp_facts(const sdma_options& o, const std::function<bool()>& own_copy_queue) {
  memory::hdp_facts f = memory::hdp_facts_here();
  if (f.link == memory::hdp_link::none) {
    // On the model machine software devices stand in. gfx10.1 has no such packet.
    f.nic = true;
    f.sdma = o.backend != option::backend::hw && o.model_gpu.rfind("gfx101", 0) != 0;
    return f;
  }
  f.nic = has_rdma_device();
  const bool needed = o.hdp == option::hdp::automatic && !f.kernels_store && f.link == memory::hdp_link::pcie;
  const bool asked = o.hdp == option::hdp::sdma || needed;
  f.sdma = asked && own_copy_queue();
  return f;
}

std::unique_ptr<memory::hdp_flusher> open_hdp(const sdma_options& o, engines& e, const gpu::heap& heap) {
  const memory::hdp_facts f = find_hdp_facts(o, [&] { return has_own_copy_queue(e); });
  auto d = memory::decide_hdp(f, o.hdp);
  log::info("HDP: {} ({})", memory::hdp_way_name(d.way), d.reason);
  if (d.way != dev::hdp_way::none && !gpu::hdp().kernels_flush)
    log::warn("XIO_HDP={}: kernels on this GPU flush nothing, since its kind has no host data path; leave XIO_HDP out",
              option::word_of(o.hdp));
  const bool real = f.link != memory::hdp_link::none;
  if (real && d.way != dev::hdp_way::none) warn_of_completions(o);
  unsigned char* line = real ? heap.data() + offsetof(dev::heap_head, hdp_line) : nullptr;
  return std::make_unique<memory::hdp_flusher>(std::move(d), gpu::hdp().flush, line);
}

dev::route flush_route(const memory::hdp_decision& d) {
  switch (d.way) {
    case dev::hdp_way::sdma: return dev::route::sdma;
    case dev::hdp_way::rdma_read: return dev::route::rdma;
    default: return dev::route::none;
  }
}

}  // namespace xio
