// SPDX-License-Identifier: MIT
// What a copy engine means by the code that a queue stopped with (ring_state::vendor).
#pragma once
#include <cstdint>
#include <string>

namespace xio::sdma {

// "an address is not mapped (code 0xb); ..."
std::string vendor_text(std::uint32_t vendor);

}  // namespace xio::sdma
