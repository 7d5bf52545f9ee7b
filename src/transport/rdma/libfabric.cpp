// SPDX-License-Identifier: MIT
#include "transport/rdma/libfabric.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"

#if HAVE_LIBFABRIC
#include <chrono>

#include "proxy/ofi_fabric.hpp"
#include "topology/machine_map.hpp"
#include "transport/rdma/nearest_first.hpp"
#include "xio/device/impl/view.hpp"
#endif

namespace xio::rdma {

std::string provider_of(const rdma_options& o) { return o.fabric_provider.empty() ? "cxi" : o.fabric_provider; }

#if HAVE_LIBFABRIC

namespace {

namespace ofi = proxy::ofi;

// As real devices count: 4.096 us times two to this power, and so many times more (InfiniBand
// specification, 9.7.6.1.3).
std::chrono::nanoseconds patience_of(const rdma_options& o) {
  if (o.rdma_timeout == 0) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds(4096) * (std::int64_t{1} << o.rdma_timeout) * static_cast<int>(o.rdma_retry + 1);
}

ofi::wish wish_of(const rdma_options& o) {
  ofi::wish w{o.fabric_library, provider_of(o)};
  if (gpu::has_device_memory()) w.gpu = std::string_view(gpu::name()) == "cuda" ? FI_HMEM_CUDA : FI_HMEM_ROCR;
  return w;
}

// XIO_HCA_LIST, of which domains have no ports.
bool is_listed(const std::string& list, const std::string& name) {
  const bool excludes = list.starts_with('^');
  const std::string names = "," + list.substr(excludes ? 1 : 0) + ",";
  return (names.find("," + name + ",") != std::string::npos) != excludes;
}

std::string names_of(const std::vector<ofi::info_list>& all) {
  std::string out;
  for (const auto& i : all) out += (out.empty() ? "" : ", ") + std::string(i->domain_attr->name);
  return out;
}

// Those that the list names, or one: the NIC that is nearest to the PE's GPU, and of networks the first that leads out.
std::vector<ofi::info_list> choose(std::vector<ofi::info_list> all, const rdma_options& o, int local_rank) {
  std::size_t most = dev::k_max_nics;
  if (!o.hca_list.empty()) {
    const std::string there = names_of(all);
    std::erase_if(all, [&](const auto& i) { return !is_listed(o.hca_list, i->domain_attr->name); });
    if (all.empty())
      fail(XIO_ERR_CONFIG, "XIO_HCA_LIST={} names no domain of {}; there are {}", o.hca_list, provider_of(o), there);
  } else {
    if (all.size() > 1 && !ofi::traits_of(*all[0]).bus_id.empty()) {
      const topology::machine_map machine;
      const std::string gpu = gpu::bus_id();
      order_nearest_first(all, local_rank,
                          [&](const auto& i) { return machine.distance(ofi::traits_of(*i).bus_id, gpu); });
    }
    // Providers list interfaces in any order, and the loopback's leads to no other machine.
    std::stable_partition(all.begin(), all.end(),
                          [](const auto& i) { return std::string_view(i->domain_attr->name) != "lo"; });
    most = 1;
  }
  while (all.size() > most) all.pop_back();
  return all;
}

void warn_of_strangers(const std::string& provider, int rank) {
  if (rank != 0 || provider.starts_with("cxi") || provider.starts_with("verbs")) return;
  log::warn(
      "the provider {} of libfabric authenticates nobody: a program that reaches its ports and guesses a key of 64 "
      "bits reaches heaps. It is for tests on a network that you trust; XIO_NIC_EXECUTOR=tcp proves its peers",
      provider);
}

}  // namespace

opened_domains open_libfabric(const rdma_options& o, const payload_agent& payload, const libfabric_place& where) {
  const ofi::wish w = wish_of(o);
  opened_domains out{{}, ~0u};
  for (ofi::info_list& domain : choose(ofi::list_domains(w), o, where.local_rank)) {
    proxy::ofi_settings s;
    s.pe = where.rank;
    s.pes = where.ranks;
    s.seed = static_cast<std::uint32_t>(where.rank * 4) + static_cast<std::uint32_t>(out.fabrics.size()) + 1;
    s.patience = patience_of(o);
    s.rnr_retries = static_cast<unsigned>(o.rdma_rnr_retry);
    s.on_immediate = where.on_immediate;
    s.room = where.room;
    s.gpu = w.gpu;
    if (where.apart && std::string_view(domain->domain_attr->name) == "lo")
      log::warn(
          "PE {} has the loopback interface alone for {}, which leads to no other machine; bring up the interface of a "
          "network before the PEs start, or name its domain by XIO_HCA_LIST",
          where.rank, w.provider);
    auto one = std::make_unique<proxy::ofi_fabric>(payload, ofi::load_library(w.library), std::move(domain), s);
    out.atomics &= one->atomics();
    out.fabrics.push_back(std::move(one));
  }
  warn_of_strangers(w.provider, where.rank);
  return out;
}

std::vector<domain_facts> try_libfabric(const rdma_options& o, const payload_agent& payload, std::string* library) {
  std::vector<domain_facts> out;
  const ofi::wish w = wish_of(o);
  const auto status = guard([&] {
    auto all = ofi::list_domains(w);
    *library = ofi::load_library(w.library).name();
    for (ofi::info_list& domain : all) {
      const ofi::traits t = ofi::traits_of(*domain);
      domain_facts d{t.domain, t.bus_id, "", true};
      d.works = guard([&] {
                  proxy::ofi_settings s;
                  s.gpu = w.gpu;
                  const proxy::ofi_fabric f(payload, ofi::load_library(w.library), std::move(domain), s);
                  d.says = f.summary();
                }) == XIO_OK;
      if (!d.works) d.says = last_error();
      out.push_back(d);
    }
  });
  if (status != XIO_OK) *library = last_error();
  return out;
}

std::string why_no_slingshot(const rdma_options& o) {
  std::error_code err;
  if (std::filesystem::is_empty("/sys/class/cxi", err) || err) return "this machine has no Slingshot NIC";
  return sentence_from([&] {
    ofi::wish w = wish_of(o);
    w.provider = "cxi";
    ofi::list_domains(w);
    return "";
  });
}

#else

opened_domains open_libfabric(const rdma_options&, const payload_agent&, const libfabric_place&) {
  fail(XIO_ERR_UNSUPPORTED,
       "XIO_NIC_EXECUTOR=libfabric: this XIO was built without libfabric's headers; install them (on Debian "
       "libfabric-dev) and configure again");
}

std::vector<domain_facts> try_libfabric(const rdma_options&, const payload_agent&, std::string* library) {
  *library = "this build has no libfabric headers";
  return {};
}

std::string why_no_slingshot(const rdma_options&) {
  std::error_code err;
  if (std::filesystem::is_empty("/sys/class/cxi", err) || err) return "this machine has no Slingshot NIC";
  return "this XIO was built without libfabric's headers, so it reaches no Slingshot NIC; install them and configure "
         "again";
}

#endif

}  // namespace xio::rdma
