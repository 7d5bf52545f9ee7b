// SPDX-License-Identifier: MIT
// RDMA devices: ports, GIDs, and who can write their work queues.
#if HAVE_CONFIG_H
#include "config.h"
#endif

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "tools/xio-info/section.hpp"
#if HAVE_VERBS
#include "transport/rdma/carrier.hpp"
#include "transport/rdma/uverbs/facts.hpp"
#include "transport/rdma/verbs/hca_list.hpp"
#include "transport/rdma/verbs/inventory.hpp"
#include "transport/rdma/verbs/port_choice.hpp"
#endif

namespace xio::info {

#if HAVE_VERBS

namespace {

struct posting {
  std::string family;
  bool by_kernels;
  std::string why;
};

// Says how transport/rdma would post to the device.
posting posting_of(const rdma::device_facts& d, const std::string& driver) {
  if (d.is_mlx5 && !d.no_commands.empty())
    return {"mlx5", false,
            "it takes no firmware commands from users (DEVX): " + d.no_commands +
                "; grant CAP_NET_RAW, and update firmware and driver. A host thread posts for kernels"};
  if (d.is_mlx5 || driver == "mlx5_core") {
#if HAVE_MLX5DV
    return {"mlx5", true, "it takes firmware commands (DEVX); the GPU must map its doorbells"};
#else
    return {"mlx5", false, "this build has no mlx5dv; a host thread posts for kernels"};
#endif
  }
  const bool broadcom = d.vendor == proxy::nic_vendor::broadcom, pensando = d.vendor == proxy::nic_vendor::pensando;
  if (broadcom || pensando) {
    const std::string name = broadcom ? "bnxt" : "ionic";
    if (d.no_queues.empty())
      return {name, true, "its driver makes queues in given memory; the GPU must map its doorbells"};
    return {name, false,
            d.no_queues + (d.no_library.empty() ? ". A host thread posts for kernels" : ". And " + d.no_library)};
  }
  return {"proxy", false, "a host thread posts for kernels"};
}

void add_port(section& s, const rdma::device_facts& d, const rdma::port_facts& p, const rdma::port_wishes& w) {
  const std::string name = fmt::format("port{}", p.number);
  s.rows.push_back({name, p.active, p.state});
  s.rows.push_back({name + "_link", std::string(proxy::text_of(p.link)), ""});
  s.rows.push_back({name + "_mtu", std::uint64_t{proxy::mtu_bytes(p.active_mtu)}, ""});
  const rdma::gid_row* best = rdma::best_gid(p);
  for (const rdma::gid_row& g : p.gids)
    s.rows.push_back({fmt::format("{}_gid{}", name, g.index), proxy::text_of(g.address),
                      fmt::format("{}{}", proxy::text_of(g.kind),
                                  best != nullptr && best->index == g.index ? ", taken by auto" : "")});
  const std::string why = rdma::complaint(d, p, w);
  s.rows.push_back({name + "_usable", why.empty(), why});
}

section device_section(const rdma::device_facts& d, const rdma::port_wishes& w) {
  section s{"nic_" + d.name, "RDMA device " + d.name, {}};
  const std::string driver = target_of("/sys/class/infiniband/" + d.name + "/device/driver");
  const posting how = posting_of(d, driver);
  if (!d.bus_id.empty()) s.rows.push_back({"bus_id", d.bus_id, ""});
  s.rows.push_back({"driver", driver.empty() ? std::string("software") : driver, ""});
  s.rows.push_back({"family", how.family, ""});
  s.rows.push_back({"kernels_post", how.by_kernels, how.why});
  if (!d.queues_by.empty() && d.no_queues.empty())
    s.rows.push_back({"queues_by", std::string(d.by_library ? "library" : "kernel"), d.queues_by});
  if (!d.closed.empty()) s.rows.push_back({"opens", false, d.closed});
  for (const rdma::port_facts& p : d.ports) add_port(s, d, p, w);
  return s;
}

// The way to an RDMA device, where a NIC's Ethernet driver may run and nothing else.
section idle_section(const rdma::uverbs::idle_function& f) {
  struct driver {
    const char *family, *module, *since;
  };
  const driver d = f.vendor == proxy::nic_vendor::nvidia     ? driver{"mlx5", "mlx5_ib", ""}
                   : f.vendor == proxy::nic_vendor::broadcom ? driver{"bnxt", "bnxt_re", ""}
                                                             : driver{"ionic", "ionic_rdma", " (Linux 6.18 or newer)"};
  return {
      "nic_" + f.bus_id,
      "NIC " + f.bus_id,
      {{"family", std::string(d.family), ""},
       {"kernels_post", false,
        fmt::format("Linux {} has made no RDMA device of it: load {}{}, and turn on RDMA in the NIC's configuration",
                    rdma::uverbs::kernel_release(), d.module, d.since)}}};
}

}  // namespace

std::vector<section> nic_sections(const rdma_options& o) {
  std::vector<section> all;
  rdma::port_wishes w;
  const auto status = guard([&] {
    w.list = rdma::parse_hca_list(o.hca_list);
    w.gid_index = o.rdma_gid_index;
    w.pkey_index = static_cast<std::uint32_t>(o.rdma_pkey_index);
    w.depth = static_cast<std::uint32_t>(o.ring_depth);
    w.kernels_queues = rdma::wants_direct(o);
  });
  section first{"nics", "RDMA devices (NICs)", {}};
  if (status != XIO_OK) first.rows.push_back({"options", std::string("error"), last_error()});
  for (const auto& d : rdma::read_devices()) all.push_back(device_section(d.facts, w));
  first.rows.insert(first.rows.begin(), {"devices", std::uint64_t{all.size()},
                                         all.empty() ? "software NICs carry RDMA: XIO_NIC_EXECUTOR" : ""});
  for (const auto& f : rdma::uverbs::list_idle_functions()) all.push_back(idle_section(f));
  all.insert(all.begin(), std::move(first));
  return all;
}

#else

std::vector<section> nic_sections(const rdma_options&) {
  return {
      {"nics",
       "RDMA devices (NICs)",
       {{"devices", std::string("unknown"), "this build has no verbs or no software NIC to carry a device's work"}}}};
}

#endif

}  // namespace xio::info
