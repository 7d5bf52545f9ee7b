// SPDX-License-Identifier: MIT
#include "amdgpu/isa/workgroup.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "amdgpu/isa/decode.hpp"
#include "amdgpu/isa/descriptor.hpp"
#include "amdgpu/isa/own_wave.hpp"
#include "amdgpu/isa/under_way.hpp"
#include "amdgpu/memory/adversary.hpp"
#include "amdgpu/memory/plain.hpp"

namespace amdgpu {
namespace {

constexpr unsigned max_items = 1024;
constexpr std::size_t all_rows = 512;

struct freed {
  void operator()(void* p) const { std::free(p); }
};
using rows_memory = std::unique_ptr<std::uint32_t, freed>;

rows_memory make_rows(const kernel_descriptor& k, target gpu) {
  auto* const rows = static_cast<std::uint32_t*>(std::aligned_alloc(64, all_rows * lanes * 4));
  if (!rows) throw std::bad_alloc();
  const bool rdna = gpu == target::gfx1100;
  const unsigned vgprs = std::min(rdna ? k.rdna_registers() : k.first_agpr(), 256u);
  const unsigned agprs = rdna ? 0 : std::min(k.registers() > vgprs ? k.registers() - vgprs : 0, 256u);
  std::memset(rows, 0, std::size_t{std::max(vgprs, 3u)} * lanes * 4);
  std::memset(rows + reg::agpr0 * lanes, 0, std::size_t{agprs} * lanes * 4);
  return rows_memory(rows);
}

// The instruction at pc, whose page is kept until the wave leaves it.
const operation* fetch(wave& w) {
  std::uint64_t left = 0;
  const std::uint32_t* const code = w.of->memory->code(w.pc, left);
  if (!code || left < 4) return nullptr;
  w.page = page_of(w.pc, w.wave32);
  w.page_base = w.pc & ~(code_page::bytes - 1);
  w.page_shift = reinterpret_cast<std::uint64_t>(code) - w.pc;
  w.page_end = std::min(w.page_base + code_page::bytes, w.pc + left);
  return decoded(w.page, w, code, left);
}

// Whether memory still holds what was decoded. An instruction that goes over the page's end is looked up with its
// mapping.
bool same(const operation& o, const wave& w) {
  const auto* const code = reinterpret_cast<const std::uint32_t*>(w.pc + w.page_shift);
  return same_bytes(o, code, w.page_end - w.pc);
}

}  // namespace

void run_wave(wave& w, unsigned budget) {
  counters& counted = w.of->counted;
  const bool counts_lines = w.of->how.counts_lines, counts_each = w.of->how.counts_each;
  std::uint64_t line = 0;
  w.turn_over = w.polled = false;
  w.page_base = 1;  // the code is looked up anew in each turn: it may have been unmapped
  while (budget-- > 0) {
    const operation* o = nullptr;
    if (w.pc - w.page_base < code_page::bytes && w.pc + 4 <= w.page_end && w.pc % 4 == 0) {
      o = w.page->slot[w.pc % code_page::bytes / 4].load(std::memory_order_acquire);
      if (o && !same(*o, w)) o = nullptr;
    }
    if (!o) o = fetch(w);
    if (!o) {
      operation nowhere;
      nowhere.bytes = 0;
      stop(w, nowhere, fault::kind::memory, "no code is mapped there").address = w.pc;
      return;
    }
    if (counts_lines && w.pc / 64 != line) counted.lines.insert(line = w.pc / 64);
    if (counts_each) ++counted.times[w.pc];
    w.pc += o->bytes;
    ++counted.executed[static_cast<unsigned>(o->kind)];
    ++counted.instructions;
    if (w.of->late && !in_time(w, *o)) return;
    if (w.written && !reads_written(w, *o)) return;
    o->run(w, *o);
    if (w.of->late && w.now == wave::state::ended && !w.stopped) wait_for_all(w, *o);
    if (w.turn_over || w.stopped) return;
  }
}

struct workgroup::parts {
  shared_state shared;
  std::unique_ptr<port> memory;
  adversary* late = nullptr;  // the memory, if it is that
  std::vector<std::unique_ptr<wave>> waves;
  std::vector<rows_memory> rows;
  std::vector<std::unique_ptr<written_registers>> written;
  std::vector<std::uint8_t> own_scratch;
  const address_space* space = nullptr;
  std::vector<std::uint64_t> began;  // lanes of each wave; none once its report was made
  std::chrono::steady_clock::time_point look_at;
  std::chrono::milliseconds patience{0};
  kernel_descriptor kernel{};
  std::array<std::uint32_t, 3> size{};  // of this workgroup: the last along an axis may be smaller
  state now = state::running;
  bool slept = false;

