// SPDX-License-Identifier: MIT
// In the place of software.cpp in a library without software devices: nothing but this file differs.
#include "transport/software.hpp"

namespace xio::software {

const devices* built_in() { return nullptr; }

}  // namespace xio::software
