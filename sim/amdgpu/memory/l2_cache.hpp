// SPDX-License-Identifier: MIT
// One L2, which compute units share and no other device looks into: all those of a gfx90a, those of one XCC of a
// gfx942 (l2_caches.hpp). Which lines it keeps depends on the memory's kind, which the driver writes into page tables
// (linux amdgpu, gmc_v9_0.c, gmc_v9_0_get_coherence_flags; LLVM AMDGPUUsage, "Memory Model GFX90A" and "GFX942"):
//   RW: stores are dirty lines until a write-back; what others write is seen.
//   NC: stores are dirty, and lines that were read are stale, until a write-back and an invalidate.
//   CC writes through and is probed, UC passes by; both keep nothing.
//                        gfx90a                    gfx942                    gfx1100
//   this GPU's           RW, fine-grained CC       RW, fine-grained too      NC, fine-grained UC
//   another GPU's        NC, fine-grained UC       NC, fine-grained too      NC, fine-grained UC
//   the host's           NC, fine-grained UC       UC                        NC, fine-grained UC
//   uncached             UC                        UC                        UC
// gfx1100's are linux amdgpu's gmc_v11_0_get_vm_pte. It has no instruction that writes the L2 back or invalidates it
// (LLVM AMDGPUUsage, "Memory Model GFX10-GFX11"): of coarse-grained memory other devices see what a kernel stored, and
// a kernel what they stored, by a packet's release and acquire alone. On gfx942 an access has a scope. One that reaches
// beyond this L2, to the agent's other L2s or to the system, loads no stale line and stores to memory at once; atomics
// that do so are done in memory. A dirty line may leave by itself at any time, as a seed chooses, or never. With `hdp`
// the host data path is kept here too: a line of this GPU's memory that a kernel has read does not change by what
// others write until the path is flushed.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <mutex>
#include <random>
#include <unordered_map>

#include "amdgpu/memory/address_space.hpp"
#include "amdgpu/memory/port.hpp"

namespace amdgpu {

// The GPU's additions to gfx90a's model.
struct l2_rules {
  bool scoped = false;     // gfx942
  unsigned of_gpu = 1;     // L2s of the GPU
  bool own_is_nc = false;  // gfx1100
};

// The path by which the host and devices write to a GPU's memory, one for all its L2s.
struct host_path {
  std::atomic<std::uint32_t*> flush_word{nullptr};  // where the process sees the register that flushes it
  std::atomic<std::uint64_t> flushes{0};
};

class l2_cache {
 public:
  static constexpr std::uint64_t line_bytes = 128;  // AMD CDNA 2 white paper
  static constexpr std::size_t lines_at_most = 65536;

  enum class keeping : std::uint8_t { nothing, dirty, all };
  keeping of(mapping::place where, mapping::caching how) const;
  // How far an access has to be seen, or to look.
  enum class reach : std::uint8_t { workgroup, agent, system };

  explicit l2_cache(std::uint64_t seed, bool hdp = false, l2_rules by = {}, host_path* shared = nullptr)
      : random(seed), holds_back(hdp), rules(by), path(shared ? *shared : own_path) {}

  // Addresses are the process's; no access goes over a line's end. Callers hold the lock for one wave's access, so that
  // its lanes see one state.
  std::mutex& lock() { return guard; }
  // Whether such memory is here at all, or may pass by.
  bool keeps(mapping::place where, mapping::caching how) const {
    return of(where, how) != keeping::nothing || (holds_back && where == mapping::place::local);
  }
  // Whether an access goes beyond this L2.
  bool leaves(reach r) const { return rules.scoped && (r == reach::system || (r == reach::agent && rules.of_gpu > 1)); }
  void read(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, std::uint8_t* out,
            reach r = reach::workgroup);
  void write(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, const std::uint8_t* in,
             reach r = reach::workgroup);
  // Before an access that is done in memory: the line is there and not here.
  void drop(std::uint64_t at);
  // One read-modify-write of 4 or 8 bytes; returns the old value.
  std::uint64_t change(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, atomic_op op,
                       std::uint64_t value, std::uint64_t compare);

  // The rest takes the lock.
  void write_back();       // buffer_wbl2, and a packet's release
  void invalidate();       // buffer_invl2, buffer_inv, and a packet's acquire
  void flush_host_path();  // what others wrote is seen
  // Where the process sees the register that flushes the host data path; null: nowhere.
  void flush_register(std::uint32_t* at) { path.flush_word = at; }
  // The driver takes the range away: what is dirty reaches memory.
  void forget(std::uint64_t at, std::uint64_t bytes);

 private:
  struct line {
    alignas(8) std::array<std::uint8_t, line_bytes> data;
    std::bitset<line_bytes> dirty;
    bool whole = false;  // all bytes are here, not the dirty ones alone
    bool held = false;   // until the host data path is flushed
  };
  using table = std::unordered_map<std::uint64_t, line>;

  line& found(std::uint64_t base);
  void fill(std::uint64_t base, line& l);
  void send(std::uint64_t base, line& l);
  void make_room();
  void look_at_register();
  void let_go();

  std::mutex guard;
  std::mt19937_64 random;
  const bool holds_back;
  const l2_rules rules;
  host_path own_path;
  host_path& path;
  std::uint64_t flushes_seen = 0;
  table lines;  // by address
};

}  // namespace amdgpu
