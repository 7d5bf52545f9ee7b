// SPDX-License-Identifier: MIT
// A symmetric heap of host memory: a memfd that PEs of this machine open through /proc and map. It is the heap of the
// host platform, and on a GPU what XIO_HEAP_KIND=host registers with every PE's device.
#pragma once
#include "gpu/gpu.hpp"

namespace xio::gpu {

std::unique_ptr<heap> make_file_heap(std::size_t bytes);  // as make_heap
std::unique_ptr<mapping> map_file_heap(const std::vector<std::byte>& handle, std::size_t bytes);

}  // namespace xio::gpu
