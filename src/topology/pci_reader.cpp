// SPDX-License-Identifier: MIT
#include "topology/pci_reader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "topology/atomics.hpp"
#include "topology/pci_config.hpp"

namespace xio::topology {
namespace {

// --- A file that `lspci -xxxx` wrote ---

struct described_function {
  std::string bus_id;                // "0000:3b:00.0"
  std::vector<std::uint8_t> config;  // from offset 0 to the last byte that is described; ones where none is
};

constexpr std::size_t k_line_bytes = 16;
constexpr std::size_t k_line_most = 4096;
constexpr std::size_t k_file_most = 64u << 20;
constexpr std::size_t k_piece = 64u << 10;

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// How many hexadecimal digits stand before `end` at the line's begin; 0 if anything else does.
std::size_t digits_before(const std::string& line, char end) {
  std::size_t n = 0;
  while (n < line.size() && is_hex(line[n])) ++n;
  return n < line.size() && line[n] == end ? n : 0;
}

class reader {
 public:
  explicit reader(const std::string& file) : file_(file) {}

  void take(const std::string& line) {
    ++number_;
    if (line.size() > k_line_most) complain("is too long");
    if (line.empty()) {
      inside_ = false;
    } else if (digits_before(line, ' ') == 0 && is_head(line)) {
      head(line.substr(0, line.find(' ')));
    } else if (inside_ && digits_before(line, ':') != 0 && line.find(": ") == digits_before(line, ':')) {
      bytes(line);
    }
    // Everything else is for people: what lspci -v says of the device.
  }

  std::vector<described_function> finish() {
    if (seen_.empty())
      fail(XIO_ERR_ARG, "{} describes no PCI function; give what 'lspci -D -xxxx' wrote as root", file_);
    return std::move(out_);
  }

 private:
  [[noreturn]] void complain(const std::string& what) const {
    fail(XIO_ERR_ARG, "{} line {} {}; give what 'lspci -D -xxxx' wrote", file_, number_, what);
  }

  static bool is_head(const std::string& line) {
    const std::size_t colon = digits_before(line, ':');
    return (colon == 2 || colon == 4 || colon == 5) && line.find('.') < line.find(' ') && line.find(' ') != line.npos;
  }

  void head(const std::string& text) {
    std::string id;
    if (guard([&] { id = full_bus_id(text); }) != XIO_OK) complain("begins with '" + text + "', which is no address");
    if (!seen_.insert(id).second) complain("describes " + id + " a second time");
    inside_ = true;
    out_.push_back({id, {}});
  }

  void bytes(const std::string& line) {
    const std::size_t colon = line.find(':');
    const std::size_t offset = colon > 3 ? k_config_bytes : std::stoul(line.substr(0, colon), nullptr, 16);
    std::vector<std::uint8_t> row;
    for (std::size_t at = colon + 1; at < line.size(); at += 3) {
      if (at + 2 >= line.size() || line[at] != ' ' || !is_hex(line[at + 1]) || !is_hex(line[at + 2]))
        complain("is no row of bytes");
      row.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(at + 1, 2), nullptr, 16)));
    }
    if (row.size() > k_line_bytes || offset + row.size() > k_config_bytes)
      complain("reaches beyond the 4096 bytes of a function");
    auto& config = out_.back().config;
    if (config.size() < offset + row.size()) config.resize(offset + row.size(), 0xff);
    std::ranges::copy(row, config.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  const std::string& file_;
  std::size_t number_ = 0;
  bool inside_ = false;
  std::set<std::string> seen_;
  std::vector<described_function> out_;
};

// In pieces: lines of a device may have no end.
std::string read_text(const std::string& file) {
  std::ifstream in(file);
  if (!in) fail(XIO_ERR_ARG, "{} cannot be read: {}; give what 'lspci -D -xxxx' wrote", file, errno_text(errno));
  std::string text, piece(k_piece, '\0');
  while (text.size() <= k_file_most && in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(in.gcount()));
  }
  if (text.size() > k_file_most)
    fail(XIO_ERR_ARG, "{} has more than {} bytes and is no dump of lspci", file, k_file_most);
  return text;
}

// Throws XIO_ERR_ARG naming file, line and what is wrong with it.
std::vector<described_function> read_pci_dump(const std::string& file) {
  std::istringstream in(read_text(file));
  reader r(file);
  for (std::string line; std::getline(in, line); r.take(line))
    if (!line.empty() && line.back() == '\r') line.pop_back();
  return r.finish();
}

// --- This machine ---

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
