// SPDX-License-Identifier: MIT
// Registers of another device, exported as a dma-buf, for kernels of an AMD GPU on Linux's own amdgpu. By reading of
// Linux 7.3.4 (amdgpu_dma_buf.c, amdgpu_gem.c, amdkfd/kfd_chardev.c); not seen on silicon.
#pragma once
#include "base/unique_fd.hpp"
#include "gpu/gpu.hpp"
#include "gpu/kfd_kernel.hpp"

namespace xio::gpu {

// Where kernels of that GPU see the dma-buf, until the pointer goes; the device's object outlives it. Throws the
// reason.
std::shared_ptr<void> import_registers(kfd_kernel& kernel, std::uint32_t gpu_id, unique_fd file, std::size_t bytes,
                                       bool pins);

// A page of registers for this process's GPU. Null: the reason stands behind what `why` had.
void* map_exported(void* page, std::size_t bytes, const register_export& as, std::string& why);
bool unmap_exported(void* page);  // false: it is none of those

}  // namespace xio::gpu
