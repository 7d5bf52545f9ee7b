// SPDX-License-Identifier: MIT
// The one door between instructions and memory. Every load, store and atomic of every wave passes through a port with
// all that a memory model may ask about: the wave, where, how wide, and the scope bits. `plain` does each access at
// once; a port that delays and reorders has the same face.
#pragma once
#include <bit>
#include <cstdint>

namespace amdgpu {

constexpr unsigned lanes = 64;

// Scope and policy bits of an instruction (MI200 ISA, "Memory Scopes and Temporal Hints").
struct scope_bits {
  bool glc = false, slc = false, scc = false;
};

enum class access_kind : std::uint8_t { scalar, global, flat, scratch };

// One wave's access: lane l of `active` touches [address[l], address[l] + bytes).
struct access {
  const std::uint64_t* address = nullptr;
  std::uint64_t active = 0;
  unsigned bytes = 0;  // per lane: 1, 2, 4, 8, 12 or 16
  access_kind kind = access_kind::global;
  scope_bits scope;
  const void* workgroup = nullptr;
  unsigned wave = 0;
  std::uint64_t number = 0;   // of the wave's vector accesses, counted from 1 as vmcnt does
  bool stores = false;        // the number is one of gfx1100's vscnt
  bool to_registers = false;  // a load's data lie in registers, which may get them later
};

// Why an access was refused.
struct refusal {
  int lane = -1;
  std::uint64_t address = 0;
  bool write = false, misaligned = false;
  const char* why = "";
};

// The active lanes of a mask, in their order: for (unsigned lane : active_lanes(mask)).
class active_lanes {
 public:
  class iterator {
   public:
    explicit iterator(std::uint64_t left) : left_(left) {}
    unsigned operator*() const { return static_cast<unsigned>(std::countr_zero(left_)); }
    iterator& operator++() { return left_ &= left_ - 1, *this; }
    bool operator!=(const iterator& o) const { return left_ != o.left_; }

   private:
    std::uint64_t left_;
  };
  explicit active_lanes(std::uint64_t mask) : mask_(mask) {}
  iterator begin() const { return iterator(mask_); }
  iterator end() const { return iterator(0); }

 private:
  std::uint64_t mask_;
};

enum class atomic_op : std::uint8_t {
  // clang-format off
  swap, cmpswap, add, sub, smin, umin, smax, umax, bit_and, bit_or, bit_xor, inc, dec, rsub, mskor,
  add_float, min_float, max_float,  // of the access's width
  pk_add_f16
  // clang-format on
};
// Rows of decoders' tables: the integers' atomics that flat and buffer instructions have, by the names of the ISA.
#define ATOMICS_OF_INTEGERS(row)                                                                                      \
  row("swap", swap), row("cmpswap", cmpswap), row("add", add), row("sub", sub), row("smin", smin), row("umin", umin), \
      row("smax", smax), row("umax", umax), row("and", bit_and), row("or", bit_or), row("xor", bit_xor),              \
      row("inc", inc), row("dec", dec)

// Data lies as registers do: dword k of lane l is at [k * 64 + l].
class port {
 public:
  virtual ~port() = default;

  // Bytes narrower than a dword come zero-extended. Lanes that are not active keep what `data` held.
  virtual bool load(const access& of, std::uint32_t* data, refusal& no) = 0;
  virtual bool store(const access& of, const std::uint32_t* data, refusal& no) = 0;
  // One read-modify-write per active lane, in the order of lanes. `compare` is for cmpswap. `old` may be null.
  virtual bool atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
                      std::uint32_t* old, refusal& no) = 0;
  // A scalar load of `dwords`, consecutive.
  virtual bool load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no) = 0;
  // Instructions may be read from here; null if not. `left` is how far the mapping goes.
  virtual const std::uint32_t* code(std::uint64_t address, std::uint64_t& left) = 0;

  // s_waitcnt: the wave's accesses up to this number are done. False: one of them was refused.
  virtual bool wait_vector(unsigned wave, std::uint64_t through, refusal& no) = 0;
  // gfx1100's s_waitcnt_vscnt: the same for those that it counts.
  virtual bool wait_stores(unsigned wave, std::uint64_t through, refusal& no) = 0;
  virtual void pass_turn() {}  // time goes by for what is under way
  // buffer_wbl2, which vmcnt counts by this number.
  virtual void writeback(unsigned wave, std::uint64_t number) = 0;
  virtual void invalidate() = 0;               // buffer_invl2
  virtual void invalidate_vector_cache() = 0;  // buffer_wbinvl1, buffer_wbinvl1_vol
  virtual void invalidate_scalar_cache() {}    // s_dcache_inv
  // gfx1100's buffer_gl0_inv, of the compute unit on which the wave is, and buffer_gl1_inv.
  virtual void invalidate_l0(unsigned wave) = 0;
  virtual void invalidate_l1() = 0;
};

}  // namespace amdgpu
