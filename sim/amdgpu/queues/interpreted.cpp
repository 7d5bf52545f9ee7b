// SPDX-License-Identifier: MIT

#include "amdgpu/isa/workgroup.hpp"
#include "amdgpu/queues/group.hpp"

namespace amdgpu {
namespace {

class interpreted final : public group {
 public:
  interpreted(const launch& how, const address_space& memory, std::array<std::uint32_t, 3> id)
      : inside_(how, memory, id) {}
  state run(unsigned instructions) override {
    switch (inside_.run(instructions)) {
      case workgroup::state::finished: return state::finished;
      case workgroup::state::faulted: return state::faulted;
      default: return state::running;
    }
  }
  bool asleep() const override { return inside_.asleep(); }
  fault what() const override { return inside_.what(); }
  counters executed() const override { return inside_.executed(); }

 private:
  workgroup inside_;
};

}  // namespace

std::unique_ptr<group> make_interpreted(const launch& how, const address_space& memory,
                                        std::array<std::uint32_t, 3> id) {
  return std::make_unique<interpreted>(how, memory, id);
}

}  // namespace amdgpu
