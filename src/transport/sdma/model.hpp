// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "transport/sdma/sdma.hpp"

namespace xio::sdma {

// The software engine of generation gfx90a, run by `machine`, which must outlive it.
std::unique_ptr<engine> open_model(model::machine& machine, const payload_agent& payload);

}  // namespace xio::sdma
