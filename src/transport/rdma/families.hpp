// SPDX-License-Identifier: MIT
// The formats of entries that this build knows: the proxy's, and those of software NICs where they are built.
#pragma once
#include "transport/rdma/carrier.hpp"
#include "transport/software.hpp"

namespace xio::rdma {

using proxy::family;
using proxy::queue_image;
using proxy::queue_plan;

// Throws XIO_ERR_CONFIG for a name that is none, XIO_ERR_UNSUPPORTED for one that this build lacks.
const family& find_family(const std::string& name);

// Faults on purpose (XIO_MODEL_FAULTS).
software::nic_faults plan_faults(const std::string& text, int pe, carrier way);

// Empty, or why this build has no software NIC.
std::string why_no_software_nic();

}  // namespace xio::rdma
