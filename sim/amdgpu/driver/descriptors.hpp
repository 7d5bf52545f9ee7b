// SPDX-License-Identifier: MIT
// Descriptors of /dev/kfd and /dev/dri/renderD*: memfds that are known by their file's number, so that copies of them,
// and numbers that are used again for something else, are distinguished without hooking close().
#pragma once
#include <cstdint>
#include <vector>

namespace amdgpu {

enum class device_file { none, kfd, render };

// A descriptor with close-on-exec, or -1 and errno.
int open_device_file(device_file kind);
device_file device_file_of(int fd);
// A file's number, which its copies have, too: each opening is a file of its own.
std::uint64_t number_of_file(int fd);
void keep_device_file(int fd);
std::vector<int> kept_device_files();  // to look for content in

}  // namespace amdgpu
