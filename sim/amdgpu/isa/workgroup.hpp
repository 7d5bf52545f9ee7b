// SPDX-License-Identifier: MIT
// One workgroup of a kernel: its waves, its LDS and its barrier. A workgroup is run in slices, so that a scheduler can
// share few threads among the workgroups of all queues, and a kernel that spins starves nobody. One thread at a time
// may run a workgroup; which one may change between slices.
#pragma once
#include <memory>

#include "amdgpu/isa/launch.hpp"
#include "amdgpu/memory/address_space.hpp"
#include "amdgpu/report/counters.hpp"
#include "amdgpu/report/fault.hpp"

namespace amdgpu {

class workgroup {
 public:
  enum class state { running, finished, faulted };

  // The launch is copied; `memory` outlives the workgroup. A descriptor that cannot be run makes a workgroup that is
  // faulted from the start.
  workgroup(const launch& how, const address_space& memory, std::array<std::uint32_t, 3> id);
  ~workgroup();
  workgroup(workgroup&&) noexcept;
  workgroup& operator=(workgroup&&) noexcept;

  // Runs each wave in turn for at most this many instructions. A wave gives its turn up at s_sleep, s_barrier and
  // when it ends.
  state run(unsigned instructions);

  state now() const;
  const fault& what() const;
  const counters& executed() const;
  // True if the last run() did nothing but sleep and poll: the scheduler may pause before the next.
  bool asleep() const;
  unsigned waves() const;

 private:
  struct parts;
  std::unique_ptr<parts> inside;
};

// How many workgroups a launch has along each axis.
std::array<std::uint32_t, 3> workgroups_of(const launch& how);

// Drops what was decoded of [base, base + bytes). Nobody must call it: each instruction's bytes are compared with what
// was decoded of them whenever it runs.
void forget_code(std::uint64_t base, std::uint64_t bytes);

}  // namespace amdgpu
