// SPDX-License-Identifier: MIT
#include "transport/rdma/families.hpp"

#include <array>

#include "base/error.hpp"

namespace xio::rdma {

namespace {

constexpr std::array k_of_software_nics{"mlx5", "mlx5_cq", "mlx5_nodbr", "bnxt", "ionic", "ionic_v1", "ernic"};

}  // namespace

std::string why_no_software_nic() {
  if (software::built_in() != nullptr) return "";
  return "this build has no software NIC; configure without --disable-model, or give every PE an RDMA device";
}

const family& find_family(const std::string& name) {
  if (name == proxy::proxy_family().name) return proxy::proxy_family();
  const software::devices* devices = software::built_in();
  if (const family* row = devices != nullptr ? devices->find_nic(name) : nullptr) return *row;
  for (const char* known : k_of_software_nics)
    if (name == known)
      fail(XIO_ERR_UNSUPPORTED,
           "XIO_NIC_FAMILY={}: entries of that format are decoded by the software NIC, which this build lacks; use "
           "proxy, or configure without --disable-model",
           name);
  fail(XIO_ERR_CONFIG, "there is no NIC family '{}'; set XIO_NIC_FAMILY to one that `xio-info --env` lists", name);
}

software::nic_faults plan_faults(const std::string& text, int pe, carrier way) {
  const auto level = way == carrier::tcp ? software::fault_level::frames : software::fault_level::ops;
  if (const software::devices* devices = software::built_in()) return devices->plan_nic_faults(text, pe, level);
  if (!text.empty())
    fail(XIO_ERR_UNSUPPORTED, "XIO_MODEL_FAULTS is set, and this build has no software devices; unset it");
  return {};
}

}  // namespace xio::rdma
