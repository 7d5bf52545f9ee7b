// SPDX-License-Identifier: MIT
// Memory that does late and out of order what gfx90a may do late and out of order: S_WAITCNT of the MI200 ISA, and the
// memory model for gfx90a of LLVM's AMDGPUUsage, neither of which was read again for this file. A store is under way
// until the wave waits for its vmcnt, or until it leaves by itself in a later turn; those under way leave in any order
// but where they overlap, and one that a later one covers does not leave at all. A load delivers its registers when it
// is waited for, with the value of then or of when it was issued, and what the compute unit's L1 holds may be older
// than that. A seed chooses.
#pragma once
#include <memory>
#include <vector>

#include "amdgpu/memory/vector_cache.hpp"

namespace amdgpu {

class adversary final : public port {
 public:
  // vmcnt has six bits (MI200 ISA 4.4): a wave whose counter is full issues nothing before its oldest access is done.
  static constexpr std::size_t most_under_way = 63;

  // A register holds this from a load's issue until it is waited for.
  static constexpr std::uint32_t poison = 0xbad10ad5;

  // L2 is that of the GPU; null: memory has no L2 before it.
  adversary(const address_space& of, std::uint64_t seed, l2_cache* l2 = nullptr)
      : space(of),
        memory(of, l2),
        random(seed),
        cache(of, memory, random),
        scalar_random(~seed),
        scalar_cache(of, memory, scalar_random) {}

  bool load(const access& of, std::uint32_t* data, refusal& no) override;
  bool store(const access& of, const std::uint32_t* data, refusal& no) override;
  bool atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
              std::uint32_t* old, refusal& no) override;
  bool load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no) override;
  const std::uint32_t* code(std::uint64_t address, std::uint64_t& left) override;
  bool wait_vector(unsigned wave, std::uint64_t through, refusal& no) override {
    return wait(wave, through, false, no);
  }
  bool wait_stores(unsigned wave, std::uint64_t through, refusal& no) override { return wait(wave, through, true, no); }
  void pass_turn() override;
  void writeback(unsigned wave, std::uint64_t number) override;
  void invalidate() override { memory.invalidate(); }
  void invalidate_vector_cache() override { cache.invalidate(); }
  void invalidate_scalar_cache() override { scalar_cache.invalidate(); }
  void invalidate_l0(unsigned wave) override { cache_of(wave).invalidate(); }
  void invalidate_l1() override { (array ? *array : cache).invalidate(); }
  // Before the first access, on gfx1100: `on_pair` has the workgroup's waves on both compute units of a pair, by turns,
  // each unit with an L0 of its own. `of_array` is the L1 of their shader array; null: the workgroup has one alone.
  void have_l0(bool on_pair, vector_cache* of_array = nullptr);

 private:
  struct pending {
    std::uint64_t address[lanes];
    std::uint64_t low = 0, high = 0;  // all that it touches lies from low to high
    std::uint32_t data[4 * lanes];    // a store's, or those that a load had when it was issued
    access of;
    std::uint32_t* registers = nullptr;  // of a load; null for a store
    bool read = false;                   // the load has its data
    bool writes_back = false;            // it is a buffer_wbl2
    bool done = false;                   // before its turn
  };

  bool wait(unsigned wave, std::uint64_t through, bool stores, refusal& no);
  static bool overlap(const pending& p, const access& of);
  static bool covers(const access& of, const pending& p);
  void merge(const access& of);
  bool finish(pending& p, refusal& no);
  bool write_back(const pending& p, refusal& no);
  bool finish_older(const access& of, bool loads_too, refusal& no);
  pending* add(const access& of, refusal& no);
  template <class Which>
  void remove_if(Which which);
  bool chance(unsigned of) { return random() % of == 0; }

  const address_space& space;
  l2_port memory;
  std::mt19937_64 random;
  vector_cache& cache_of(unsigned wave) { return l0[0] ? *l0[l0[1] ? wave & 1 : 0] : cache; }

  vector_cache cache;  // gfx1100's is that of the shader array, unless `array` is
  vector_cache* array = nullptr;
  // A value that a scalar load has read stays until s_dcache_inv, which LLVM writes nowhere: scalar loads are for
  // memory that nobody changes while the kernel runs (AMDGPUUsage, "Memory Model GFX90A").
  std::mt19937_64 scalar_random;
  vector_cache scalar_cache;
  std::unique_ptr<vector_cache> l0[2];  // of compute units; none on other GPUs
  using kept = std::unique_ptr<pending>;
  std::vector<kept> under_way;  // the oldest of each wave first
  std::vector<kept> spare;
  refusal late;  // of a store that left by itself
  bool refused = false;
};

}  // namespace amdgpu
