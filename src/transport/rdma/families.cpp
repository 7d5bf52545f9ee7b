// SPDX-License-Identifier: MIT
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "transport/rdma/families.hpp"

#include <array>

#include "base/error.hpp"
#ifdef XIO_ENABLE_MODEL
#include "model/nic/families.hpp"
#include "model/nic/faults.hpp"
#endif

namespace xio::rdma {

namespace {

constexpr std::array k_of_software_nics{"mlx5", "mlx5_cq", "mlx5_nodbr", "bnxt", "ionic", "ionic_v1", "ernic"};

const family* find_software_family([[maybe_unused]] const std::string& name) {
#ifdef XIO_ENABLE_MODEL
  namespace m = model::rdma;
  for (const family* row : {&m::mlx5_family(), &m::mlx5_cq_family(), &m::mlx5_nodbr_family(), &m::bnxt_family(),
                            &m::ionic_family(), &m::ionic_v1_family(), &m::ernic_family()})
    if (name == row->name) return row;
#endif
  return nullptr;
}

}  // namespace

std::string why_no_software_nic() {
#ifdef XIO_ENABLE_MODEL
  return "";
#else
  return "this build has no software NIC; configure without --disable-model, or give every PE an RDMA device";
#endif
}

const family& find_family(const std::string& name) {
  if (name == proxy::proxy_family().name) return proxy::proxy_family();
  if (const family* row = find_software_family(name)) return *row;
  for (const char* known : k_of_software_nics)
    if (name == known)
      fail(XIO_ERR_UNSUPPORTED,
           "XIO_NIC_FAMILY={}: entries of that format are decoded by the software NIC, which this build lacks; use "
           "proxy, or configure without --disable-model",
           name);
  fail(XIO_ERR_CONFIG, "there is no NIC family '{}'; set XIO_NIC_FAMILY to one that `xio-info --env` lists", name);
}

planned_faults plan_faults([[maybe_unused]] const std::string& text, [[maybe_unused]] int pe,
                           [[maybe_unused]] carrier way) {
  planned_faults out;
#ifdef XIO_ENABLE_MODEL
  const auto level = way == carrier::tcp ? model::rdma::fault_level::frames : model::rdma::fault_level::ops;
  auto made = model::rdma::make_faults(text, pe, level);
  if (way == carrier::tcp) out.frames = made.get();
  out.ops = std::move(made);
#else
  if (!text.empty())
    fail(XIO_ERR_UNSUPPORTED, "XIO_MODEL_FAULTS is set, and this build has no software devices; unset it");
#endif
  return out;
}

}  // namespace xio::rdma
