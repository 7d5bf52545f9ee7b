// SPDX-License-Identifier: MIT
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "transport/rdma/choice.hpp"
#include "transport/rdma/rdma.hpp"
#ifdef XIO_ENABLE_MODEL
#include "model/nic/shm_executor.hpp"
#include "transport/rdma/nic_endpoint.hpp"
#endif

namespace xio::rdma {

#ifdef XIO_ENABLE_MODEL
namespace {

constexpr std::uint64_t k_model_message = std::uint64_t{1} << 30;  // mlx5: log_max_msg 30

std::string no_verbs_here(const options&) { return "this build has no code for RDMA devices yet"; }

void add_shm(const setup& s, nic_choice& c) {
  for (std::uint64_t i = 0; i < s.opts->model_nics; ++i) {
    const auto seed = static_cast<std::uint32_t>(s.channel->rank() * 4 + static_cast<int>(i) + 1);
    auto one = std::make_unique<model::rdma::shm_fabric>(*s.payload, k_model_message, seed);
    c.mapped.push_back(one.get());
    c.fabrics.push_back(std::move(one));
  }
}

}  // namespace

std::unique_ptr<endpoint> open(const setup& s) {
  const bool mapped = std::find(s.peer_heaps.begin(), s.peer_heaps.end(), nullptr) == s.peer_heaps.end();
  const carrier way = agree_on_carrier(*s.channel, *s.opts, mapped, no_verbs_here(*s.opts));
  nic_choice c{};
  c.family = &find_family(family_name(*s.opts, way));
  c.is_model = way != carrier::verbs;
  c.atomics = c.family->atomics | dev::nic_four_in_eight;
  switch (way) {
    case carrier::shm: add_shm(s, c); break;
    case carrier::tcp:
    case carrier::verbs: fail(XIO_ERR_UNSUPPORTED, "RDMA over {} is not in this build", name_of(way));
  }
  return std::make_unique<nic_endpoint>(s, std::move(c));
}
#else
std::unique_ptr<endpoint> open(const setup&) {
  fail(XIO_ERR_UNSUPPORTED,
       "RDMA was asked for, but this build was made without the software NIC, which also carries a real device's "
       "work; configure without --disable-model, or set XIO_ROUTE=direct");
}
#endif

}  // namespace xio::rdma
