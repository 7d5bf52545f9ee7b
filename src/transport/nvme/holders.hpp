// SPDX-License-Identifier: MIT
// Who holds the disks of a controller: whoever loses data when it is taken from the kernel's driver.
#pragma once
#include <string>
#include <vector>

namespace xio::nvme {

// The names of its disks ("nvme0n1"), while the kernel's driver has it. root: "" or a folder that stands for it.
std::vector<std::string> disks_of(const std::string& root, const std::string& bdf);

// "" or who holds one of them, as "nvme0n1p1 is mounted on /home".
std::string holder_of_disks(const std::string& root, const std::vector<std::string>& disks);

}  // namespace xio::nvme
