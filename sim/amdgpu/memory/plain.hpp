// SPDX-License-Identifier: MIT
// Memory in order: each access is done when its instruction runs, in program order, as the host CPU does it. An address
// that is not mapped is refused before it is touched.
#pragma once
#include <array>

#include "amdgpu/memory/address_space.hpp"
#include "amdgpu/memory/port.hpp"

namespace amdgpu {

class plain final : public port {
 public:
  explicit plain(const address_space& of) : space(of) {}

  bool load(const access& of, std::uint32_t* data, refusal& no) override;
  bool store(const access& of, const std::uint32_t* data, refusal& no) override;
  bool atomic(const access& of, atomic_op op, const std::uint32_t* data, const std::uint32_t* compare,
              std::uint32_t* old, refusal& no) override;
  bool load_scalar(std::uint64_t address, unsigned dwords, std::uint32_t* data, refusal& no) override;
  const std::uint32_t* code(std::uint64_t address, std::uint64_t& left) override;
  bool wait_vector(unsigned wave, std::uint64_t through, refusal& no) override;
  bool wait_stores(unsigned wave, std::uint64_t through, refusal& no) override {
    return wait_vector(wave, through, no);
  }
  void writeback(unsigned wave, std::uint64_t number) override;
  void invalidate() override;
  void invalidate_vector_cache() override;
  void invalidate_l0(unsigned) override { invalidate_vector_cache(); }
  void invalidate_l1() override {}
  // Whether every lane's access would be done.
  bool mapped(const access& of, bool write, refusal& no);
  // Whether an atomic's addresses are multiples of its size.
  static bool aligned(const access& of, refusal& no);

  // A mapping that was looked at lately.
  struct window {
    std::uint64_t base = 0, end = 0;
    std::uint64_t shift = 0;  // from the GPU's address to the process's
    bool writable = false;
    mapping::place where = mapping::place::local;
    mapping::caching how = mapping::caching::coarse;
    register_file* device = nullptr;
  };
  // Null if nothing is mapped there.
  const window* look(std::uint64_t address);
  // The one that holds what all lanes access; null if there is none.
  const window* holds_all(const access& of, bool write);
  void fence();

 private:
  void tell_device(const access& of, const std::uint32_t* data);
  bool translate(std::uint64_t address, unsigned bytes, bool write, std::uint64_t& host, refusal& no);
  template <class One>
  bool each_lane(const access& of, bool write, refusal& no, One one);

  const address_space& space;
  std::array<window, 8> known{};
  unsigned next = 0;
  std::uint64_t seen = 0;  // generation of what is known
  bool stored = false;     // since the last fence
  bool has_device = false;
};

}  // namespace amdgpu
