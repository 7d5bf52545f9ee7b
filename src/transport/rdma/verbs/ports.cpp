// SPDX-License-Identifier: MIT
#include "transport/rdma/verbs/ports.hpp"

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "topology/machine_map.hpp"
#include "transport/rdma/carrier.hpp"
#include "transport/rdma/verbs/port_choice.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::rdma {

namespace {

// Entries and spans count bytes in 31 or 32 bits, and 2 GiB is 0 in some (rdma-core providers/mlx5/wqe.h: byte_count).
constexpr std::uint64_t k_most_message = 1u << 30;

using proxy::verbs_path;
using proxy::verbs_port;

port_wishes wishes_of(const rdma_options& o, bool kernels_queues) {
  port_wishes w;
  w.list = parse_hca_list(o.hca_list);
  w.gid_index = o.rdma_gid_index;
  w.pkey_index = static_cast<std::uint32_t>(o.rdma_pkey_index);
  w.depth = static_cast<std::uint32_t>(o.ring_depth);
  w.mtu = static_cast<std::uint8_t>(o.rdma_mtu);
  w.kernels_queues = kernels_queues;
  return w;
}

std::vector<device_facts> facts_of(const std::vector<opened_device>& devices) {
  std::vector<device_facts> facts;
  for (const opened_device& d : devices) facts.push_back(d.facts);
  return facts;
}

verbs_port open_port(const opened_device& d, const chosen_port& c) {
  const port_facts& p = d.facts.ports[c.port];
  verbs_port port{};
  port.context = d.context;
  // The deleter's copy keeps the device open as long as anything made in the domain.
  if (d.context != nullptr)
    port.domain = std::shared_ptr<ibv_pd>(ibv_alloc_pd(d.context.get()), [keep = d.context](ibv_pd* pd) {
      if (pd != nullptr) ibv_dealloc_pd(pd);
    });
  if (d.context != nullptr && port.domain == nullptr)
    fail(XIO_ERR_IO, "RDMA device {} gives no protection domain: {}; end other users of the device", d.facts.name,
         errno_text(errno));
  port.vendor = d.facts.vendor;
  port.kernel_file = d.facts.kernel_file;
  port.no_queues = d.facts.no_queues;
  port.by_library = d.facts.by_library;
  port.identity.device = d.facts.name;
  port.identity.port = p.number;
  port.identity.link = p.link;
  port.identity.kind = c.gid.kind;
  port.identity.mtu = p.active_mtu;
  port.identity.lid = p.lid;
  port.identity.gid_index = static_cast<std::uint16_t>(c.gid.index);
  port.identity.address = c.gid.address;
  port.identity.responder_depth = d.facts.responder_depth;
  port.needs_grh = p.needs_grh;
  port.max_message = std::min(p.max_message, k_most_message);
  port.max_wr = d.facts.max_wr;
  port.max_sge = d.facts.max_sge;
  port.max_cqe = d.facts.max_cqe;
  port.initiator_depth = d.facts.initiator_depth;
  return port;
}

std::vector<chosen_port> choose(const rdma_options& o, const std::vector<device_facts>& facts, int local_rank,
                                const std::string& gpu, bool kernels_queues,
                                std::vector<std::string>* left_out = nullptr) {
  std::vector<int> distances(facts.size(), topology::k_most_distant);
  // Reading the machine's tree takes a while; one device has no rival.
  if (facts.size() > 1) {
    const topology::machine_map machine;
    for (std::size_t i = 0; i < facts.size(); ++i) distances[i] = machine.distance(facts[i].bus_id, gpu);
  }
  return choose_ports(facts, wishes_of(o, kernels_queues), distances, local_rank, dev::k_max_nics, left_out);
}

}  // namespace

verbs_path path_of(const rdma_options& o) {
  verbs_path p{};
  p.depth = static_cast<std::uint32_t>(o.ring_depth);
  p.pkey_index = static_cast<std::uint16_t>(o.rdma_pkey_index);
  p.traffic_class = static_cast<std::uint8_t>(o.rdma_traffic_class);
  p.sl = static_cast<std::uint8_t>(o.rdma_sl);
  p.hop_limit = static_cast<std::uint8_t>(o.rdma_hop_limit);
  p.mtu = static_cast<std::uint8_t>(o.rdma_mtu);
  p.timeout = static_cast<std::uint8_t>(o.rdma_timeout);
  p.retry = static_cast<std::uint8_t>(o.rdma_retry);
  p.rnr_retry = static_cast<std::uint8_t>(o.rdma_rnr_retry);
  p.relaxed_ordering = o.rdma_relaxed_ordering != 0;
  return p;
}

std::vector<verbs_port> open_ports(const rdma_options& o, int rank, int local_rank, const std::string& gpu_bus_id,
                                   bool kernels_queues) {
  const std::vector<opened_device> devices = read_devices();
  std::vector<verbs_port> ports;
  std::vector<std::string> left_out;
  for (const chosen_port& c : choose(o, facts_of(devices), local_rank, gpu_bus_id, kernels_queues, &left_out)) {
    ports.push_back(open_port(devices[c.device], c));
    const proxy::verbs_address& mine = ports.back().identity;
    log::info("PE {} uses RDMA device {}, an {} port, {}", rank, text_of(mine), text_of(mine.link), text_of(mine.kind));
  }
  for (const std::string& sentence : left_out) log::info("{}", sentence);
  return ports;
}

std::string why_no_ports(const rdma_options& o) {
  return sentence_from([&] {
    choose(o, facts_of(read_devices()), 0, "", wants_direct(o));
    return "";
  });
}

}  // namespace xio::rdma
