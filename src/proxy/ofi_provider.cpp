// SPDX-License-Identifier: MIT
#include "proxy/ofi_provider.hpp"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/error.hpp"
#include "base/kept_handlers.hpp"

namespace xio::proxy::ofi {

namespace {

constexpr std::uint64_t k_caps = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t k_most_message = std::uint64_t{1} << 30;
constexpr std::size_t k_most_under_way = 256;
// cxi keeps the keys below for registrations of another kind (fi_cxi(7), "optimized" keys).
constexpr std::uint64_t k_first_key = 4096;

// Wishes, the strongest first: providers refuse to list themselves for what they do not promise.
constexpr std::uint64_t k_writes = FI_ORDER_WAW | FI_ORDER_RMA_WAW;
constexpr std::uint64_t k_orders[] = {
    k_writes | FI_ORDER_ATOMIC_WAW | FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW,
    k_writes | FI_ORDER_ATOMIC_WAW, k_writes, FI_ORDER_RMA_WAW, 0};

std::string_view core_of(std::string_view provider) { return provider.substr(0, provider.find(';')); }

void ask_for(fi_info& hints, const std::string& provider, std::uint64_t order, bool gpu_memory) {
  hints.caps = k_caps | (gpu_memory ? FI_HMEM : 0);
  hints.mode = FI_CONTEXT | FI_CONTEXT2;
  hints.ep_attr->type = FI_EP_RDM;
  // Keys of cxi's own are kept in a cache, so that a peer could write after the end of a registration (fi_cxi(7)).
  const int keys = core_of(provider) == "cxi" ? 0 : FI_MR_PROV_KEY;
  hints.domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT | keys | (gpu_memory ? FI_MR_HMEM : 0);
  hints.domain_attr->threading = FI_THREAD_DOMAIN;
  hints.domain_attr->control_progress = hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints.tx_attr->msg_order = hints.rx_attr->msg_order = order;
  // A completion says that the data are in the peer's memory.
  hints.tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  // The list frees the name with everything else.
  hints.fabric_attr->prov_name = strdup(provider.c_str());
}

info_list query(const library& l, const std::string& provider, std::uint64_t order, bool gpu_memory, int* err) {
  const freed_info free{&l};
  const info_list hints(l.dupinfo(nullptr), free);
  if (hints == nullptr) fail(XIO_ERR_NO_MEMORY, "{} has no memory for a question", l.name());
  ask_for(*hints, provider, order, gpu_memory);
  fi_info* found = nullptr;
  const kept_handlers keep(kept_handlers::which::always);
  *err = l.getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints.get(), &found);
  return {*err == 0 ? found : nullptr, free};
}

bool is_sane(const fi_info& i) {
  return i.ep_attr != nullptr && i.domain_attr != nullptr && i.domain_attr->name != nullptr &&
         i.fabric_attr != nullptr && i.fabric_attr->prov_name != nullptr && i.tx_attr != nullptr &&
         i.rx_attr != nullptr && i.tx_attr->size != 0 && i.ep_attr->max_msg_size >= sizeof(std::uint64_t);
}

// One info by itself, of a list that keeps its own.
info_list copy_of(const library& l, const fi_info& i) { return {l.dupinfo(&i), freed_info{&l}}; }

void refuse_by_name(const std::string& provider) {
  if (core_of(provider) == "efa")
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_FABRIC_PROVIDER=efa: EFA delivers writes in any order and has no atomics of its own, which signals need, "
         "and XIO does not number them yet; leave XIO_NIC_EXECUTOR at auto or set it to tcp");
  if (core_of(provider) == "shm")
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_FABRIC_PROVIDER=shm takes signal handlers of the process; XIO_NIC_EXECUTOR=shm is XIO's own way in one "
         "machine");
}

}  // namespace