  void refuse(const char* why, std::uint64_t address) {
    fault& f = shared.failed;
    f.what = fault::kind::launch;
    f.kernel = shared.how.name;
    f.address = address;
    f.why = why;
    now = state::faulted;
  }

  // Lanes of a wave.
  unsigned width() const { return shared.how.target == target::gfx1100 && kernel.wave32() ? 32 : lanes; }
  bool read_descriptor();
  bool measure();
  bool make_scratch();
  void make_wave(unsigned number, unsigned items);
  unsigned set_sgprs(wave& w) const;
  void set_ids(wave& w) const;
  bool release_barrier();
  void look_for_own_lanes();
};

bool workgroup::parts::read_descriptor() {
  const std::uint64_t at = shared.how.kernel_object;
  refusal no;
  std::uint32_t words[16];
  if (at % 64 || !memory->load_scalar(at, 16, words, no)) {
    refuse("the kernel descriptor is not mapped to this GPU or not at a multiple of 64 bytes", at);
    return false;
  }
  std::memcpy(&kernel, words, sizeof(kernel));
  if (kernel.mode() & 0xf) {
    refuse("its kernel descriptor asks for rounding other than to nearest", at);
    return false;
  }
  return true;
}

bool workgroup::parts::measure() {
  std::uint64_t items = 1;
  for (unsigned i = 0; i < 3; ++i) {
    const std::uint64_t start = std::uint64_t{shared.id[i]} * shared.how.workgroup_size[i];
    if (start >= shared.how.grid[i]) {
      refuse("the workgroup is outside of the grid", 0);
      return false;
    }
    size[i] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(shared.how.workgroup_size[i], shared.how.grid[i] - start));
    items *= size[i];
  }
  if (items > max_items) {
    refuse("a workgroup has more than 1024 work-items", 0);
    return false;
  }
  if (shared.how.group_bytes > 65536) {
    refuse("a workgroup asks for more than 64 KiB of LDS", 0);
    return false;
  }
  for (unsigned first = 0; first < items; first += width())
    make_wave(first / width(), static_cast<unsigned>(std::min<std::uint64_t>(width(), items - first)));
  return true;
}

bool workgroup::parts::make_scratch() {
  launch& how = shared.how;
  const std::uint64_t needed = std::uint64_t{how.private_bytes} * width();
  if (needed == 0) return true;
  if (how.scratch_wave_bytes == 0) {
    how.scratch_wave_bytes = (needed + 1023) / 1024 * 1024;
    own_scratch.assign(how.scratch_wave_bytes * waves.size(), 0);
    how.scratch_base = reinterpret_cast<std::uint64_t>(own_scratch.data());
    how.scratch_slot = 0;
  } else if (how.scratch_wave_bytes < needed) {
    refuse("the queue's scratch is smaller than the kernel's private memory", how.scratch_base);
    return false;
  }
  for (auto& w : waves) {
    w->scratch = how.scratch_base + (std::uint64_t{how.scratch_slot} + w->number) * how.scratch_wave_bytes;
    w->scratch_bytes = how.scratch_wave_bytes;
    if (!own_scratch.empty()) continue;
    std::uint64_t left = 0;
    const auto* const host = memory->code(w->scratch, left);
    if (!host || left < w->scratch_bytes) {
      refuse("the queue's scratch is not mapped to this GPU", w->scratch);
      return false;
    }
    w->scratch_shift = reinterpret_cast<std::uint64_t>(host) - w->scratch;
  }
  return true;
}

