// SPDX-License-Identifier: MIT
#include "transport/rdma/verbs/hca_list.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"

namespace xio::rdma {

namespace {

hca_list::entry parse_entry(const std::string& item, const std::string& whole) {
  const auto colon = item.find(':');
  hca_list::entry e{item.substr(0, colon), 0};
  bool good = !e.name.empty() && e.name.find_first_of(" \t^/") == std::string::npos;
  if (good && colon != std::string::npos) {
    const char* end = item.data() + item.size();
    const auto [stop, ec] = std::from_chars(item.data() + colon + 1, end, e.port);
    good = ec == std::errc() && stop == end && e.port >= 1 && e.port <= 255;
  }
  if (!good)
    fail(XIO_ERR_CONFIG,
         "XIO_HCA_LIST='{}': '{}' is no device; give names or name:port with commas, such as mlx5_0:1,mlx5_1, or ^ and "
         "names to leave out",
         whole, item);
  return e;
}

}  // namespace

bool hca_list::names(const std::string& device, std::uint32_t port) const {
  return std::ranges::any_of(entries,
                             [&](const entry& e) { return e.name == device && (e.port == 0 || e.port == port); });
}

bool hca_list::names(const std::string& device) const {
  return std::ranges::any_of(entries, [&](const entry& e) { return e.name == device; });
}

hca_list parse_hca_list(const std::string& text) {
  hca_list list;
  if (text.empty()) return list;
  list.excludes = text[0] == '^';
  std::size_t from = list.excludes ? 1 : 0;
  while (true) {
    const auto comma = text.find(',', from);
    list.entries.push_back(parse_entry(text.substr(from, comma - from), text));
    if (comma == std::string::npos) return list;
    from = comma + 1;
  }
}

std::string text_of(const std::vector<device_facts>& devices) {
  std::string text;
  for (const device_facts& d : devices) {
    text += text.empty() ? "" : ", ";
    text += d.name;
    if (d.ports.size() == 1) text += fmt::format(" (port {})", d.ports[0].number);
    if (d.ports.size() > 1) text += fmt::format(" (ports {} to {})", d.ports.front().number, d.ports.back().number);
  }
  return text.empty() ? "none" : text;
}

void check_hca_list(const hca_list& list, const std::vector<device_facts>& devices) {
  for (const hca_list::entry& e : list.entries) {
    const auto d = std::ranges::find_if(devices, [&](const device_facts& f) { return f.name == e.name; });
    if (d == devices.end())
      fail(XIO_ERR_CONFIG, "XIO_HCA_LIST names the RDMA device {}, which does not exist; this machine has: {}", e.name,
           text_of(devices));
    const bool has_port = e.port == 0 || !d->closed.empty() ||
                          std::ranges::any_of(d->ports, [&](const port_facts& p) { return p.number == e.port; });
    if (!has_port)
      fail(XIO_ERR_CONFIG, "XIO_HCA_LIST names port {} of RDMA device {}, which does not exist; this machine has: {}",
           e.port, e.name, text_of(devices));
  }
}

}  // namespace xio::rdma
