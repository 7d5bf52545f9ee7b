// SPDX-License-Identifier: MIT
// The facts of this process's GPU that decide_hdp() wants. Only after gpu::init.
#pragma once
#include "memory/hdp.hpp"

namespace xio::memory {

// Returns all but `nic` and `sdma`, which the world's engines decide.
hdp_facts hdp_facts_here();

}  // namespace xio::memory
