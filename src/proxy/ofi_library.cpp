// SPDX-License-Identifier: MIT
#include "proxy/ofi_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

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

}  // namespace xio::proxy::ofi
