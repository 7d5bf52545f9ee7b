// SPDX-License-Identifier: MIT
// The files by which the kernel's compute driver describes a machine: /sys/class/kfd/kfd/topology, and the GPUs as PCI
// functions.
#pragma once
#include "amdgpu/driver/settings.hpp"

namespace amdgpu {

// GPUs (each partition is one) are numbered from 0, nodes from 1 behind the host's, render nodes from 128.
constexpr std::uint32_t gpu_id_of(unsigned gpu) { return 0x5a00 + gpu; }
constexpr unsigned render_minor_of(unsigned gpu) { return 128 + gpu; }
// The host is the same on every machine.
constexpr unsigned k_host_processors = 4;
constexpr std::uint64_t k_host_bytes = std::uint64_t{64} << 30;
// The GPU with that id, or -1.
int gpu_of_id(const settings& s, std::uint32_t gpu_id);
// libdrm's number of the GPUs' family.
std::uint32_t family_of(const settings& s);
// Of the PCI functions, one for all partitions of a GPU.
std::string bus_id_of(unsigned function);

// Writes FOLDER/kfd/... and FOLDER/pci/BUS_ID/...; throws std::filesystem::filesystem_error or std::runtime_error.
void write_topology(const settings& s, const std::string& folder);

// Maps a path of the kernel's to one in the session's folder; an empty string if it is none of ours.
std::string redirected(const char* session, const char* path);

}  // namespace amdgpu
