// SPDX-License-Identifier: MIT
#include "transport/rdma/verbs/port_choice.hpp"

#include "base/error.hpp"
#include "transport/rdma/nearest_first.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_most_gid_index = 255;  // ibv_global_route::sgid_index has 8 bits

// Lower is better.
int rank_of(const gid_row& g) {
  const bool link_local = g.address[0] == 0xfe && (g.address[1] & 0xc0) == 0x80;  // fe80::/10, RFC 4291
  switch (g.kind) {
    case gid_kind::roce_v2: return proxy::is_ipv4(g.address) ? 0 : link_local ? 2 : 1;
    case gid_kind::roce_v1: return 3;
    case gid_kind::ib: break;
  }
  return 4;
}

const gid_row* find_gid(const port_facts& p, std::uint32_t index) {
  const auto found = std::ranges::find_if(p.gids, [&](const gid_row& g) { return g.index == index; });
  return found == p.gids.end() ? nullptr : &*found;
}

std::string gid_complaint(const std::string& where, const port_facts& p, const port_wishes& w) {
  if (best_gid(p) == nullptr)
    return fmt::format("{} has an empty GID table ({} entries, none in use); give its network interface an address",
                       where, p.gid_count);
  if (!w.gid_index) return "";
  if (*w.gid_index >= p.gid_count)
    return fmt::format(
        "XIO_RDMA_GID_INDEX={} is beyond the GID table of {}, which has {} entries; use auto or less than {}",
        *w.gid_index, where, p.gid_count, p.gid_count);
  if (find_gid(p, *w.gid_index) == nullptr)
    return fmt::format(
        "XIO_RDMA_GID_INDEX={} names an empty entry of the GID table of {}; use auto or one in use, such as {}",
        *w.gid_index, where, best_gid(p)->index);
  return "";
}

std::string device_complaint(const device_facts& d, const port_wishes& w) {
  if (!d.closed.empty())
    return fmt::format("RDMA device {} cannot be opened: {}; ask for access to its file in /dev/infiniband", d.name,
                       d.closed);
  if (!d.no_library.empty() && !w.kernels_queues)
    return fmt::format("RDMA device {} cannot be used by verbs: {}; install its library (rdma-core)", d.name,
                       d.no_library);
  if (!d.no_library.empty() && !d.no_queues.empty())
    return fmt::format("{}, and it cannot be used by verbs: {}", d.no_queues, d.no_library);
  if (d.is_iwarp)
    return fmt::format("RDMA device {} is iWARP, which has no atomics; use an InfiniBand or RoCE device", d.name);
  if (!d.has_atomics)
    return fmt::format("RDMA device {} does no atomics, which signals need; use another device", d.name);
  if (w.depth == 0 || w.depth > d.max_wr)
    return fmt::format(
        "a queue depth of {} is not possible on RDMA device {}, which takes 1 to {}; set XIO_RING_DEPTH in that range",
        w.depth, d.name, d.max_wr);
  return "";
}

struct candidate {
  chosen_port what;
  int distance;
  const device_facts* device;
  const port_facts* port;
};

std::string name_of(const candidate& c) {
  return fmt::format("RDMA device {} port {}, {}{}", c.device->name, c.port->number, proxy::text_of(c.port->link),
                     c.port->gbits == 0 ? "" : fmt::format(", {} Gbit/s", c.port->gbits));
}

// The link layer of the ports that carry most together; InfiniBand where both carry as much.
link_layer main_layer(const std::vector<candidate>& all) {
  std::uint64_t infiniband = 0, ethernet = 0;
  for (const candidate& c : all) (c.port->link == link_layer::infiniband ? infiniband : ethernet) += c.port->gbits;
  const bool some = std::ranges::any_of(all, [](const candidate& c) { return c.port->link == link_layer::infiniband; });
  return some && infiniband >= ethernet ? link_layer::infiniband : link_layer::ethernet;
}

