// SPDX-License-Identifier: MIT
#include "transport/rdma/choice.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_auto = 0, k_hw = 1, k_model = 2;

std::uint32_t wanted_of(const options& o) {
  for (const carrier c : {carrier::shm, carrier::tcp, carrier::verbs})
    if (o.nic_executor == name_of(c)) return static_cast<std::uint32_t>(c);
  // Who names a device or an entry of its GID table wants that one and no other.
  const bool named = !o.hca_list.empty() || o.rdma_gid_index != "auto";
  return named && o.backend != "model" ? static_cast<std::uint32_t>(carrier::verbs) : k_auto;
}

carrier check_shm(const std::vector<carrier_offer>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe].mapped == 0)
      fail(XIO_ERR_CONFIG,
           "XIO_NIC_EXECUTOR=shm, but PE {} has peers on another machine; set it to tcp or verbs, or leave it auto",
           pe);
  return carrier::shm;
}

carrier check_verbs(const std::vector<carrier_offer>& all, int me, const std::string& why_not, const char* asked_by) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].verbs != 0) continue;
    if (static_cast<int>(pe) == me) fail(XIO_ERR_UNSUPPORTED, "{} asks for an RDMA device: {}", asked_by, why_not);
    fail(XIO_ERR_PEER,
         "{} asks for an RDMA device and PE {} has none that works; its own error says why (or set XIO_BACKEND=model)",
         asked_by, pe);
  }
  return carrier::verbs;
}

}  // namespace

const char* name_of(carrier c) {
  switch (c) {
    case carrier::shm: return "shm";
    case carrier::tcp: return "tcp";
    case carrier::verbs: break;
  }
  return "verbs";
}

carrier choose_carrier(const std::vector<carrier_offer>& all, int me, const std::string& why_not) {
  bool mapped = true, verbs = true;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].wanted != all[0].wanted || all[pe].backend != all[0].backend)
      fail(XIO_ERR_CONFIG, "XIO_NIC_EXECUTOR or XIO_BACKEND differ between PE 0 and PE {}; set them alike on every PE",
           pe);
    mapped &= all[pe].mapped != 0;
    verbs &= all[pe].verbs != 0;
  }
  const carrier_offer& o = all[0];
  if (o.wanted == static_cast<std::uint32_t>(carrier::verbs))
    return check_verbs(all, me, why_not, "XIO_NIC_EXECUTOR=verbs, XIO_HCA_LIST or XIO_RDMA_GID_INDEX");
  if (o.wanted == static_cast<std::uint32_t>(carrier::shm)) return check_shm(all);
  if (o.wanted == static_cast<std::uint32_t>(carrier::tcp)) return carrier::tcp;
  if (o.backend == k_hw) return check_verbs(all, me, why_not, "XIO_BACKEND=hw");
  if (o.backend == k_auto && verbs) return carrier::verbs;
  return mapped ? carrier::shm : carrier::tcp;
}

carrier agree_on_carrier(bootstrap::channel& c, const options& o, bool mapped, const std::string& why_no_verbs) {
  carrier_offer mine{};
  mine.wanted = wanted_of(o);
  mine.backend = o.backend == "hw" ? k_hw : o.backend == "model" ? k_model : k_auto;
  mine.mapped = mapped ? 1 : 0;
  mine.verbs = why_no_verbs.empty() ? 1 : 0;
  const carrier way = choose_carrier(bootstrap::allgather_value(c, mine), c.rank(), why_no_verbs);
  if (way != carrier::verbs && mine.backend == k_auto && !why_no_verbs.empty())
    log::info("rdma: software NIC over {}, no hardware: {}", name_of(way), why_no_verbs);
  return way;
}

std::string family_name(const options& o, carrier c) {
  if (o.nic_family != "auto") return o.nic_family;
  return c == carrier::verbs ? "proxy" : "mlx5";
}

}  // namespace xio::rdma
