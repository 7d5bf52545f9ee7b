// SPDX-License-Identifier: MIT
#include "transport/rdma/verbs/inventory.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#include <fcntl.h>
#include <infiniband/verbs.h>
#if HAVE_MLX5DV
#include <infiniband/mlx5dv.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "transport/rdma/bnxt/nic.hpp"
#include "transport/rdma/ionic/nic.hpp"
#include "transport/rdma/uverbs/facts.hpp"

namespace xio::rdma {

namespace {

// "0000:3b:00.0", or empty: software devices hang off no PCI function.
std::string bus_id_of(const char* device) {
  const std::string name = target_of(std::string("/sys/class/infiniband/") + device + "/device");
  return name.size() == 12 && name[4] == ':' && name[7] == ':' && name[10] == '.' ? name : "";
}

void read_gids(ibv_context* context, std::vector<port_facts>& ports) {
  std::size_t count = 0;
  for (const port_facts& p : ports) count += p.gid_count;
  if (count == 0) return;
  std::vector<ibv_gid_entry> table(count);
  const ssize_t found = ibv_query_gid_table(context, table.data(), table.size(), 0);
  for (ssize_t i = 0; i < found; ++i) {
    const ibv_gid_entry& e = table[static_cast<std::size_t>(i)];
    gid_row row{e.gid_index, static_cast<gid_kind>(e.gid_type), {}};
    std::memcpy(row.address.data(), e.gid.raw, row.address.size());
    for (port_facts& p : ports)
      if (p.number == e.port_num && e.gid_type <= IBV_GID_TYPE_ROCE_V2) p.gids.push_back(row);
  }
}

// Chooses what makes queues that kernels drive: the system calls of Linux's own driver, else the vendor's library.
void choose_maker(const uverbs::listed_device& l, ibv_context* context, device_facts& f) {
  const bool bnxt = l.vendor == proxy::nic_vendor::broadcom;
  f.queues_by = fmt::format("system calls, by interface {} of Linux's own driver", l.abi);
  if (l.abi != uverbs::k_linux_abi)
    f.no_queues = fmt::format("RDMA device {}: its driver has version {} of its interface, and Linux's own has {}",
                              l.name, l.abi, uverbs::k_linux_abi);
  else
    f.no_queues = bnxt ? why_no_bnxt_queues(l.name, l.file) : why_no_ionic_queues(l.name, l.file);
  if (f.no_queues.empty()) return;
  if (context == nullptr) {
    if (l.abi != uverbs::k_linux_abi)
      f.no_queues += ", and libibverbs has loaded no library for that; install the vendor's, of its driver's version";
    return;
  }
  std::string path, why = errno_text(EIO);
  if (ibv_pd* domain = ibv_alloc_pd(context); domain != nullptr) {
    why = bnxt ? why_no_bnxt_library(context, domain, &path) : why_no_ionic_library(context, domain, &path);
    ibv_dealloc_pd(domain);
  }
  f.by_library = why.empty();
  if (f.by_library)
    f.queues_by = fmt::format("the vendor's library {}, not by system calls: {}", path, std::exchange(f.no_queues, ""));
  else if (l.abi == uverbs::k_linux_abi)
    f.no_queues += ". And by the vendor's library: " + why;
  else  // The more telling reason goes first, for another PE may get no more of it.
    f.no_queues = fmt::format("{}{}. {}", why, path.empty() ? "" : " (by " + path + ")", f.no_queues);
}

// A ConnectX is opened so that firmware commands of ours may make its queues (DEVX), where that is allowed.
ibv_context* open_device(ibv_device* device, [[maybe_unused]] device_facts& f) {
#if HAVE_MLX5DV
  if (mlx5dv_is_supported(device)) {
    f.is_mlx5 = true;
    mlx5dv_context_attr wanted{};
    wanted.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    if (ibv_context* c = mlx5dv_open_device(device, &wanted)) return c;
    f.no_commands = errno_text(errno);
  }
#endif
  return ibv_open_device(device);
}

opened_device read_device(ibv_device* device) {
  opened_device d;
  device_facts& f = d.facts;
  f.name = ibv_get_device_name(device);
  f.bus_id = bus_id_of(f.name.c_str());
  f.is_iwarp = device->transport_type != IBV_TRANSPORT_IB;
  errno = 0;
  d.context = std::shared_ptr<ibv_context>(open_device(device, f), [](ibv_context* c) {
    if (c != nullptr) ibv_close_device(c);
  });
  ibv_device_attr a{};
  if (d.context == nullptr) {
    f.closed = errno_text(errno != 0 ? errno : EIO);
    return d;
  }
  if (const int err = ibv_query_device(d.context.get(), &a); err != 0) {
    f.closed = errno_text(err);
    d.context = nullptr;
    return d;
  }
  // The port's news are looked at now and then, never waited for.
  const int flags = fcntl(d.context->async_fd, F_GETFL);
  fcntl(d.context->async_fd, F_SETFL, flags | O_NONBLOCK);
  f.has_atomics = a.atomic_cap != IBV_ATOMIC_NONE;
  f.max_wr = static_cast<std::uint32_t>(std::max(a.max_qp_wr, 0));
  f.max_sge = static_cast<std::uint32_t>(std::max(a.max_sge, 0));
  f.max_cqe = static_cast<std::uint32_t>(std::max(a.max_cqe, 0));
  f.responder_depth = static_cast<std::uint8_t>(std::clamp(a.max_qp_rd_atom, 0, 255));
  f.initiator_depth = static_cast<std::uint8_t>(std::clamp(a.max_qp_init_rd_atom, 0, 255));
  for (std::uint8_t n = 1; n <= a.phys_port_cnt && n != 0; ++n) f.ports.push_back(read_port(d.context.get(), n));
  read_gids(d.context.get(), f.ports);
  return d;
}

}  // namespace

port_facts read_port(ibv_context* context, std::uint8_t number) {
  port_facts p;
  p.number = number;
  ibv_port_attr a{};
  if (const int err = ibv_query_port(context, number, &a); err != 0) {
    p.state = "not readable: " + errno_text(err);
    return p;
  }
  p.active = a.state == IBV_PORT_ACTIVE;
  p.state = ibv_port_state_str(a.state);
  if (a.link_layer == IBV_LINK_LAYER_INFINIBAND) p.link = link_layer::infiniband;
  if (a.link_layer == IBV_LINK_LAYER_ETHERNET) p.link = link_layer::ethernet;
  p.active_mtu = static_cast<std::uint8_t>(a.active_mtu);
  p.lid = a.lid;
  p.gbits = gbits_of(a.active_width, a.active_speed);
  p.needs_grh = (a.flags & IBV_QPF_GRH_REQUIRED) != 0;
  p.max_message = a.max_msg_sz;
  p.gid_count = static_cast<std::uint32_t>(std::max(a.gid_tbl_len, 0));
  p.pkey_count = a.pkey_tbl_len;
  return p;
}

// Lanes and what each carries, as the link runs now (rdma-core libibverbs/man/ibv_query_port.3).
std::uint32_t gbits_of(std::uint8_t width, std::uint8_t speed) {
  const auto lanes = [&]() -> std::uint32_t {
    switch (width) {
      case 1: return 1;
      case 2: return 4;
      case 4: return 8;
      case 8: return 12;
      case 16: return 2;
      default: return 0;
    }
  }();
  switch (speed) {
    case 1: return lanes * 5 / 2;
    case 2: return lanes * 5;
    case 4:
    case 8: return lanes * 10;
    case 16: return lanes * 14;
    case 32: return lanes * 25;
    case 64: return lanes * 50;
    case 128: return lanes * 100;
    default: return 0;
  }
}

namespace {

// Adds the kernel's word to that of libibverbs: the vendors of the devices, and whether it gives kernels queues.
// A device of a vendor whose queues we make by system calls is taken without a library, too.
void add_kernels_word(std::vector<opened_device>& all) {
  for (const uverbs::listed_device& l : uverbs::list_devices()) {
    auto found = std::ranges::find_if(all, [&](const auto& d) { return d.facts.name == l.name; });
    const bool ours = l.vendor == proxy::nic_vendor::broadcom || l.vendor == proxy::nic_vendor::pensando;
    if (found == all.end() && !ours) continue;
    device_facts chosen;
    if (ours) choose_maker(l, found == all.end() ? nullptr : found->context.get(), chosen);
    if (ours && (found == all.end() || !found->facts.closed.empty())) {
      opened_device d;
      d.facts = uverbs::read_facts(l);
      d.facts.bus_id = bus_id_of(l.name.c_str());
      d.facts.no_library = found == all.end() ? "libibverbs has no library for it" : found->facts.closed;
      if (found == all.end()) found = all.insert(all.end(), opened_device{});
      *found = std::move(d);
    }
    found->facts.vendor = l.vendor;
    found->facts.kernel_file = l.file;
    found->facts.no_queues = chosen.no_queues;
    found->facts.queues_by = chosen.queues_by;
    found->facts.by_library = chosen.by_library;
  }
}

}  // namespace

std::vector<opened_device> read_devices() {
  std::vector<opened_device> all;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  // Null where the kernel knows no RDMA at all.
  for (int i = 0; list != nullptr && i < count; ++i) all.push_back(read_device(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  add_kernels_word(all);
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.facts.name < b.facts.name; });
  return all;
}

}  // namespace xio::rdma
