// SPDX-License-Identifier: MIT
// Whether a provider does what it announces: each kind of op once, between this PE and itself. Providers list calls
// that are stubs, and orders that do not hold.
#pragma once
#include <string>

#include "proxy/fabric.hpp"

namespace xio::proxy::ofi {

struct trial_result {
  std::uint32_t atomics;  // of dev::nic_atomics
  bool ordered;
  std::string text;  // "of 8 and 4 bytes, with masks"
};

// Throws XIO_ERR_UNSUPPORTED where writes, reads or the 8-byte atomics that everything needs do not work.
trial_result try_ops(fabric& f, int me, const std::string& name);

}  // namespace xio::proxy::ofi
