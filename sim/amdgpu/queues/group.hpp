// SPDX-License-Identifier: MIT
// A workgroup as queues see it: something that is run in slices. Tests have their own.
#pragma once
#include <functional>
#include <memory>

#include "amdgpu/isa/launch.hpp"
#include "amdgpu/memory/address_space.hpp"
#include "amdgpu/report/counters.hpp"
#include "amdgpu/report/fault.hpp"

namespace amdgpu {

class group {
 public:
  enum class state { running, finished, faulted };

  virtual ~group() = default;
  virtual state run(unsigned instructions) = 0;
  // The last run did nothing but wait.
  virtual bool asleep() const = 0;
  virtual fault what() const = 0;
  virtual counters executed() const { return {}; }
};

using group_maker =
    std::function<std::unique_ptr<group>(const launch&, const address_space&, std::array<std::uint32_t, 3> id)>;

// The interpreter's.
std::unique_ptr<group> make_interpreted(const launch& how, const address_space& memory,
                                        std::array<std::uint32_t, 3> id);

}  // namespace amdgpu
