// SPDX-License-Identifier: MIT
// What xio-info prints: sections of rows, once as text for people and once as JSON for programs.
#pragma once
#include <variant>

#include "base/options.hpp"

namespace xio::info {

using value = std::variant<bool, std::uint64_t, std::string>;

struct row {
  std::string name;  // "page_bytes": a key of the JSON
  value is;
  std::string note;  // behind the value, for people; empty: none
};

struct section {
  std::string name;   // "hdp": a key of the JSON
  std::string title;  // for people
  std::vector<row> rows;
};

// Each finds out by itself and never throws for what is not there: that is a result. Those that follow the first want
// `gpu_ready`, its result on whether a GPU can be used.
std::vector<section> version_sections();  // of this build
section platform_section(bool* gpu_ready);
std::vector<section> gpu_sections();  // one for each that this process can use
section memory_section(const heap_options& o, bool gpu_ready);
section hdp_section(const sdma_options& o, bool gpu_ready);
section sdma_section(const sdma_options& o, bool gpu_ready);

// First a section that counts them, then one for each.
std::vector<section> nic_sections(const rdma_options& o);
// None where nobody asks for libfabric and there is no Slingshot NIC.
std::vector<section> libfabric_sections(const rdma_options& o);
// root: in front of /sys, /proc, /dev and /boot, "" for this machine; dump: see topology/pci_reader.hpp.
std::vector<section> drive_sections(const nvme_options& o, const std::string& root);
section preflight_section(const heap_options& o, const std::string& root, const std::string& dump);
bool lacks_something(const section& preflight);
// By hwloc; of a file of lstopo's XML, or of this machine if `file` is empty.
std::vector<section> topology_sections(const std::string& file);
// Of this PE's view of a world. Collective.
std::vector<section> world_sections();
// PCIe AtomicOps of one device, or of every GPU and NIC if bus_id is empty; see topology/pci_reader.hpp for dump.
std::vector<section> atomics_sections(const std::string& dump, const std::string& bus_id);
// Lets a device send them, if they would arrive. Returns what was done; throws if they would not, or it could not.
std::string enable_atomics(const std::string& bus_id);
// Binds a drive to vfio-pci, or gives it back to Linux. Prints the steps before it does them, and returns what came of
// it; throws where the drive is in use, shares its IOMMU group with others, or cannot be moved.
std::string bind_drive(const std::string& root, const std::string& bus_id);
std::string unbind_drive(const std::string& root, const std::string& bus_id);

std::string as_text(const std::vector<section>& sections);
std::string as_json(const std::vector<section>& sections);

// Every variable of the environment: name, type, default, meaning.
std::string options_as_text();
std::string options_as_json();

}  // namespace xio::info
