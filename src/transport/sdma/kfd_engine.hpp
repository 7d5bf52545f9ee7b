// SPDX-License-Identifier: MIT
// Copy engines of the GPU itself, by user queues of the kernel's compute driver.
#pragma once
#include "transport/sdma/kfd_driver.hpp"
#include "transport/sdma/sdma.hpp"

namespace xio::sdma {

// Of a GPU: its processor's name and where it is on the bus.
struct kfd_place {
  std::string arch;      // "gfx90a:sramecc+:xnack-"
  std::string identity;  // of the GPU, see topology/kfd_node.hpp
};

// Throws XIO_ERR_UNSUPPORTED for a GPU that the driver does not know or whose packets are not known, and
// XIO_ERR_CONFIG for options that cannot be. tries: a kernel rings a queue once, and where its packet is not done
// within so long it is XIO_ERR_UNSUPPORTED, too.
std::unique_ptr<engine> open_kfd_engine(const sdma_options& o, std::unique_ptr<kfd_driver> driver, const kfd_place& gpu,
                                        std::chrono::milliseconds tries = {});

}  // namespace xio::sdma
