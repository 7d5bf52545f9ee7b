// SPDX-License-Identifier: MIT
// Lanes that wait for a lane of their own wave. Lanes of these GPUs have one program counter: those that EXEC switches
// off run when the others have left the loop, so a loop that waits for them has no end. It is found by trial: the wave
// goes round and changes nothing; were the loop left, a lane that is off now would write where it looks; and with that
// written it does leave the loop.
#pragma once
#include <string>

#include "amdgpu/memory/address_space.hpp"

namespace amdgpu {

struct wave;

// One sentence, or none if it is not so. `all` are the lanes that the wave began with. Nothing that the trial does is
// seen outside; memory is read as it is, without caches.
std::string waits_for_own_lane(const wave& w, const address_space& memory, std::uint64_t all);

}  // namespace amdgpu
