// SPDX-License-Identifier: MIT
#include "amdgpu/queues/aql_queue.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

#include "amdgpu/isa/descriptor.hpp"
#include "amdgpu/memory/l2_caches.hpp"
#include "amdgpu/memory/shader_arrays.hpp"
#include "amdgpu/queues/clock.hpp"
#include "amdgpu/queues/kernel_name.hpp"
#include "amdgpu/report/counts_file.hpp"

namespace amdgpu {
namespace {

constexpr std::size_t k_window = 8;  // packets that may be under way
constexpr unsigned k_waves_per_unit = 32;
constexpr std::uint32_t k_most_work_items = 1024, k_most_group_bytes = 65536;
constexpr std::uint64_t k_patience =
    2000000;  // nanoseconds without an end, after which more workgroups become resident

template <class T>
T load(const T* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

// Lanes of a wave of the kernel with this descriptor.
unsigned lanes_of(target gpu, const void* descriptor) {
  kernel_descriptor k;
  std::memcpy(&k, descriptor, sizeof(k));
  return gpu == target::gfx1100 && k.wave32() ? 32 : 64;
}

std::uint64_t scratch_base(const aql::queue& q) {
  return q.scratch_descriptor[0] | std::uint64_t{q.scratch_descriptor[1] & 0xffffu} << 32;
}

}  // namespace

aql_queue::aql_queue(std::uint32_t number, const queue_request& r)
    : number_(number),
      asked_(r),
      shared_(
          reinterpret_cast<aql::queue*>(reinterpret_cast<char*>(r.read_pointer) - offsetof(aql::queue, read_index))),
      seen_(*r.doorbell) {}

bool aql_queue::advance(const surroundings& around) {
  if (const std::uint64_t rung = load(asked_.doorbell); rung != seen_) {
    seen_ = rung;
    awake_ = true;
  }
  bool worked = retire(around);
  if (stopped_ || suspended_) return worked;
  for (const auto& d : window_) feed(around, d);
  while (awake_ && window_.size() < k_window) {
    if (next_ >= load(asked_.write_pointer)) {
      awake_ = false;
      break;
    }
    if (take(around, next_) != step::taken) break;
    ++next_;
    worked = true;
  }
  return retire(around) || worked;
}

aql_queue::step aql_queue::take(const surroundings& around, std::uint64_t index) {
  const std::uint64_t at = asked_.ring + index * aql::k_packet_bytes % asked_.ring_bytes;
  void* packet = around.table.host(at, aql::k_packet_bytes);
  if (packet == nullptr) {
    memory_fault(around, at, false);
    return step::wrong;
  }
  const std::uint16_t header = load(static_cast<const std::uint16_t*>(packet));
  const std::uint32_t type = aql::type_of(header);
  if (type == aql::invalid) return step::waits;
  if (aql::has_barrier(header) && !window_.empty()) return step::waits;
  switch (type) {
    case aql::kernel_dispatch: return take_kernel(around, *static_cast<aql::dispatch_packet*>(packet), at, index);
    case aql::barrier_and: return take_barrier(around, *static_cast<aql::barrier_packet*>(packet), true);
    case aql::barrier_or: return take_barrier(around, *static_cast<aql::barrier_packet*>(packet), false);
    case aql::vendor_specific: break;
    default: return stop(around, aql::bad_packet, "a packet is of no type that a GPU takes");
  }
  const auto& vendor = *static_cast<aql::pm4_packet*>(packet);
  if (vendor.format == aql::k_format_pm4) return take_pm4(around, vendor);
  if (vendor.format == aql::k_format_barrier_value)
    return take_value(around, *static_cast<aql::barrier_value_packet*>(packet));
  return stop(around, aql::bad_vendor_packet, "a vendor packet is of no known format");
}

// A packet that acquires from the system has what others wrote. (Each workgroup begins with an empty L0, and on other
// GPUs than gfx1100 with an empty L1.)
void aql_queue::acquire(const surroundings& around, std::uint16_t header) {
  if (around.l1s && aql::acquire_of(header) != 0) around.l1s->invalidate();
  if (around.l2 && beyond_l2(around, aql::acquire_of(header))) around.l2->invalidate();
}

// Whether a fence of that scope, none, agent or system, is about more than one L2.
bool aql_queue::beyond_l2(const surroundings& around, std::uint32_t scope) {
  return scope == aql::k_system || (scope == aql::k_agent && around.l2 && around.l2->are_several());
}

void aql_queue::push_done(std::uint64_t completion, bool releases) {
  auto d = std::make_shared<dispatch>();
  d->releases = releases;
  d->completion = completion;
  d->start = gpu_clock();
  window_.push_back(std::move(d));
}

aql_queue::step aql_queue::take_barrier(const surroundings& around, const aql::barrier_packet& p, bool all) {
  bool any = false, each = true, some = false;
  for (const std::uint64_t at : p.depends) {
    if (at == 0) continue;
    const auto* s = around.table.at<aql::signal>(at);
    if (s == nullptr) {
      memory_fault(around, at, false);
      return step::wrong;
    }
    const bool is_zero = load(&s->value) == 0;
    some = true;
    any |= is_zero;
    each &= is_zero;
  }
  if (!(all ? each : any || !some)) return step::waits;
  acquire(around, p.header);
  push_done(p.completion, beyond_l2(around, aql::release_of(p.header)));
  return step::taken;
}

aql_queue::step aql_queue::take_value(const surroundings& around, const aql::barrier_value_packet& p) {
  if (p.signal != 0) {
    const auto* s = around.table.at<aql::signal>(p.signal);
    if (s == nullptr) {
      memory_fault(around, p.signal, false);
      return step::wrong;
    }
    const std::int64_t found = load(&s->value) & p.mask;
    bool holds = false;
    switch (p.condition) {
      case aql::equal: holds = found == p.value; break;
      case aql::not_equal: holds = found != p.value; break;
      case aql::less: holds = found < p.value; break;
      case aql::greater_equal: holds = found >= p.value; break;
      default: return stop(around, aql::bad_vendor_packet, "a barrier-value packet has no known condition");
    }
    if (!holds) return step::waits;
  }
  acquire(around, p.header);
  push_done(p.completion, beyond_l2(around, aql::release_of(p.header)));
  return step::taken;
}

// ROCr sends only packets about caches of code in this way, and the interpreter checks code by itself.
aql_queue::step aql_queue::take_pm4(const surroundings& around, const aql::pm4_packet& p) {
  if (!window_.empty()) return step::waits;
  if (aql::pm4_op(p.indirect[0]) != aql::k_pm4_indirect)
    return stop(around, aql::bad_vendor_packet, "a PM4 packet is no indirect buffer");
  const std::uint64_t at = (p.indirect[1] & ~3u) | std::uint64_t{p.indirect[2] & 0xffffu} << 32;
  const std::uint32_t dwords = p.indirect[3] & 0xfffffu;
  const auto* dw = static_cast<const std::uint32_t*>(around.table.host(at, std::uint64_t{dwords} * 4));
  if (dw == nullptr) {
    memory_fault(around, at, false);
    return step::wrong;
  }
  for (std::uint32_t i = 0; i < dwords; i += aql::pm4_dwords(dw[i])) {
    const std::uint32_t op = aql::pm4_op(dw[i]);
    const bool known = op == aql::k_pm4_nop || op == aql::k_pm4_acquire_mem || op == aql::k_pm4_release_mem;
    if (aql::pm4_type(dw[i]) != 3 || !known)
      return stop(around, aql::bad_vendor_packet, "an indirect buffer holds a PM4 packet that is not known");
  }
  if (around.l2) around.l2->invalidate();
  if (around.l1s) around.l1s->invalidate();
  push_done(p.completion[0] | std::uint64_t{p.completion[1]} << 32, true);
  return step::taken;
}

aql_queue::step aql_queue::take_kernel(const surroundings& around, const aql::dispatch_packet& p, std::uint64_t at,
                                       std::uint64_t index) {
  const unsigned axes = p.setup & 3u;
  const std::uint32_t size[3] = {p.workgroup[0], axes > 1 ? p.workgroup[1] : 1u, axes > 2 ? p.workgroup[2] : 1u};
  const std::uint32_t grid[3] = {p.grid[0], axes > 1 ? p.grid[1] : 1u, axes > 2 ? p.grid[2] : 1u};
  std::uint64_t items = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (axes == 0 || size[i] == 0 || grid[i] == 0)
      return stop(around, aql::bad_dimensions, "a grid or workgroup is empty");
    items *= size[i];
  }
  if (items > k_most_work_items) return stop(around, aql::group_too_large, "a workgroup has more than 1024 work-items");
  if (p.group_bytes > k_most_group_bytes)
    return stop(around, aql::bad_group_memory, "a workgroup wants more than 64 KiB");
  if (p.kernel_object % 64 != 0 || around.table.host(p.kernel_object, 64) == nullptr)
    return stop(around, aql::bad_code, "the kernel's descriptor is not mapped");

