// SPDX-License-Identifier: MIT
// The L2 of one GPU, which all its compute units share and no other device looks into (gfx90a). Which lines it keeps
// depends on the memory's kind, which the driver writes into page tables (linux amdgpu, gmc_v9_0.c,
// gmc_v9_0_get_coherence_flags; LLVM AMDGPUUsage, "Memory Model GFX90A"):
//   of this GPU, coarse-grained: RW. Stores are dirty lines until buffer_wbl2; what others write is seen.
//   of another GPU or the host, coarse-grained: NC. Stores are dirty, and lines that were read are stale, until
//   buffer_wbl2 and buffer_invl2.
//   fine-grained and uncached: CC writes through and is probed, UC passes by; both keep nothing.
// A dirty line may leave by itself at any time, as a seed chooses, or never. With `hdp` the host data path is kept here
// too: a line of this GPU's memory that a kernel has read does not change by what others write until the path is
// flushed.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <random>
#include <unordered_map>

#include "amdgpu/memory/address_space.hpp"
#include "amdgpu/memory/port.hpp"

namespace amdgpu {

class l2_cache {
 public:
  static constexpr std::uint64_t line_bytes = 128;  // AMD CDNA 2 white paper
  static constexpr std::size_t lines_at_most = 65536;

  enum class keeping : std::uint8_t { nothing, dirty, all };
  static keeping of(mapping::place where, mapping::caching how);

  explicit l2_cache(std::uint64_t seed, bool hdp = false) : random(seed), holds_back(hdp) {}

  // Addresses are the process's; no access goes over a line's end. Callers hold the lock for one wave's access, so that
  // its lanes see one state.
  std::mutex& lock() { return guard; }
  // Whether such memory is here at all, or may pass by.
  bool keeps(mapping::place where, mapping::caching how) const {
    return of(where, how) != keeping::nothing || (holds_back && where == mapping::place::local);
  }
  void read(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, std::uint8_t* out);
  void write(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, const std::uint8_t* in);
  // One read-modify-write of 4 or 8 bytes; returns the old value.
  std::uint64_t change(std::uint64_t at, unsigned bytes, mapping::place where, mapping::caching how, atomic_op op,
                       std::uint64_t value, std::uint64_t compare);

  // The rest takes the lock.
  void write_back();       // buffer_wbl2, and a packet's release to the system
  void invalidate();       // buffer_invl2, and a packet's acquire from the system
  void flush_host_path();  // what others wrote is seen
  // Where the process sees the register that flushes the host data path; null: nowhere.
  void flush_register(std::uint32_t* at) { flush_word = at; }
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
  std::atomic<std::uint32_t*> flush_word{nullptr};
  table lines;  // by address
};

}  // namespace amdgpu