void workgroup::parts::make_wave(unsigned number, unsigned items) {
  auto made = std::make_unique<wave>();
  wave& w = *made;
  rows.push_back(make_rows(kernel, shared.how.target));
  w.v = rows.back().get();
  w.of = &shared;
  w.number = number;
  w.pc = shared.how.kernel_object + static_cast<std::uint64_t>(kernel.entry_offset);
  w.mode = kernel.mode();
  w.hw_id = number & 15;
  w.wave32 = width() == 32;
  w.set_mask(reg::exec, items == width() ? w.everyone() : (std::uint64_t{1} << items) - 1);
  w.mask_of = 0;
  std::memset(w.mask_row, 0, sizeof(w.mask_row));
  set_ids(w);
  waves.push_back(std::move(made));
}

// Work-item ids lie packed in v0, ten bits each (LLVM AMDGPUUsage, "VGPR Register Set Up Order", GFX90A).
void workgroup::parts::set_ids(wave& w) const {
  for (unsigned l = 0; l < w.width(); ++l) {
    const std::uint32_t flat = w.number * w.width() + l;
    const std::uint32_t x = flat % size[0], y = flat / size[0] % size[1], z = flat / size[0] / size[1];
    w.v[l] = x | y << 10 | z << 20;
  }
}

// LLVM AMDGPUUsage, "SGPR Register Set Up Order". Returns how many there are.
unsigned workgroup::parts::set_sgprs(wave& w) const {
  const launch& how = shared.how;
  unsigned n = 0;
  const auto put64 = [&](std::uint64_t value) {
    w.set64(n, value);
    n += 2;
  };
  if (kernel.wants(private_buffer)) {
    // Swizzled by lane, 64 lanes, no bounds: what ROCr writes into amd_queue_t for GFX9 (MI200 ISA 8.1.8).
    w.s[0] = static_cast<std::uint32_t>(how.scratch_base);
    w.s[1] = static_cast<std::uint32_t>(how.scratch_base >> 32 & 0xffff) | 1u << 31;
    w.s[2] = 0xffffffff;
    w.s[3] = 1u << 23 | 3u << 21 | 4u << 15 | 4u << 12 | 0xfacu;
    n = 4;
  }
  if (kernel.wants(dispatch_packet)) put64(how.dispatch_packet);
  if (kernel.wants(queue_pointer)) put64(how.queue);
  if (kernel.wants(kernarg_pointer)) put64(how.kernarg);
  if (kernel.wants(dispatch_number)) put64(how.dispatch_id);
  if (kernel.wants(flat_scratch_init)) put64(how.scratch_base);
  if (kernel.wants(private_size)) w.s[n++] = how.private_bytes;
  n = kernel.user_sgprs();
  for (unsigned axis = 0; axis < 3; ++axis)
    if (kernel.group_id(axis)) w.s[n++] = shared.id[axis];
  if (kernel.group_info()) w.s[n++] = static_cast<std::uint32_t>(waves.size());
  // gfx942 and gfx1100 know each wave's scratch by themselves ("architected flat scratch").
  if (how.target == target::gfx942)
    w.set64(reg::flat_scratch, w.scratch);
  else if (how.target == target::gfx90a && kernel.wave_offset())
    w.s[n++] = static_cast<std::uint32_t>((how.scratch_slot + w.number) * how.scratch_wave_bytes);
  return n;
}

// Lets waves on if all that have not ended wait.
bool workgroup::parts::release_barrier() {
  bool waits = false;
  for (const auto& w : waves) {
    if (w->now == wave::state::ready) return false;
    waits |= w->now == wave::state::at_barrier;
  }
  for (auto& w : waves)
    if (w->now == wave::state::at_barrier) w->now = wave::state::ready;
  return waits;
}

