// SPDX-License-Identifier: MIT
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "transport/rdma/choice.hpp"
#include "transport/rdma/rdma.hpp"
#ifdef XIO_ENABLE_MODEL
#include "model/nic/shm_executor.hpp"
#include "transport/rdma/nic_endpoint.hpp"
#include "transport/rdma/verbs/mlx5_endpoint.hpp"
#include "transport/rdma/verbs/verbs.hpp"
#endif

namespace xio::rdma {

#ifdef XIO_ENABLE_MODEL
namespace {

constexpr std::uint64_t k_model_message = std::uint64_t{1} << 30;  // mlx5: log_max_msg 30

// Queue pairs whose owner takes no immediates hold their peers up until those give up.
bool take_none(std::uint32_t, std::uint32_t, std::uint64_t) { return false; }

// Real devices do what every verbs device can, and their atomics know only each other: a plain store to the other half
// of a word could be lost. Software NICs change words by the CPU's own atomics.
std::uint32_t atomics_of(const family& f, carrier way, const options& o) {
  if (way != carrier::verbs) return f.atomics | dev::nic_four_in_eight;
  return o.rdma_atomic32 == "emulate" ? std::uint32_t{dev::nic_four_in_eight} : 0;
}

void add_shm(const setup& s, nic_choice& c) {
  for (std::uint64_t i = 0; i < s.opts->model_nics; ++i) {
    const auto seed = static_cast<std::uint32_t>(s.channel->rank() * 4 + static_cast<int>(i) + 1);
    auto one = std::make_unique<model::rdma::shm_fabric>(*s.payload, k_model_message, seed);
    c.mapped.push_back(one.get());
    c.fabrics.push_back(std::move(one));
  }
}

nic_choice choose_nics(const setup& s, carrier way) {
  nic_choice c{};
  c.family = &find_family(family_name(*s.opts, way));
  c.is_model = way != carrier::verbs;
  c.atomics = atomics_of(*c.family, way, *s.opts);
  switch (way) {
    case carrier::shm: add_shm(s, c); break;
    case carrier::verbs:
      c.fabrics = open_verbs(*s.opts, *s.payload, s.channel->rank(), s.local_rank, take_none,
                             {gpu::bus_id(), gpu::export_memory});
      break;
    case carrier::tcp: fail(XIO_ERR_UNSUPPORTED, "RDMA over {} is not in this build", name_of(way));
  }
  return c;
}

}  // namespace

std::unique_ptr<endpoint> open(const setup& s) {
  const bool mapped = std::find(s.peer_heaps.begin(), s.peer_heaps.end(), nullptr) == s.peer_heaps.end();
  const carrier way = agree_on_carrier(*s.channel, *s.opts, mapped, why_no_verbs(*s.opts));
  if (way == carrier::verbs)
    if (auto direct = try_open_mlx5(s)) return direct;
  nic_choice c{};
  try {
    c = choose_nics(s, way);
  } catch (...) {
    // The others are on their way to the exchange: they must hear of it.
    exchange_identities(*s.channel, {}, status_of_current_exception());
    throw;
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
