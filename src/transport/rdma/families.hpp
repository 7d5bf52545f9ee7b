// SPDX-License-Identifier: MIT
// The formats of entries that this build knows: the proxy's, and those of software NICs where they are built. The only
// place of this room that knows the model.
#pragma once
#include <memory>
#include <string>

#include "proxy/family.hpp"
#include "proxy/fault_plan.hpp"
#include "proxy/frame_faults.hpp"
#include "transport/rdma/choice.hpp"

namespace xio::rdma {

using proxy::family;
using proxy::queue_image;
using proxy::queue_plan;

// Throws XIO_ERR_CONFIG for a name that is none, XIO_ERR_UNSUPPORTED for one that this build lacks.
const family& find_family(const std::string& name);

// Faults on purpose (XIO_MODEL_FAULTS), null where none are asked for. `frames` act on a fabric's frames, and are null
// where there are none of them.
struct planned_faults {
  std::unique_ptr<proxy::fault_plan> ops;
  proxy::frame_faults* frames = nullptr;
};
planned_faults plan_faults(const std::string& text, int pe, carrier way);

// Empty, or why this build has no software NIC.
std::string why_no_software_nic();

}  // namespace xio::rdma