// A wave that waits for one of its own lanes looks like any other that waits, so it is tried after some time, and again
// after twice that. The trial knows no caches.
void workgroup::parts::look_for_own_lanes() {
  const auto time = std::chrono::steady_clock::now();
  if (shared.late || time < look_at) return;
  patience *= 2;
  look_at = time + patience;
  for (auto& w : waves) {
    if (w->now != wave::state::ready || began[w->number] == 0) continue;
    const std::string said = waits_for_own_lane(*w, *space, began[w->number]);
    if (said.empty()) continue;
    std::fprintf(stderr, "software AMD GPU: %s\n", said.c_str());
    began[w->number] = 0;
  }
}

workgroup::workgroup(const launch& how, const address_space& memory, std::array<std::uint32_t, 3> id)
    : inside(std::make_unique<parts>()) {
  parts& p = *inside;
  p.shared.how = how;
  std::ranges::copy(id, p.shared.id);
  if (how.adversary_seed) {
    // Each workgroup draws numbers of its own, the same in each run.
    std::uint64_t seed = how.adversary_seed * 0x9e3779b97f4a7c15 + how.dispatch_id;
    for (const std::uint32_t i : id) seed = seed * 0x9e3779b97f4a7c15 + i;
    auto late = std::make_unique<adversary>(memory, seed, how.l2);
    p.late = late.get();
    p.memory = std::move(late);
    p.shared.late = true;
  } else {
    p.memory = std::make_unique<plain>(memory);
  }
  p.shared.memory = p.memory.get();
  p.space = &memory;
  p.patience = std::chrono::milliseconds(how.patience_ms);
  p.look_at = std::chrono::steady_clock::now() + p.patience;
  if (!p.read_descriptor()) return;
  if (p.late && how.target == target::gfx1100) p.late->have_l0(p.kernel.on_pair(), how.l1);
  if (!p.measure() || !p.make_scratch()) return;
  p.shared.lds.assign(p.shared.how.group_bytes, 0);
  for (auto& w : p.waves) {
    const unsigned sgprs = p.set_sgprs(*w);
    p.began.push_back(w->exec());
    if (!how.watches_registers) continue;
    p.written.push_back(std::make_unique<written_registers>());
    start_watching(*w, sgprs, *p.written.back());
  }
  p.shared.counted.waves = p.waves.size();
  p.shared.counted.registers = how.target == target::gfx1100 ? p.kernel.rdna_registers() : p.kernel.registers();
}

workgroup::~workgroup() = default;
workgroup::workgroup(workgroup&&) noexcept = default;
workgroup& workgroup::operator=(workgroup&&) noexcept = default;

workgroup::state workgroup::run(unsigned instructions) {
  parts& p = *inside;
  if (p.now != state::running) return p.now;
  p.slept = true;
  p.look_for_own_lanes();
  p.memory->pass_turn();
  bool left = false;
  for (auto& w : p.waves) {
    if (w->now != wave::state::ready) continue;
    run_wave(*w, instructions);
    p.slept &= w->polled || w->now != wave::state::ready;
    if (w->stopped) return p.now = state::faulted;
  }
  for (const auto& w : p.waves) left |= w->now != wave::state::ended;
  if (!left) return p.now = state::finished;
  if (p.release_barrier()) p.slept = false;
  return p.now;
}

workgroup::state workgroup::now() const { return inside->now; }
const fault& workgroup::what() const { return inside->shared.failed; }
const counters& workgroup::executed() const { return inside->shared.counted; }
bool workgroup::asleep() const { return inside->slept; }
unsigned workgroup::waves() const { return static_cast<unsigned>(inside->waves.size()); }

std::array<std::uint32_t, 3> workgroups_of(const launch& how) {
  std::array<std::uint32_t, 3> n{};
  for (unsigned i = 0; i < 3; ++i)
    n[i] = how.workgroup_size[i] ? static_cast<std::uint32_t>((std::uint64_t{how.grid[i]} + how.workgroup_size[i] - 1) /
                                                              how.workgroup_size[i])
                                 : 0;
  return n;
}

}  // namespace amdgpu
