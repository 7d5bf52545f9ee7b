// SPDX-License-Identifier: MIT
// Copy engines of the GPU itself, by user queues of the kernel's compute driver.
#pragma once
#include <memory>
#include <string>

#include "transport/sdma/kfd_driver.hpp"
#include "transport/sdma/sdma.hpp"

namespace xio::sdma {

// Of a GPU: its processor's name and where it is on the bus.
struct kfd_place {
  std::string arch;      // "gfx90a:sramecc+:xnack-"
  std::string identity;  // of the GPU, see topology/kfd_node.hpp
};

// Throws XIO_ERR_UNSUPPORTED for a GPU that the driver does not know or whose packets are not known, and
// XIO_ERR_CONFIG for options that cannot be.
std::unique_ptr<engine> open_kfd_engine(const sdma_options& o, std::unique_ptr<kfd_driver> driver,
                                        const kfd_place& gpu);

}  // namespace xio::sdma
