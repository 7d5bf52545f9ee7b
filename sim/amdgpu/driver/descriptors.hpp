// SPDX-License-Identifier: MIT
// Descriptors of /dev/kfd and /dev/dri/renderD*: memfds that are known by their file's number, so that copies of them,
// and numbers that are used again for something else, are distinguished without hooking close().
#pragma once

namespace amdgpu {

enum class device_file { none, kfd, render };

// A descriptor with close-on-exec, or -1 and errno.
int open_device_file(device_file kind);
device_file device_file_of(int fd);
// The one that copies are made of, or -1.
int kept_device_file(device_file kind);

}  // namespace amdgpu
