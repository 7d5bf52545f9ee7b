// SPDX-License-Identifier: MIT
#include "topology/pci_reader.hpp"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "topology/atomics.hpp"
#include "topology/pci_config.hpp"
#include "topology/pci_dump.hpp"

namespace xio::topology {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_devices = "/sys/bus/pci/devices";

std::vector<std::uint8_t> read_config(int fd) {
  std::vector<std::uint8_t> bytes(k_config_bytes);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

// A file that holds one number as "0x1002"; `otherwise` if it is not there or holds something else.
std::uint32_t hex_number(const fs::path& file, std::uint32_t otherwise) {
  std::string text;
  std::ifstream in(file);
  in >> text;
  std::uint32_t value = 0;
  if (!text.starts_with("0x")) return otherwise;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data() + 2, end, value, 16);
  return failed == std::errc() && stop == end ? value : otherwise;
}

pci_function read_function(const std::string& bus_id, const fs::path& folder) {
  const unique_fd fd(open((folder / "config").c_str(), O_RDONLY | O_CLOEXEC));
  pci_function f = function_of(bus_id, pci_config(fd ? read_config(fd.get()) : std::vector<std::uint8_t>()));
  // Virtual functions have no registers for these (9.3.4.1); the kernel knows them from the physical one.
  f.vendor = static_cast<std::uint16_t>(hex_number(folder / "vendor", f.vendor));
  f.device = static_cast<std::uint16_t>(hex_number(folder / "device", f.device));
  f.device_class = static_cast<std::uint16_t>(hex_number(folder / "class", std::uint32_t{f.device_class} << 8) >> 8);
  return f;
}

}  // namespace

pci_tree read_pci_sysfs(const std::string& root) {
  const fs::path folder = root + k_devices;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  if (failed)
    fail(XIO_ERR_UNSUPPORTED, "PCI functions cannot be read: {}: {}; mount /sys", folder.string(), failed.message());
  std::vector<pci_function> all;
  for (; at != fs::directory_iterator(); at.increment(failed)) {
    std::string id;
    if (guard([&] { id = full_bus_id(at->path().filename().string()); }) != XIO_OK) continue;
    all.push_back(read_function(id, at->path()));
  }
  return pci_tree(std::move(all));
}

pci_tree read_pci_tree(const std::string& dump) {
  if (dump.empty()) return read_pci_sysfs("");
  std::vector<pci_function> all;
  for (described_function& d : read_pci_dump(dump))
    all.push_back(function_of(d.bus_id, pci_config(std::move(d.config))));
  return pci_tree(std::move(all));
}

void enable_atomics_of(const std::string& bus_id, const std::string& root) {
  const fs::path folder = fs::path(root + k_devices) / full_bus_id(bus_id);
  if (!fs::exists(folder)) fail(XIO_ERR_ARG, "there is no PCI function {}; see xio-info --atomics", bus_id);
  const unique_fd fd(open((folder / "config").c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) fail(XIO_ERR_IO, "{} cannot be changed: {}; run as root", bus_id, errno_text(errno));
  const pci_config before(read_config(fd.get()));
  const std::size_t express = before.find_capability(k_express_capability);
  std::uint16_t now = 0xffff;
  if (express != 0 && before.has(express + k_device_control2 + 1)) {
    now = before.word(express + k_device_control2) | k_atomic_requester;
    const std::uint8_t bytes[2] = {static_cast<std::uint8_t>(now & 0xff), static_cast<std::uint8_t>(now >> 8)};
    if (pwrite(fd.get(), bytes, sizeof bytes, static_cast<off_t>(express + k_device_control2)) != sizeof bytes)
      fail(XIO_ERR_IO, "{} cannot be changed: {}; run as root, without kernel lockdown", bus_id, errno_text(errno));
    now = pci_config(read_config(fd.get())).word(express + k_device_control2);
  }
  if (now == 0xffff || (now & k_atomic_requester) == 0)
    fail(XIO_ERR_IO,
         "{} does not keep its AtomicOp requester enable bit; run as root, without kernel lockdown, where the device "
         "takes it",
         bus_id);
}

}  // namespace xio::topology