// Ports of one kind that work together: a machine's slow NIC is its management's, and InfiniBand and Ethernet do not
// reach each other, so PEs that spread over both would not connect.
void leave_out_others(std::vector<candidate>& all, std::vector<std::string>* left_out) {
  const auto leave = [&](auto&& is_other, auto&& sentence) {
    std::erase_if(all, [&](const candidate& c) {
      if (!is_other(c)) return false;
      if (left_out != nullptr) left_out->push_back(sentence(c));
      return true;
    });
  };
  const link_layer layer = main_layer(all);
  leave([&](const candidate& c) { return c.port->link != layer; },
        [&](const candidate& c) {
          return fmt::format("{}, is left out: the other ports are {} and carry more; XIO_HCA_LIST={} takes it",
                             name_of(c), proxy::text_of(layer), c.device->name);
        });
  std::uint32_t fastest = 0;
  for (const candidate& c : all) fastest = std::max(fastest, c.port->gbits);
  leave([&](const candidate& c) { return c.port->gbits != 0 && c.port->gbits * 2 < fastest; },
        [&](const candidate& c) {
          return fmt::format(
              "{}, is left out: it is slower than half of the fastest ({} Gbit/s), as a NIC for management is; "
              "XIO_HCA_LIST={} takes it",
              name_of(c), fastest, c.device->name);
        });
}

}  // namespace

const gid_row* best_gid(const port_facts& p) {
  const gid_row* best = nullptr;
  for (const gid_row& g : p.gids) {
    if (g.address == gid{} || g.index > k_most_gid_index) continue;
    if ((p.link == link_layer::infiniband) != (g.kind == gid_kind::ib)) continue;
    const int rank = rank_of(g);
    if (best == nullptr || rank < rank_of(*best) || (rank == rank_of(*best) && g.index < best->index)) best = &g;
  }
  return best;
}

std::string complaint(const device_facts& d, const port_facts& p, const port_wishes& w) {
  if (std::string why = device_complaint(d, w); !why.empty()) return why;
  const std::string where = fmt::format("RDMA device {} port {}", d.name, p.number);
  if (!p.active)
    return fmt::format("{} is not up ({}); bring up its link or network interface, or choose another with XIO_HCA_LIST",
                       where, p.state);
  if (p.link == link_layer::unspecified)
    return fmt::format("{} has an unknown link layer; choose another with XIO_HCA_LIST", where);
  if (std::string why = gid_complaint(where, p, w); !why.empty()) return why;
  if (w.pkey_index >= std::max<std::uint32_t>(p.pkey_count, 1))
    return fmt::format("XIO_RDMA_PKEY_INDEX={} is beyond the P_Key table of {}, which has {} entries; use 0",
                       w.pkey_index, where, p.pkey_count);
  if (w.mtu > p.active_mtu)
    return fmt::format(
        "XIO_RDMA_MTU={} is more than {} can do now, an MTU of {}; use at most that or auto, or raise "
        "the MTU of its link",
        proxy::mtu_bytes(w.mtu), where, proxy::mtu_bytes(p.active_mtu));
  return "";
}

std::vector<chosen_port> choose_ports(const std::vector<device_facts>& devices, const port_wishes& w,
                                      const std::vector<int>& distances, int local_rank, std::size_t most,
                                      std::vector<std::string>* left_out) {
  check_hca_list(w.list, devices);
  const bool named = !w.list.entries.empty() && !w.list.excludes;
  std::vector<candidate> usable;
  std::string first;  // complaint
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const device_facts& device = devices[d];
    const auto wanted = [&](std::uint32_t port) {
      return w.list.entries.empty() || w.list.names(device.name, port) != w.list.excludes;
    };
    if (!device.closed.empty() && first.empty() && (named ? w.list.names(device.name) : wanted(0)))
      first = complaint(device, port_facts{}, w);
    for (std::size_t p = 0; p < device.ports.size(); ++p) {
      const port_facts& port = device.ports[p];
      if (!wanted(port.number)) continue;
      const std::string why = complaint(device, port, w);
      if (why.empty())
        usable.push_back(
            {{d, p, w.gid_index ? *find_gid(port, *w.gid_index) : *best_gid(port)}, distances[d], &device, &port});
      else if (first.empty())
        first = why;
    }
  }
  if (!first.empty() && (named || usable.empty())) fail(XIO_ERR_UNSUPPORTED, "{}", first);
  if (usable.empty())
    fail(
        XIO_ERR_UNSUPPORTED,
        "no RDMA device {}; this machine has: {}; load its driver, or make a software one: rdma link add rxe0 type rxe "
        "netdev ...",
        w.list.excludes ? "is left by XIO_HCA_LIST" : "was found", text_of(devices));
  if (!named) leave_out_others(usable, left_out);
  order_nearest_first(usable, local_rank, [](const candidate& c) { return c.distance; });
  usable.resize(std::min(usable.size(), named ? most : 1));
  std::vector<chosen_port> chosen;
  for (const candidate& c : usable) chosen.push_back(c.what);
  return chosen;
}

}  // namespace xio::rdma
