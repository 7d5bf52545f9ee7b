// SPDX-License-Identifier: MIT
// LDS as FLAT instructions reach it through its aperture.
#pragma once
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

bool lds_load(wave& w, const operation& o, const std::uint32_t* offset, std::uint64_t active, unsigned bytes,
              std::uint32_t* data);
bool lds_store(wave& w, const operation& o, const std::uint32_t* offset, std::uint64_t active, unsigned bytes,
               const std::uint32_t* data);
bool lds_atomic(wave& w, const operation& o, atomic_op op, const std::uint32_t* offset, std::uint64_t active,
                unsigned bytes, const std::uint32_t* data, const std::uint32_t* compare, std::uint32_t* old);

}  // namespace amdgpu
