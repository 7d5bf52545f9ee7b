// SPDX-License-Identifier: MIT
// Whether kernels may change the heaps of other GPUs of this machine by atomics over loads and stores. Where PCIe does
// not carry AtomicOps such an atomic is lost without a word, so a world that has one such pair goes another way. So
// does one whose PEs cannot map each other's heaps at all.
#pragma once
#include "ctx/agreement.hpp"
#include "ctx/attributes.hpp"
#include "topology/placement.hpp"

namespace xio {

// "" or why not: device, port, bit, cure; on another PE's word only that it found something. gpus: by PE, bus ids of
// those on this machine. known: what this PE has found already. Collective; throws on every PE or on none.
std::string find_direct_obstacle(agreement& all, bootstrap::channel& channel, const options& o,
                                 const std::vector<std::string>& gpus, const topology::placement& place,
                                 const std::string& known);

// Changes the chosen route in a world with such an obstacle. A word is atomic by one route only, so all PEs change
// theirs: auto becomes rdma. Throws XIO_ERR_UNSUPPORTED for a route that was asked for and needs loads and stores.
void avoid_direct(ctx_settings& settings, const std::string& obstacle);

}  // namespace xio
