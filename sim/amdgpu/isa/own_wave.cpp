// SPDX-License-Identifier: MIT
#include "amdgpu/isa/own_wave.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "amdgpu/isa/wave.hpp"
#include "amdgpu/memory/plain.hpp"
#include "amdgpu/memory/read_modify_write.hpp"

namespace amdgpu {
namespace {

constexpr unsigned k_round_steps = 20000, k_way_steps = 100000;

// Memory as it is, with what was written in the trial over it.
class trial_memory final : public port {
 public:
  explicit trial_memory(const address_space& of) : behind(of) {}

  bool load(const access& of, u32* data, refusal& no) override {
    if (!behind.load(of, data, no)) return false;
    for (const unsigned lane : active_lanes(of.active)) {
      note_read(of.address[lane], of.bytes);
      for (unsigned i = 0; i < of.bytes; ++i) patch(of.address[lane] + i, data[i / 4 * lanes + lane], i % 4);
    }
    return true;
  }
  bool store(const access& of, const u32* data, refusal& no) override {
    if (!behind.mapped(of, true, no)) return false;
    for (const unsigned lane : active_lanes(of.active)) {
      for (unsigned i = 0; i < of.bytes; i += 4)
        put(of.address[lane] + i, std::min(of.bytes, 4u), data[i / 4 * lanes + lane], lane);
    }
    return true;
  }
  bool atomic(const access& of, atomic_op op, const u32* data, const u32* compare, u32* old, refusal& no) override {
    if (!plain::aligned(of, no) || !behind.mapped(of, true, no)) return false;
    for (const unsigned lane : active_lanes(of.active)) {
      note_read(of.address[lane], of.bytes);
      of.bytes == 4 ? modify<u32>(of, op, data, compare, old, lane) : modify<u64>(of, op, data, compare, old, lane);
    }
    return true;
  }
  bool load_scalar(u64 address, unsigned dwords, u32* data, refusal& no) override {
    if (!behind.load_scalar(address, dwords, data, no)) return false;
    note_read(address, 4 * dwords);
    for (unsigned i = 0; i < 4 * dwords; ++i) patch((address & ~u64{3}) + i, data[i / 4], i % 4);
    return true;
  }
  const u32* code(u64 address, u64& left) override { return behind.code(address, left); }
  bool wait_vector(unsigned, u64, refusal&) override { return true; }
  bool wait_stores(unsigned, u64, refusal&) override { return true; }
  void writeback(unsigned, u64) override {}
  void invalidate() override {}
  void invalidate_vector_cache() override {}
  void invalidate_l0(unsigned) override {}
  void invalidate_l1() override {}

  struct range {
    u64 address;
    unsigned bytes;
    u64 pc;
    unsigned lane;
  };
  u64 pc = 0;                  // of the instruction that runs
  u64 writers = ~u64{0};       // of other lanes nothing is written
  std::map<u64, range> reads;  // by address
  std::vector<range> changes;  // what a write made another value
  std::map<u64, std::uint8_t> written;

 private:
  void note_read(u64 address, unsigned bytes) { reads.try_emplace(address, range{address, bytes, pc, 0}); }
  void patch(u64 address, u32& word, unsigned byte) const {
    const auto found = written.find(address);
    if (found != written.end()) word = (word & ~(0xffu << 8 * byte)) | u32{found->second} << 8 * byte;
  }
  u32 get(u64 address, unsigned bytes) {
    u64 addresses[lanes] = {address};
    u32 rows[lanes] = {};
    access one;
    one.address = addresses;
    one.active = 1;
    one.bytes = bytes;
    refusal no;
    (void)behind.load(one, rows, no);
    for (unsigned i = 0; i < bytes; ++i) patch(address + i, rows[0], i);
    return rows[0];
  }
  void put(u64 address, unsigned bytes, u32 value, unsigned lane) {
    if (!(writers >> lane & 1)) return;
    const u32 was = get(address, bytes), ones = bytes == 4 ? ~u32{0} : (1u << 8 * bytes) - 1;
    if (((was ^ value) & ones) != 0) changes.push_back({address, bytes, pc, lane});
    for (unsigned i = 0; i < bytes; ++i) written[address + i] = static_cast<std::uint8_t>(value >> 8 * i);
  }
  template <class T>
  void modify(const access& of, atomic_op op, const u32* data, const u32* compare, u32* old, unsigned lane) {
    const auto joined = [&](const u32* rows) {
      return static_cast<T>(rows[lane] | (sizeof(T) == 8 ? u64{rows[lanes + lane]} << 32 : 0));
    };
    u32 was[2] = {};
    for (unsigned i = 0; i < sizeof(T) / 4; ++i) {
      was[i] = get(of.address[lane] + 4 * i, 4);
      if (old) old[i * lanes + lane] = was[i];
    }
    const T now =
        changed<T>(op, static_cast<T>(was[0] | u64{was[1]} << 32), joined(data), compare ? joined(compare) : T{});
    for (unsigned i = 0; i < sizeof(T) / 4; ++i)
      put(of.address[lane] + 4 * i, 4, static_cast<u32>(u64{now} >> 32 * i), lane);
  }

