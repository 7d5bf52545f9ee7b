// SPDX-License-Identifier: MIT
// What a NIC means by the code that a queue pair stopped with (ring_state::vendor), and what to do about it.
#pragma once
#include <string>

#include "xio/device/impl/view.hpp"

namespace xio::rdma {

// The family that a ring's entries are written for, as XIO_NIC_FAMILY names it; "" for rings of other engines.
const char* family_name(dev::ring_kind kind);

// "remote access error (0x13): ...; ..."
std::string vendor_text(dev::ring_kind kind, std::uint32_t vendor);

// Whether it says that the other end did not reply.
bool means_silence(dev::ring_kind kind, std::uint32_t vendor);

}  // namespace xio::rdma
