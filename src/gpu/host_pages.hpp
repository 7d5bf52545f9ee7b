// SPDX-License-Identifier: MIT
// Ordinary pages of the host, on every platform.
#pragma once
#include <cstddef>

namespace xio::gpu {

// Throws XIO_ERR_NO_MEMORY if the machine, or the memory cgroup of this process, has not that many: pages are taken
// when they are touched, when it is too late to refuse.
void check_available(std::size_t bytes, const char* what, const char* cure = "ask for less");

// Addresses only, at a multiple of alignment, which is a power of two of a page at least; bytes are whole pages.
// Touching them is a fault.
void* reserve_pages(std::size_t bytes, std::size_t alignment, const char* what);
// Puts zeroed memory there.
void fill_pages(void* at, std::size_t bytes, const char* what);
void unmap_pages(void* at, std::size_t bytes) noexcept;

}  // namespace xio::gpu
