// SPDX-License-Identifier: MIT
#include "amdgpu/queues/sdma_engines.hpp"

#include <cstdio>
#include <cstring>

#include "amdgpu/queues/clock.hpp"
#include "base/host_atomic.hpp"
#include "model/sdma/fault.hpp"

namespace amdgpu {
namespace {

namespace model = xio::model::sdma;

// Memory that a program registered lies elsewhere for the host than for the GPU: pieces of it, by GPU address. Few, and
// changed while no engine runs.
std::map<std::uint64_t, mapping> registered;

void* seen_by_host(const void* address) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  auto next = registered.upper_bound(at);
  if (next == registered.begin()) return reinterpret_cast<void*>(at);
  const mapping& m = std::prev(next)->second;
  return reinterpret_cast<void*>(at - m.base < m.bytes ? m.host + (at - m.base) : at);
}

// Forgets what was registered where M is now. A range that is unmapped stays until then: another GPU may have it still.
void forget_registered(const mapping& m) {
  std::erase_if(registered,
                [&](const auto& r) { return r.first < m.base + m.bytes && m.base < r.first + r.second.bytes; });
}

// Engines ask for ranges of one mapping only.
void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(seen_by_host(to), seen_by_host(from), bytes); }

std::uint64_t atomic(void* address, unsigned width, xio::atomic_op op, std::uint64_t operand, std::uint64_t compare) {
  return xio::change_host_word(seen_by_host(address), width, op, operand, compare);
}

void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

constexpr xio::payload_agent k_memory{copy, atomic, fence};

// SDMA 4.4.0 of gfx90a, 4.4.2 of gfx942, 6.0.0 of gfx1100: what linux amdgpu finds in each (amdgpu_discovery.c).
model::wire::generation generation_of(target t) {
  switch (t) {
    case target::gfx90a: return model::wire::gen_9_0a;
    case target::gfx942: return model::wire::gen_9_4;
    case target::gfx1100: return model::wire::gen_11;
  }
  return model::wire::gen_none;
}

}  // namespace

struct sdma_engines::queue {
  unsigned gpu = 0;
  std::uint32_t gpu_id = 0;
  std::uint32_t number = 0;  // of the engine's
  std::uint64_t* doorbell = nullptr;
  std::uint64_t* lanes_doorbell = nullptr;  // what comes there is passed on
  std::uint64_t lanes_rang = 0;
  std::uint32_t report[2] = {0, 0};
  bool reported = false;
};

sdma_engines::sdma_engines(const settings& s, const std::vector<page_table>&, events& happenings)
    : happenings_(happenings) {
  const auto generation = generation_of(target_of(s.target));
  for (unsigned gpu = 0; gpu < s.nodes(); ++gpu) {
    engines_.push_back(std::make_unique<model::engine>(k_memory, generation, gpu + 1));
    engines_.back()->tell_time_by(gpu_clock);
    engines_.back()->listen([this](std::uint32_t context) { happenings_.interrupt(context); });
  }
}

sdma_engines::~sdma_engines() = default;

void sdma_engines::add(std::uint32_t id, const queue_request& r) {
  auto q = std::make_unique<queue>();
  q->gpu = r.gpu;
  q->gpu_id = r.gpu_id;
  model::queue_memory m{};
  m.ring = static_cast<const std::uint32_t*>(seen_by_host(reinterpret_cast<const void*>(r.ring)));
  m.ring_bytes = r.ring_bytes;
  m.wptr = r.write_pointer;
  m.rptr = r.read_pointer;
  m.doorbell = r.doorbell;
  m.report = q->report;
  q->doorbell = r.doorbell;
  q->lanes_doorbell = r.lanes_doorbell;
  q->number = engines_[r.gpu]->add_queue(m);
  queues_.emplace(id, std::move(q));
}

bool sdma_engines::remove(std::uint32_t id) {
  const auto found = queues_.find(id);
  if (found == queues_.end()) return false;
  engines_[found->second->gpu]->remove_queue(found->second->number);
  queues_.erase(found);
  return true;
}

void sdma_engines::mapped(unsigned gpu, const mapping& m, bool is) {
  auto* base = reinterpret_cast<void*>(m.base);
  if (is) {
    forget_registered(m);
    if (m.host != m.base) registered[m.base] = m;
    engines_[gpu]->map(base, m.bytes, model::memory_kind::payload);
  } else {
    engines_[gpu]->unmap(base);
  }
}

bool sdma_engines::poll() {
  if (queues_.empty()) return false;
  bool worked = false;
  for (auto& [id, q] : queues_) {
    if (q->lanes_doorbell == nullptr) continue;
    const std::uint64_t rung = __atomic_load_n(q->lanes_doorbell, __ATOMIC_ACQUIRE);
    if (rung != std::exchange(q->lanes_rang, rung)) __atomic_store_n(q->doorbell, rung, __ATOMIC_RELEASE);
  }
  for (auto& e : engines_) worked |= e->poll();
  if (worked) look_for_faults();
  return worked;
}

// The engine has said what is wrong; of memory that is not mapped the host hears as of a kernel's fault.
void sdma_engines::look_for_faults() {
  for (auto& [id, q] : queues_) {
    const auto what = static_cast<model::fault>(__atomic_load_n(q->report, __ATOMIC_ACQUIRE));
    if (what == model::fault::none || q->reported) continue;
    q->reported = true;
    std::fprintf(stderr, "software AMD GPU: copy queue %u stopped: %s\n", id, model::text_of(what));
    if (what == model::fault::not_mapped) happenings_.memory_fault({1, 0, 0, 0, 0, q->gpu_id, 0});
  }
}

}  // namespace amdgpu
