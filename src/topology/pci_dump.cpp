// SPDX-License-Identifier: MIT
#include "topology/pci_dump.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "topology/pci_config.hpp"

namespace xio::topology {
namespace {

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
    std::copy(row.begin(), row.end(), config.begin() + static_cast<std::ptrdiff_t>(offset));
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

}  // namespace

std::vector<described_function> read_pci_dump(const std::string& file) {
  std::istringstream in(read_text(file));
  reader r(file);
  for (std::string line; std::getline(in, line); r.take(line))
    if (!line.empty() && line.back() == '\r') line.pop_back();
  return r.finish();
}

}  // namespace xio::topology