  plain behind;
};

// A copy of a wave with all that it may change.
struct trial {
  trial(const wave& of, const address_space& space) : memory(space), shared(*of.of), w(of) {
    rows.reset(static_cast<u32*>(std::aligned_alloc(64, 512 * lanes * 4)));
    std::memcpy(rows.get(), of.v, 512 * lanes * 4);
    if (of.scratch_bytes) {
      const auto* const host = reinterpret_cast<const std::uint8_t*>(of.scratch + of.scratch_shift);
      scratch.assign(host, host + of.scratch_bytes);
      w.scratch_shift = reinterpret_cast<u64>(scratch.data()) - of.scratch;
    }
    shared.memory = &memory;
    shared.how.interrupt = nullptr;
    shared.how.counts_lines = shared.how.counts_each = false;
    w.of = &shared;
    w.v = rows.get();
    w.written = nullptr;
  }
  // One instruction. False: the wave is at its end, at a barrier, or was stopped.
  bool step() {
    memory.pc = w.pc;
    run_wave(w, 1);
    return !w.stopped && w.now == wave::state::ready;
  }

  trial_memory memory;
  shared_state shared;
  wave w;
  struct freed {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<u32, freed> rows;
  std::vector<std::uint8_t> scratch;
};

// A wave that goes round: where it is, with which lanes, and what it reads.
struct round {
  std::set<u64> pcs;
  u64 lanes_on = 0;
  std::map<u64, trial_memory::range> reads;
};

// False: it does something else than looking.
bool go_round(const wave& w, const address_space& space, round& out) {
  trial t(w, space);
  for (unsigned i = 0; i < k_round_steps; ++i) {
    out.pcs.insert(t.w.pc);
    out.lanes_on |= t.w.exec();
    if (!t.step() || !t.memory.changes.empty()) return false;
  }
  out.reads = std::move(t.memory.reads);
  return true;
}

bool is_conditional_branch(port& memory, target gpu, u64 pc) {
  u64 left = 0;
  const u32* const word = memory.code(pc, left);
  // SOPP: s_cbranch_* are 4 to 9 (MI200 ISA 12.5), or 33 to 38 (RDNA3 ISA, "SOPP Instructions")
  const u32 op = word ? *word >> 16 & 0x7f : 0, first = gpu == target::gfx1100 ? 33 : 4;
  return word && *word >> 23 == 0x17f && op >= first && op < first + 6;
}

const trial_memory::range* overlapped(const round& r, const trial_memory::range& by) {
  for (const auto& [address, read] : r.reads)
    if (address < by.address + by.bytes && by.address < address + read.bytes) return &read;
  return nullptr;
}

// The wave as if its lanes had left the loop: the first write of one that was off to where they look. Null: none comes.
const trial_memory::range* leave_loop(trial& t, const round& r, u64 off, const trial_memory::range** read) {
  t.memory.writers = off;
  for (unsigned i = 0; i < k_way_steps; ++i) {
    const u64 before = t.w.pc;
    if (!t.step()) return nullptr;
    for (const auto& change : t.memory.changes)
      if ((*read = overlapped(r, change)) != nullptr) return &change;
    t.memory.changes.clear();
    if (t.w.pc > before || (t.w.exec() & ~r.lanes_on) != 0 ||
        !is_conditional_branch(t.memory, t.shared.how.target, before))
      continue;
    t.w.pc = before + 4;
    t.w.set_mask(reg::exec, 0);
  }
  return nullptr;
}

// Whether the wave, with the memory that the other trial has written, comes to other instructions or changes memory.
bool goes_on(const wave& w, const address_space& space, const round& r, const trial_memory& after) {
  trial t(w, space);
  t.memory.written = after.written;
  for (unsigned i = 0; i < k_round_steps; ++i)
    if (!t.step() || r.pcs.count(t.w.pc) == 0 || !t.memory.changes.empty()) return !t.w.stopped;
  return false;
}

}  // namespace

std::string waits_for_own_lane(const wave& w, const address_space& memory, u64 all) {
  round r;
  if (!go_round(w, memory, r)) return {};
  const u64 off = all & ~r.lanes_on;
  if (off == 0) return {};
  trial left(w, memory);
  const trial_memory::range* read = nullptr;
  const trial_memory::range* const write = leave_loop(left, r, off, &read);
  if (write == nullptr || !goes_on(w, memory, r, left.memory)) return {};
  char text[400];
  std::snprintf(
      text, sizeof(text),
      "lanes that wait for a lane of their own wave in kernel %s at pc 0x%llx, workgroup (%u, %u, %u), wave %u: lanes "
      "0x%llx look at 0x%llx, which lane %u would write at pc 0x%llx; it is off in EXEC until they leave their loop",
      w.of->how.name.c_str(), static_cast<unsigned long long>(read->pc), w.of->id[0], w.of->id[1], w.of->id[2],
      w.number, static_cast<unsigned long long>(r.lanes_on), static_cast<unsigned long long>(read->address),
      write->lane, static_cast<unsigned long long>(write->pc));
  return text;
}

}  // namespace amdgpu
