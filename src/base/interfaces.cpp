// SPDX-License-Identifier: MIT
#include "base/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <memory>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace xio {
namespace {

bool same_bits(const socket_address& a, const socket_address& b, int bits) {
  if (a.family() != b.family()) return false;
  for (std::size_t i = 0; bits > 0; ++i, bits -= 8) {
    const int unlike = a.host()[i] ^ b.host()[i];
    if ((bits >= 8 ? unlike : unlike >> (8 - bits)) != 0) return false;
  }
  return true;
}

int bits_of(const socket_address& mask) {
  int bits = 0;
  for (const unsigned char b : mask.host()) bits += std::popcount(b);
  return bits;
}

socket_address parse_host(const std::string& text) {
  unsigned char bytes[16];
  for (const int family : {AF_INET, AF_INET6})
    if (inet_pton(family, text.c_str(), bytes) == 1) return socket_address::of(family, bytes, 0);
  return {};
}

bool may_be_a_name(const std::string& text) {
  return text.size() < IF_NAMESIZE &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isgraph(c) != 0 && c != '/' && c != '^'; });
}

// The kernel looks its routes up and sends nothing. The hosts are of documentation: RFC 5737 and RFC 3849.
std::vector<socket_address> sources_of_default_routes() {
  std::vector<socket_address> out;
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    auto to = parse_host(host);
    to.set_port(9);
    const unique_fd fd(socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd && connect(fd.get(), to.get(), to.length) == 0) out.push_back(bound_address(fd.get()));
  }
  return out;
}

}  // namespace

interface_choice::interface_choice(const std::string& text) : text_(text) {
  const auto bad = [&](const std::string& item, const char* why) {
    fail(XIO_ERR_CONFIG,
         "XIO_TCP_INTERFACE='{}': '{}' {}; give names of interfaces or their beginnings, or networks such as "
         "10.1.0.0/16, with commas, and before all of them a ^ to leave them out",
         text, item, why);
  };
  if (text.empty()) return;
  leaves_out_ = text[0] == '^';
  for (std::size_t at = leaves_out_ ? 1 : 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const auto slash = item.find('/');
    const auto host = parse_host(item.substr(0, slash));
    if (item.empty()) bad(item, "is empty");
    if (host.length == 0) {
      if (slash != std::string::npos) bad(item, "has no address before the /");
      if (!may_be_a_name(item)) bad(item, "cannot be the name of an interface");
      names_.push_back(item);
      continue;
    }
    int bits = static_cast<int>(host.host().size()) * 8;
    if (slash != std::string::npos) {
      int given = -1;
      const char* const last = item.data() + item.size();
      const auto [stop, ec] = std::from_chars(item.data() + slash + 1, last, given);
      if (ec != std::errc() || stop != last || given < 0 || given > bits) bad(item, "has no such number of bits");
      bits = given;
    }
    networks_.push_back({host, bits});
  }
}

bool interface_choice::names(const interface_address& one, const std::vector<interface_address>& all) const {
  for (const std::string& name : names_) {
    const bool whole = std::ranges::any_of(all, [&](const auto& i) { return i.name == name; });
    if (whole ? one.name == name : one.name.starts_with(name)) return true;
  }
  return std::ranges::any_of(networks_, [&](const network& n) { return same_bits(one.address, n.address, n.bits); });
}

std::vector<interface_address> interface_choice::of(const std::vector<interface_address>& all) const {
  if (text_.empty()) return all;
  std::vector<interface_address> chosen;
  std::string there;
  for (const auto& i : all) {
    if (names(i, all) != leaves_out_) chosen.push_back(i);
    there += fmt::format("{}{} {}", there.empty() ? "" : ", ", i.name, i.address.host_text());
  }
  if (chosen.empty())
    fail(XIO_ERR_CONFIG, "XIO_TCP_INTERFACE='{}' leaves no interface that is up; this machine has {}", text_,
         there.empty() ? "none" : there);
  return chosen;
}

void sort_by_likelihood(std::vector<interface_address>& all, std::span<const socket_address> from) {
  const auto is_source = [&](const socket_address& a) {
    return std::ranges::any_of(from, [&](const auto& f) { return std::ranges::equal(f.host(), a.host()); });
  };
  std::vector<std::pair<int, interface_address>> ranked;
  for (const auto& i : all) {
    const bool further = std::ranges::any_of(ranked, [&](const auto& r) {
      return r.second.name == i.name && r.second.address.family() == i.address.family();
    });
    const int kind = i.address.loopback() ? 4 : !i.running ? 3 : is_source(i.address) ? 0 : further ? 2 : 1;
    ranked.emplace_back(2 * kind + (i.address.family() == AF_INET6 ? 1 : 0), i);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& r) { return r.first; });
  all.clear();
  for (auto& r : ranked) all.push_back(std::move(r.second));
}

std::vector<interface_address> own_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  std::vector<interface_address> out;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    interface_address one{i->ifa_name, socket_address::of(i->ifa_addr), socket_address::of(i->ifa_netmask),
                          (i->ifa_flags & IFF_RUNNING) != 0};
    if ((i->ifa_flags & IFF_UP) != 0 && one.address.length != 0 && !one.address.link_local())
      out.push_back(std::move(one));
  }
  sort_by_likelihood(out, sources_of_default_routes());
  return out;
}

void sort_by_nearness(std::vector<socket_address>& theirs, const std::vector<interface_address>& own) {
  const auto rank = [&](const socket_address& a) {
    if (a.loopback()) return 2;
    return std::ranges::any_of(own, [&](const auto& o) { return same_bits(a, o.address, bits_of(o.mask)); }) ? 0 : 1;
  };
  std::ranges::stable_sort(theirs, {}, rank);
}

}  // namespace xio