order_table order_of(std::uint64_t o, const std::string& provider) {
  // cxi announces reads behind writes, and its manual says that they do not hold.
  if (core_of(provider) == "cxi") o &= k_writes | FI_ORDER_ATOMIC_WAW;
  const auto has = [o](std::uint64_t any) { return (o & any) != 0; };
  order_table t{};
  const auto w = static_cast<std::size_t>(kind::write), r = static_cast<std::size_t>(kind::read),
             a = static_cast<std::size_t>(kind::atomic);
  t[w][w] = has(FI_ORDER_WAW | FI_ORDER_RMA_WAW);
  t[w][a] = t[a][w] = has(FI_ORDER_WAW);
  t[a][a] = has(FI_ORDER_WAW | FI_ORDER_ATOMIC_WAW);
  t[w][r] = has(FI_ORDER_RAW | FI_ORDER_RMA_RAW);
  t[a][r] = has(FI_ORDER_RAW);
  // Nobody relies on what comes behind a read that has not completed.
  t[r] = {true, true, true};
  return t;
}

traits traits_of(const fi_info& i) {
  const int mode = i.domain_attr->mr_mode;
  traits t{};
  t.provider = i.fabric_attr->prov_name;
  t.domain = i.domain_attr->name;
  if (i.nic != nullptr && i.nic->bus_attr != nullptr && i.nic->bus_attr->bus_type == FI_BUS_PCI) {
    const fi_pci_attr& p = i.nic->bus_attr->attr.pci;
    t.bus_id = fmt::format("{:04x}:{:02x}:{:02x}.{}", p.domain_id, p.bus_id, p.device_id, p.function_id);
  }
  // The two modes of before 1.5 stand for several.
  const bool basic = mode == FI_MR_BASIC;
  t.virtual_addresses = basic || (mode & FI_MR_VIRT_ADDR) != 0;
  t.keys_by_provider = basic || (mode & FI_MR_PROV_KEY) != 0;
  t.bound_to_endpoint = (mode & FI_MR_ENDPOINT) != 0;
  t.local_keys = (mode & FI_MR_LOCAL) != 0;
  t.narrow_keys = i.domain_attr->mr_key_size < sizeof(std::uint64_t);
  t.gpu_memory = (i.caps & FI_HMEM) != 0;
  t.follows = order_of(i.tx_attr->msg_order & i.rx_attr->msg_order, t.provider);
  t.most_ordered_write = i.ep_attr->max_order_waw_size;
  t.max_message = std::min<std::uint64_t>(i.ep_attr->max_msg_size, k_most_message);
  t.under_way = std::min(i.tx_attr->size, k_most_under_way);
  return t;
}

namespace {

// One info for each domain of the provider: others of it differ in forms of addresses.
void add_domains(const library& l, const fi_info* all, const std::string& provider, std::vector<info_list>& found) {
  for (const fi_info* i = all; i != nullptr; i = i->next) {
    // A provider's own name stands for what libfabric lays over it, too.
    if (!is_sane(*i)) continue;
    const std::string_view found_name = i->fabric_attr->prov_name;
    if (found_name != provider && core_of(found_name) != provider) continue;
    // Of verbs connections are meant. libfabric 1.17 crashes in what it lays over its datagrams.
    if (found_name == "verbs;ofi_rxd" && provider != found_name) continue;
    const std::string_view name = i->domain_attr->name;
    if (std::ranges::none_of(found, [&](const auto& f) { return f->domain_attr->name == name; }))
      found.push_back(copy_of(l, *i));
  }
}

}  // namespace

std::vector<info_list> list_domains(const wish& w) {
  refuse_by_name(w.provider);
  check_variables(w.provider);
  prepare_variables(w.provider, w.gpu);
  const library& l = load_library(w.library);
  int err = 0;
  std::vector<info_list> found;
  // GPU memory counts more than order, which XIO can keep by waiting.
  for (const bool gpu_memory : {true, false})
    for (const std::uint64_t order : k_orders) {
      if (gpu_memory && w.gpu == FI_HMEM_SYSTEM) break;
      const info_list all = query(l, w.provider, order, gpu_memory, &err);
      add_domains(l, all.get(), w.provider, found);
      if (!found.empty()) return found;
      if (err != 0 && err != -FI_ENODATA) break;
    }
  fail(XIO_ERR_UNSUPPORTED,
       "{} offers no provider '{}' with writes, reads and atomics between processes on this machine ({}); `fi_info -p "
       "{}` shows what it has, XIO_FABRIC_PROVIDER names another{}",
       l.name(), w.provider, err == 0 ? "none of that name" : l.text_of(err), w.provider,
       core_of(w.provider) == "cxi"
           ? ". In a container /dev/cxi0 and the next have to be there, and the job needs a CXI "
             "service (SLINGSHOT_VNIS; with Slurm --network=job_vni or single_node_vni)"
           : "");
}

