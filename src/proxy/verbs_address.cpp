// SPDX-License-Identifier: MIT
#include "proxy/verbs_address.hpp"

#include <cctype>
#include <cstring>

#include "base/error.hpp"

namespace xio::proxy {

namespace {

constexpr std::uint32_t k_verbs_magic = 0x764f4958;  // "XIOv" in memory; the other way round from a big-endian machine
constexpr std::uint16_t k_version = 2;
constexpr std::uint32_t k_most_qpn = 0xffffff;  // 24 bits: InfiniBand specification, 9.2 (base transport header)

struct wire_address {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint8_t link, kind;
  std::uint8_t port, mtu, responder_depth, pad;
  std::uint16_t lid, gid_index;
  std::uint32_t qpn, psn;
  gid address;
};
static_assert(sizeof(wire_address) == 40);
constexpr std::size_t k_most_name = 63;  // behind it

bool is_name(const std::string& device) {
  return !device.empty() && device.size() <= k_most_name &&
         std::ranges::all_of(device, [](unsigned char c) { return std::isgraph(c) != 0; });
}

bool is_sane(const wire_address& w, const std::string& device, bool queue) {
  const bool known = (w.link == 1 || w.link == 2) && w.kind <= 2 && (w.link == 2) == (w.kind != 0);
  const bool port = w.port != 0 && w.mtu >= 1 && w.mtu <= 5 && is_name(device);
  const bool numbers = queue ? w.qpn >= 2 && w.qpn <= k_most_qpn && w.psn <= k_most_qpn : w.qpn == 0 && w.psn == 0;
  const bool reachable = w.link == 2 ? w.address != gid{} : w.lid != 0 || w.address != gid{};
  return known && port && numbers && reachable;
}

}  // namespace

const char* text_of(link_layer l) {
  switch (l) {
    case link_layer::infiniband: return "InfiniBand";
    case link_layer::ethernet: return "Ethernet";
    case link_layer::unspecified: break;
  }
  return "no known link layer";
}

const char* text_of(gid_kind k) {
  switch (k) {
    case gid_kind::ib: return "InfiniBand";
    case gid_kind::roce_v1: return "RoCE v1";
    case gid_kind::roce_v2: return "RoCE v2";
  }
  return "unknown";
}

bool is_ipv4(const gid& g) {
  return std::all_of(g.begin(), g.begin() + 10, [](std::uint8_t b) { return b == 0; }) && g[10] == 0xff &&
         g[11] == 0xff;
}

std::string text_of(const gid& g) {
  if (is_ipv4(g)) return fmt::format("::ffff:{}.{}.{}.{}", g[12], g[13], g[14], g[15]);
  std::string text;
  for (std::size_t i = 0; i < g.size(); i += 2)
    text += fmt::format("{}{:x}", i == 0 ? "" : ":", static_cast<unsigned>(g[i]) << 8 | g[i + 1]);
  return text;
}

device_address pack(const verbs_address& c) {
  wire_address w{};
  w.magic = k_verbs_magic;
  w.version = k_version;
  w.link = static_cast<std::uint8_t>(c.link);
  w.kind = static_cast<std::uint8_t>(c.kind);
  w.port = c.port;
  w.mtu = c.mtu;
  w.responder_depth = c.responder_depth;
  w.lid = c.lid;
  w.gid_index = c.gid_index;
  w.qpn = c.qpn;
  w.psn = c.psn;
  w.address = c.address;
  const std::string name = c.device.substr(0, k_most_name);
  device_address out(sizeof w + name.size());
  std::memcpy(out.data(), &w, sizeof w);
  std::memcpy(out.data() + sizeof w, name.data(), name.size());
  return out;
}

verbs_address unpack(const device_address& from, int pe, bool queue) {
  if (from.empty())
    fail(XIO_ERR_PEER, "PE {} has no RDMA {}, so it cannot be reached by RDMA; give every PE a working RDMA device", pe,
         queue ? "queue pair for this PE" : "device");
  wire_address w{};
  std::memcpy(&w, from.data(), std::min(sizeof w, from.size()));
  if (from.size() < sizeof w || w.magic != k_verbs_magic || w.version != k_version)
    fail(XIO_ERR_PEER, "PE {} describes its RDMA {} in a form this XIO does not know; run the same XIO on every PE", pe,
         queue ? "queue pair" : "device");
  const std::string device(reinterpret_cast<const char*>(from.data()) + sizeof w, from.size() - sizeof w);
  if (!is_sane(w, device, queue))
    fail(XIO_ERR_PEER,
         "PE {} describes an RDMA {} that cannot be: link layer {}, GID type {}, port {}, MTU code {}, qpn {:#x}; run "
         "the same XIO on every PE",
         pe, queue ? "queue pair" : "device", w.link, w.kind, w.port, w.mtu, w.qpn);
  verbs_address c;
  c.device = device;
  c.port = w.port;
  c.link = static_cast<link_layer>(w.link);
  c.kind = static_cast<gid_kind>(w.kind);
  c.mtu = w.mtu;
  c.lid = w.lid;
  c.gid_index = w.gid_index;
  c.address = w.address;
  c.responder_depth = w.responder_depth;
  c.qpn = w.qpn;
  c.psn = w.psn;
  return c;
}

std::string text_of(const verbs_address& c) {
  std::string text = fmt::format("{}:{}", c.device, c.port);
  if (c.lid != 0) text += fmt::format(" lid {}", c.lid);
  text += fmt::format(" gid[{}] {}", c.gid_index, text_of(c.address));
  if (c.qpn != 0) text += fmt::format(" qpn {}", c.qpn);
  return text;
}

std::uint32_t mtu_bytes(std::uint8_t mtu) { return mtu == 0 ? 0 : 128u << mtu; }

void check_pair(const verbs_address& mine, const verbs_address& remote, int pe) {
  if (mine.link != remote.link)
    fail(
        XIO_ERR_CONFIG,
        "{} is an {} port and {} of PE {} an {} port, which cannot connect; choose ports of one kind with XIO_HCA_LIST",
        text_of(mine), text_of(mine.link), text_of(remote), pe, text_of(remote.link));
  if (mine.kind != remote.kind)
    fail(XIO_ERR_CONFIG,
         "{} speaks {} and {} of PE {} speaks {}; choose GIDs of one type on both with XIO_RDMA_GID_INDEX",
         text_of(mine), text_of(mine.kind), text_of(remote), pe, text_of(remote.kind));
  if (mine.kind == gid_kind::roce_v2 && is_ipv4(mine.address) != is_ipv4(remote.address))
    fail(XIO_ERR_CONFIG,
         "{} has an IPv{} address and {} of PE {} an IPv{} address; choose GIDs of one family on both with "
         "XIO_RDMA_GID_INDEX",
         text_of(mine), is_ipv4(mine.address) ? 4 : 6, text_of(remote), pe, is_ipv4(remote.address) ? 4 : 6);
}

std::uint8_t agree_mtu(const verbs_address& mine, const verbs_address& remote, int pe, std::uint8_t forced) {
  const std::uint8_t least = std::min(mine.mtu, remote.mtu);
  if (forced > least)
    fail(
        XIO_ERR_CONFIG,
        "XIO_RDMA_MTU={} is more than the path between {} (active MTU {}) and {} of PE {} (active MTU {}) carries; use "
        "at most {} or auto, or raise the MTU of the link",
        mtu_bytes(forced), text_of(mine), mtu_bytes(mine.mtu), text_of(remote), pe, mtu_bytes(remote.mtu),
        mtu_bytes(least));
  return forced != 0 ? forced : least;
}

}  // namespace xio::proxy