  auto d = std::make_shared<dispatch>();
  const unsigned lanes = lanes_of(around.target, around.table.host(p.kernel_object, 64));
  d->waves = static_cast<unsigned>((items + lanes - 1) / lanes);
  if (const step s = find_scratch(around, p, lanes, *d); s != step::taken) return s;
  for (unsigned i = 0; i < 3; ++i) {
    d->groups[i] = grid[i] / size[i] + (grid[i] % size[i] != 0);
    d->how.grid[i] = grid[i];
    d->how.workgroup_size[i] = size[i];
  }
  d->total = std::uint64_t{d->groups[0]} * d->groups[1] * d->groups[2];
  d->how.kernel_object = p.kernel_object;
  d->how.private_bytes = p.private_bytes;
  d->how.group_bytes = p.group_bytes;
  d->how.kernarg = p.kernarg;
  d->how.dispatch_packet = at;
  d->how.queue = reinterpret_cast<std::uint64_t>(shared_);
  d->how.dispatch_id = index;
  d->how.adversary_seed = around.adversary_seed;
  d->how.watches_registers = around.watches_registers;
  d->cached = around.l2 != nullptr;
  d->how.target = around.target;
  d->how.xccs = around.xccs;
  d->how.lds_aperture = std::uint64_t{shared().group_aperture_high} << 32;
  d->how.private_aperture = std::uint64_t{shared().private_aperture_high} << 32;
  d->how.counts_lines = !around.counts.empty();
  d->how.counts_each = !around.times.empty();
  d->how.name = kernel_name(around.table, p.kernel_object);
  d->completion = p.completion;
  d->releases = beyond_l2(around, aql::release_of(p.header));
  // libxio's software NICs have no other way to an atomic; as one of a NIC it knows nothing of the L2.
  if (d->how.name.find("11change_wordE") != std::string::npos) {
    d->cached = false;
    d->releases = false;
  }
  acquire(around, p.header);
  d->start = gpu_clock();
  d->last_end = host_nanoseconds();
  d->hardware_most = std::max<std::uint64_t>(1, around.compute_units * k_waves_per_unit / d->waves);
  if (p.private_bytes != 0) d->hardware_most = std::min<std::uint64_t>(d->hardware_most, d->free_slots.size());
  d->most = std::min<std::uint64_t>(d->hardware_most, 2 * around.threads);
  window_.push_back(d);
  feed(around, d);
  return step::taken;
}

aql_queue::step aql_queue::find_scratch(const surroundings& around, const aql::dispatch_packet& p, unsigned lanes,
                                        dispatch& d) {
  if (p.private_bytes == 0) return step::taken;
  // All kernels of a queue share its scratch.
  const auto uses = [](const auto& other) { return other->how.private_bytes != 0; };
  if (std::ranges::any_of(window_, uses)) return step::waits;
  const auto* s = around.table.at<aql::signal>(shared().inactive_signal);
  if (asked_for_scratch_) {
    if (s != nullptr && load(&s->value) != 0) return step::waits;
    asked_for_scratch_ = false;
  }
  const std::uint32_t tmpring = shared().tmpring;
  const unsigned groups = (tmpring & 0xfffu) / d.waves;
  // ROCr writes down how many bytes a lane has in a wave of 64.
  if (std::uint64_t{shared().scratch_lane_bytes} * 64 < std::uint64_t{p.private_bytes} * lanes || groups == 0) {
    // The host looks at the packet at the read index.
    if (!window_.empty()) return step::waits;
    report(around, aql::needs_scratch);
    asked_for_scratch_ = true;
    return step::waits;
  }
  d.how.scratch_base = scratch_base(shared());
  // COMPUTE_TMPRING_SIZE counts a wave's bytes by 1024, and on gfx1100 in two more bits by 256 (RDNA3's registers).
  d.how.scratch_wave_bytes = around.target == target::gfx1100 ? std::uint64_t{tmpring >> 12 & 0x7fffu} * 256
                                                              : std::uint64_t{tmpring >> 12 & 0x1fffu} * 1024;
  d.scratch_once = (shared().properties & aql::k_scratch_once) != 0;
  for (unsigned slot = groups; slot-- != 0;) d.free_slots.push_back(slot);
  return step::taken;
}

void aql_queue::feed(const surroundings& around, const std::shared_ptr<dispatch>& d) {
  if (d->next == d->total || d->dead) return;
  if (host_nanoseconds() - d->last_end > k_patience) {
    d->most = std::min(d->hardware_most, 2 * d->most);
    d->last_end = host_nanoseconds();
  }
  while (d->next != d->total && d->next - d->done < d->most) {
    const std::uint64_t n = d->next++;
    const auto x = static_cast<std::uint32_t>(n % d->groups[0]);
    const auto y = static_cast<std::uint32_t>(n / d->groups[0] % d->groups[1]);
    const auto z = static_cast<std::uint32_t>(n / d->groups[0] / d->groups[1]);
    task t;
    t.of = d;
    launch how = d->how;
    if (how.private_bytes != 0) {
      t.slot = d->free_slots.back();
      d->free_slots.pop_back();
      how.scratch_slot = t.slot * d->waves;
    }
    if (d->cached) how.l2 = &around.l2->of_workgroup(n);
    if (d->cached && around.l1s) how.l1 = &around.l1s->of_workgroup(n);
    t.waves = around.make(how, around.table, {x, y, z});
    around.sink.run(std::move(t));
  }
}

void aql_queue::ended(const surroundings& around, task&& t, group::state how) {
  dispatch& d = *t.of;
  if (d.dead) return;
  d.last_end = host_nanoseconds();
  ++d.done;
  if (d.how.counts_lines || d.how.counts_each) d.counted += t.waves->executed();
  if (d.how.private_bytes != 0) d.free_slots.push_back(t.slot);
  if (how != group::state::faulted) return;
  const fault f = t.waves->what();
  std::fprintf(stderr, "software AMD GPU: %s\n", f.sentence().c_str());
  switch (f.what) {
    case fault::kind::memory: memory_fault(around, f.address, f.write); break;
    case fault::kind::launch: stop(around, aql::bad_code, nullptr); break;
    case fault::kind::lds:
    case fault::kind::alignment: stop(around, aql::aperture_violation, nullptr); break;
    case fault::kind::trap: stop(around, aql::debug_trap, nullptr); break;
    default: stop(around, aql::illegal_instruction, nullptr); break;
  }
}

void aql_queue::complete(const surroundings& around, dispatch& d) {
  d.completed = true;
  if (around.l2 && d.releases) around.l2->write_back();
  if (d.how.counts_lines) append_counts(around.counts, counts_line(d.how.name, asked_.gpu, d.total, d.counted));
  if (d.how.counts_each) {
    const std::uint64_t start = start_of_code(around.table, d.how.kernel_object);
    append_counts(around.times, times_lines(d.how.name, start, d.counted));
  }
  if (d.completion == 0) return;
  auto* s = around.table.at<aql::signal>(d.completion);
  if (s == nullptr) {
    memory_fault(around, d.completion, true);
    return;
  }
  s->start = d.start;
  s->end = gpu_clock();
  __atomic_fetch_sub(&s->value, 1, __ATOMIC_ACQ_REL);
  interrupt(around, *s);
}

// The read index passes packets in order, when they are done.
bool aql_queue::retire(const surroundings& around) {
  bool worked = false;
  for (const auto& d : window_)
    if (!stopped_ && !d->completed && d->done == d->total) {
      complete(around, *d);
      worked = true;
    }
  while (!stopped_ && !window_.empty() && window_.front()->completed) {
    const std::uint64_t index = next_ - window_.size();
    const std::uint64_t at = asked_.ring + index * aql::k_packet_bytes % asked_.ring_bytes;
    if (auto* header = around.table.at<std::uint16_t>(at)) __atomic_store_n(header, aql::invalid, __ATOMIC_RELEASE);
    const bool scratch_once = window_.front()->scratch_once;
    window_.pop_front();
    __atomic_store_n(asked_.read_pointer, index + 1, __ATOMIC_RELEASE);
    if (scratch_once) {
      report(around, aql::scratch_done);
      asked_for_scratch_ = true;
    }
    worked = true;
  }
  return worked;
}

void aql_queue::interrupt(const surroundings& around, const aql::signal& s) {
  const std::uint64_t mailbox = s.mailbox;
  const std::uint32_t event = s.event;
  if (mailbox == 0) return;
  if (auto* word = around.table.at<std::uint64_t>(mailbox)) __atomic_store_n(word, event, __ATOMIC_RELEASE);
  around.happenings.interrupt(event);
}

void aql_queue::report(const surroundings& around, aql::trouble code) {
  auto* s = around.table.at<aql::signal>(shared().inactive_signal);
  if (s == nullptr) return;
  __atomic_fetch_or(&s->value, static_cast<std::int64_t>(code), __ATOMIC_ACQ_REL);
  interrupt(around, *s);
}

aql_queue::step aql_queue::stop(const surroundings& around, aql::trouble code, const char* why) {
  if (why != nullptr)
    std::fprintf(stderr, "software AMD GPU: queue %u stops at packet %llu: %s\n", number_,
                 static_cast<unsigned long long>(next_), why);
  kill();
  report(around, code);
  return step::wrong;
}

void aql_queue::memory_fault(const surroundings& around, std::uint64_t address, bool write) {
  std::fprintf(stderr, "software AMD GPU: queue %u: memory fault at address %#llx\n", number_,
               static_cast<unsigned long long>(address));
  kill();
  const bool is_there = around.table.find(address) != nullptr;
  around.happenings.memory_fault(
      {is_there ? 0u : 1u, is_there && write ? 1u : 0u, 0, 0, address & ~std::uint64_t{4095}, asked_.gpu_id, 0});
}

void aql_queue::kill() {
  stopped_ = true;
  for (const auto& d : window_) d->dead = true;
}

}  // namespace amdgpu
