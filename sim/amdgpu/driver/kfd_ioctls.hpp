// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

namespace amdgpu {

class process;

// One call on /dev/kfd, or on fd of /dev/dri/renderD*; 0, or an errno as the kernel's.
int kfd_ioctl(process& p, std::uint32_t request, void* argument);
int gem_ioctl(process& p, int fd, std::uint32_t request, void* argument);

}  // namespace amdgpu
