// SPDX-License-Identifier: MIT
// Whether engines can be let loose on memory that is none of xio_mem_alloc: an engine that reads where nothing is
// mapped kills the process, or fails long after the mistake.
#pragma once
#include "memory/mappings.hpp"

namespace xio::memory {

// "" if mappings hold all of [first, last) and may be read and written, or what is not so. With any_rights what is
// mapped without them passes: it may be memory of a device that the GPU's runtime does not know.
std::string not_usable(const std::vector<mapping>& mapped, std::uint64_t first, std::uint64_t last, bool any_rights);

// Throws XIO_ERR_ARG. Asks the GPU's runtime about the ends, and for host memory the kernel about its mappings, whose
// number is what it costs: the length does not matter.
void check_usable(const void* base, std::uint64_t bytes, const char* function);

}  // namespace xio::memory