provider::provider(const library& l, info_list info, std::size_t pes)
    : lib_(l), info_(std::move(info)), traits_(traits_of(*info_)) {
  name_ = fmt::format("{} of {} by libfabric {}.{}", traits_.domain, traits_.provider, FI_MAJOR(l.version),
                      FI_MINOR(l.version));
  const kept_handlers keep(kept_handlers::which::always);
  fid_fabric* fabric = nullptr;
  if (const int err = l.fabric(info_->fabric_attr, &fabric, nullptr); err != 0) fail_to("open its fabric", err);
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int err = fi_domain(fabric, info_.get(), &domain, nullptr); err != 0)
    fail_to(core_of(traits_.provider) == "cxi"
                ? "open its domain (is there a CXI service for this user or job? SLINGSHOT_VNIS; with Slurm "
                  "--network=job_vni or single_node_vni)"
                : "open its domain",
            err);
  domain_.reset(domain);
  fi_av_attr a{};
  a.type = info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info_->domain_attr->av_type;
  a.count = pes;
  fid_av* peers = nullptr;
  if (const int err = fi_av_open(domain, &a, &peers, nullptr); err != 0) fail_to("make a table of peers", err);
  peers_.reset(peers);
}

void provider::fail_to(const char* what, long err) const {
  const auto status = err == -FI_ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO;
  fail(status, "{} cannot {}: {}; see the kernel's log, FI_LOG_LEVEL=warn says more", name_, what, lib_.text_of(err));
}

// Nobody else knows it, and inside a job's network it is all that keeps others out.
std::uint64_t provider::new_key() const {
  std::random_device source;
  const std::uint64_t key = std::uint64_t{source()} << 32 | source();
  const std::uint64_t cut = traits_.narrow_keys ? key & 0xffffffff : key;
  return std::max(cut, k_first_key);
}

namespace {

const char* cure_of(fi_hmem_iface of) {
  switch (of) {
    case FI_HMEM_ROCR:
      return "with AMD's driver package set FI_HMEM_ROCR_USE_DMABUF=0; without it the kernel needs "
             "CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA, and a container /boot/config-*. Or set "
             "XIO_HEAP_KIND=host";
    case FI_HMEM_CUDA: return "load nvidia-peermem, or set XIO_HEAP_KIND=host";
    default: return "raise `ulimit -l`, or free other registrations";
  }
}

}  // namespace

owned<fid_mr> provider::register_memory(const memory_range& range, std::uint64_t access, fid_ep* to) const {
  const iovec piece{range.base, range.bytes};
  fi_mr_attr a{};
  a.mr_iov = &piece;
  a.iov_count = 1;
  a.access = access;
  a.iface = range.of;
  if (range.of == FI_HMEM_CUDA) a.device.cuda = range.device;
  fid_mr* mr = nullptr;
  int err = -FI_ENOKEY;
  // A key that happens to be taken is drawn again.
  for (int i = 0; i < 4 && err == -FI_ENOKEY; ++i) {
    a.requested_key = traits_.keys_by_provider ? 0 : new_key();
    err = fi_mr_regattr(domain_.get(), &a, 0, &mr);
  }
  if (err != 0)
    fail(err == -FI_ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "{} cannot register {} bytes at {}{}: {}; {}", name_,
         range.bytes, range.base, range.of == FI_HMEM_SYSTEM ? "" : " of GPU memory", lib_.text_of(err),
         cure_of(range.of));
  owned<fid_mr> made(mr);
  if (!traits_.bound_to_endpoint || to == nullptr) return made;
  if ((err = fi_mr_bind(mr, &to->fid, 0)) != 0) fail_to("bind memory to its endpoint", err);
  if ((err = fi_mr_enable(mr)) != 0) fail_to("enable memory", err);
  return made;
}

fi_addr_t provider::add_peer(const void* address) const {
  fi_addr_t at = FI_ADDR_UNSPEC;
  const int added = fi_av_insert(peers_.get(), address, 1, &at, 0, nullptr);
  if (added != 1 || at == FI_ADDR_NOTAVAIL) fail_to("take a peer's address", added < 0 ? added : -FI_EADDRNOTAVAIL);
  return at;
}

}  // namespace xio::proxy::ofi
