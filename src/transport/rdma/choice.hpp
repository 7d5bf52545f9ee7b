// SPDX-License-Identifier: MIT
// Which way RDMA goes in a world: over a real device, or on the software NIC by shared memory or TCP. All PEs take the
// same.
#pragma once
#include <string>

#include "base/options.hpp"
#include "bootstrap/bootstrap.hpp"

namespace xio::rdma {

enum class carrier : std::uint32_t { shm = 1, tcp = 2, verbs = 3 };

const char* name_of(carrier c);

// What one PE could do and was told.
struct carrier_offer {
  std::uint32_t wanted;   // 0: auto, else a carrier
  std::uint32_t backend;  // 0 auto, 1 hw, 2 model
  std::uint32_t mapped;   // every peer's heap is in this address space
  std::uint32_t verbs;    // a usable RDMA device is here
};

// Pure: by the offers of all PEs; throws naming the PE that stands in the way. `why_not`: why this PE has no device.
carrier choose_carrier(const std::vector<carrier_offer>& all, int me, const std::string& why_not);

// Collective.
carrier agree_on_carrier(bootstrap::channel& c, const options& o, bool mapped, const std::string& why_no_verbs);

// The family for that carrier: XIO_NIC_FAMILY, or what fits.
std::string family_name(const options& o, carrier c);

}  // namespace xio::rdma
