// SPDX-License-Identifier: MIT
#include "proxy/ofi_provider.hpp"

#include <dlfcn.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>

#include "base/error.hpp"
#include "base/kept_handlers.hpp"

namespace xio::proxy::ofi {

namespace {

constexpr const char* k_library = "libfabric.so.1";
// Structures changed with these versions of the symbols (libfabric.map of its sources), and the headers at hand say
// which ones this file was compiled with.
constexpr bool k_new_headers = FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20));
constexpr const char* k_symbols = k_new_headers ? "FABRIC_1.7" : "FABRIC_1.3";
constexpr const char* k_fabric_symbol = "FABRIC_1.1";
constexpr std::uint32_t k_oldest = FI_VERSION(1, 15);

std::string path_of(void* symbol, const char* otherwise) {
  Dl_info at{};
  return dladdr(symbol, &at) != 0 && at.dli_fname != nullptr ? at.dli_fname : otherwise;
}

std::string text_of_version(std::uint32_t v) { return fmt::format("{}.{}", FI_MAJOR(v), FI_MINOR(v)); }

template <class Function>
void find(void* from, const library& l, const char* name, const char* version, Function& out) {
  void* found = version != nullptr ? dlvsym(from, name, version) : dlsym(from, name);
  if (found == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "{} has another binary interface than the headers of libfabric {}.{} that XIO was built with: {}@{} is "
         "missing; name a libfabric of 1.15 or newer by XIO_FABRIC_LIBRARY, or build XIO on this machine",
         l.name(), FI_MAJOR_VERSION, FI_MINOR_VERSION, name, version != nullptr ? version : "any");
  std::memcpy(&out, &found, sizeof out);
}

void* open_library(const std::string& file) {
  // Handlers come with the library's constructors (libinfinipath's), and later with endpoints of some providers.
  const kept_handlers keep(kept_handlers::which::always);
  if (void* loaded = dlopen(k_library, RTLD_NOW | RTLD_NOLOAD); loaded != nullptr) return loaded;
  const char* name = file.empty() ? k_library : file.c_str();
  void* opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = dlerror();
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_NIC_EXECUTOR=libfabric cannot load {}: {}; install libfabric (on Debian libfabric1), or name its file by "
         "XIO_FABRIC_LIBRARY",
         name, why != nullptr ? why : "no reason given");
  }
  return opened;
}

library load(const std::string& file) {
  void* from = open_library(file);
  library l{};
  l.path = file.empty() ? k_library : file;
  decltype(&::fi_version) version = nullptr;
  find(from, l, "fi_version", nullptr, version);
  l.version = version();
  void* place;
  std::memcpy(&place, &version, sizeof place);
  l.path = path_of(place, l.path.c_str());
  if (FI_VERSION_LT(l.version, k_oldest))
    fail(XIO_ERR_UNSUPPORTED, "{} is too old, and XIO needs 1.15 or newer; name another by XIO_FABRIC_LIBRARY",
         l.name());
  find(from, l, "fi_getinfo", k_symbols, l.getinfo);
  find(from, l, "fi_freeinfo", k_symbols, l.freeinfo);
  find(from, l, "fi_dupinfo", k_symbols, l.dupinfo);
  find(from, l, "fi_fabric", k_fabric_symbol, l.fabric);
  find(from, l, "fi_strerror", nullptr, l.strerror);
  log::info("rdma: {}", l.name());
  return l;
}

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

// Whether FI_PROVIDER's list, "tcp,sockets" or "^verbs", leaves the provider in.
bool admits(std::string_view list, std::string_view provider) {
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == provider) return !excludes;
    at = end + 1;
  }
  return excludes;
}

}  // namespace

std::string library::name() const { return fmt::format("libfabric {} ({})", text_of_version(version), path); }

std::string library::text_of(long err) const {
  const char* text = strerror(static_cast<int>(err < 0 ? -err : err));
  return fmt::format("{} ({})", text != nullptr ? text : "no reason given", err);
}

const library& load_library(const std::string& file) {
  static std::mutex lock;
  static std::unique_ptr<const library> loaded;
  const std::lock_guard hold(lock);
  if (loaded == nullptr) loaded = std::make_unique<const library>(load(file));
  return *loaded;
}

void check_variables(const std::string& provider) {
  const std::string core = provider.substr(0, provider.find(';'));
  if (const auto list = variable("FI_PROVIDER"); !list.empty() && !admits(list, core) && !admits(list, provider))
    fail(XIO_ERR_CONFIG,
         "FI_PROVIDER={} leaves out {}, which XIO_FABRIC_PROVIDER asks for; unset FI_PROVIDER, or name {} in it", list,
         core, core);
  if (core != "cxi") return;
  // It patches mmap, munmap and brk of the whole process.
  if (variable("FI_MR_CACHE_MONITOR") == "memhooks")
    fail(
        XIO_ERR_CONFIG,
        "FI_MR_CACHE_MONITOR=memhooks changes the memory calls of the whole process and is known to lock up with RCCL; "
        "set it to disabled, kdreg2 or userfaultfd");
}

std::string unsafe_inside(const std::string& provider, fi_hmem_iface gpu) {
  if (provider != "cxi") return "";
  for (const char* name : {"FI_MR_CACHE_MAX_COUNT", "FI_MR_ROCR_CACHE_MONITOR_ENABLED"})
    if (variable(name) == "0" && (gpu == FI_HMEM_ROCR || std::string_view(name) == "FI_MR_CACHE_MAX_COUNT"))
      return std::string(name) + "=0";
  return "";
}

void prepare_variables(const std::string& provider, fi_hmem_iface gpu) {
  if (provider != "cxi" || dlopen(k_library, RTLD_NOW | RTLD_NOLOAD) != nullptr) return;
  // XIO registers its memory once, so it needs no cache of registrations, whose monitor watches all memory calls.
  setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
  // A dma-buf does not pin: the NIC loses memory that amdgpu moves (issue 12775). AMD's driver package, which alone has
  // a version there, pins it in a way of its own.
  std::error_code error;
  if (gpu == FI_HMEM_ROCR && std::filesystem::exists("/sys/module/amdgpu/version", error))
    setenv("FI_HMEM_ROCR_USE_DMABUF", "0", 0);
}

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
