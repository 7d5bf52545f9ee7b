// SPDX-License-Identifier: MIT
// Which packets the copy engines of a GPU take, by the name of its processor.
#pragma once
#include <string>

#include "xio/wire/sdma.hpp"

namespace xio::sdma {

// name: "gfx90a:sramecc+:xnack-", "gfx1201" ... Throws XIO_ERR_UNSUPPORTED for a GPU whose packets are not known.
wire::sdma::generation generation_of(const std::string& name);

// Most bytes that XIO puts into one copy: never more than the generation's count holds.
std::uint32_t chunk_of(wire::sdma::generation g);

}  // namespace xio::sdma
