// SPDX-License-Identifier: MIT
// The provider of libfabric that would carry RDMA: its library, and each domain with what a trial has shown. Nothing is
// loaded unless it is asked for or a Slingshot NIC is here.
#include "transport/rdma/libfabric.hpp"

#include <filesystem>

#include "gpu/gpu.hpp"
#include "tools/xio-info/section.hpp"

namespace xio::info {

std::vector<section> libfabric_sections(const rdma_options& o) {
  std::error_code err;
  const bool is_here = !std::filesystem::is_empty("/sys/class/cxi", err) && !err;
  if (o.nic_executor != option::nic_executor::libfabric && !is_here) return {};
  std::string library;
  const auto domains = rdma::try_libfabric(o, gpu::payload(), &library);
  section s{"libfabric", "libfabric", {{"provider", rdma::provider_of(o), ""}, {"library", library, ""}}};
  for (const rdma::domain_facts& d : domains) {
    s.rows.push_back({d.name, d.works, d.says});
    if (!d.bus_id.empty()) s.rows.push_back({d.name + "_bus_id", d.bus_id, ""});
  }
  return {s};
}

}  // namespace xio::info
