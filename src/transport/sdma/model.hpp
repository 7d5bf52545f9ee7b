// SPDX-License-Identifier: MIT
#pragma once
#include "transport/sdma/sdma.hpp"
#include "transport/software.hpp"

namespace xio::sdma {

// Software engines of the generation that XIO_MODEL_GPU names, run by `machine`, which must outlive them.
std::unique_ptr<engine> open_model(const software::devices& devices, const sdma_options& o, progress::machine& machine,
                                   const payload_agent& payload);

}  // namespace xio::sdma
