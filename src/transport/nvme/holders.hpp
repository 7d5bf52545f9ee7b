// SPDX-License-Identifier: MIT
// Finds the users of a controller's disks: they would lose data if it were taken from the kernel's driver.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace xio::nvme {

// The names of its disks ("nvme0n1"), while the kernel's driver has it. root: "" or a folder that stands for it.
std::vector<std::string> disks_of(const std::string& root, const std::string& bdf);

// "" or who holds one of them, as "nvme0n1p1 is mounted on /home". One that this process may not ask counts as held.
std::string holder_of_disks(const std::string& root, const std::vector<std::string>& disks);

// Of Identify Namespace (NVM command set 1.0, 4.1.5.1); identifiers that a drive does not have are 0.
struct namespace_identity {
  std::array<std::uint8_t, 16> nguid{};
  std::array<std::uint8_t, 8> eui64{};
  std::uint32_t nsid = 0;
  std::uint64_t bytes = 0;
};

// The disks of the kernel that are, or may be, the same namespace through another controller.
std::vector<std::string> disks_of_namespace(const std::string& root, const namespace_identity& is);

// Throws where one of those is in use. name: of the storage, for the sentence.
void refuse_namespace_in_use(const namespace_identity& is, const std::string& name);

}  // namespace xio::nvme
