// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/log.hpp"
#include "bootstrap/world_keys.hpp"
#include "proxy/tcp_fabric.hpp"
#include "proxy/tcp_settings.hpp"
#include "transport/rdma/direct/endpoint.hpp"
#include "transport/rdma/families.hpp"
#include "transport/rdma/libfabric.hpp"
#include "transport/rdma/nic_endpoint.hpp"
#include "transport/rdma/verbs/verbs.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint64_t k_model_message = std::uint64_t{1} << 30;  // mlx5: log_max_msg 30

// Real devices do what every verbs device can, and their atomics know only each other: a plain store to the other half
// of a word could be lost. Software NICs change words by the CPU's own atomics.
std::uint32_t atomics_of(const family& f, carrier way, const rdma_options& o) {
  if (way == carrier::shm || way == carrier::tcp) return f.atomics | dev::nic_four_in_eight;
  return o.rdma_atomic32 == option::rdma_atomic32::emulate ? std::uint32_t{dev::nic_four_in_eight} : 0;
}

proxy::immediate_handler handler_of(const nic_parts& c) {
  return [desk = c.desk](std::uint32_t number, std::uint32_t immediate, std::uint64_t) {
    return desk->deliver(number, immediate);
  };
}

void add_shm(const setup& s, const proxy::memory_place& place, nic_parts& c) {
  for (std::uint64_t i = 0; i < s.opts->model_nics; ++i) {
    const auto seed = static_cast<std::uint32_t>(s.channel->rank() * 4 + static_cast<int>(i) + 1);
    auto one = std::make_unique<proxy::shm_fabric>(*s.payload, k_model_message, seed, handler_of(c),
                                                   static_cast<unsigned>(s.opts->rdma_rnr_retry), place);
    c.mapped.push_back(one.get());
    c.fabrics.push_back(std::move(one));
  }
}

// Collective. An error here occurs on every PE, or on one PE, and then the others name that PE.
proxy::tcp_key_source agree_on_keys(bootstrap::channel& c) {
  const auto keys = c.keys();
  if (!keys->proven() && crypto::k_proves && c.rank() == 0)
    log::warn(
        "the software NICs' keys were agreed on over {}, where nothing proves who is who: somebody who can alter that "
        "traffic could reach heaps. Trust this network, or give every PE the same XIO_TCP_KEY or XIO_TCP_KEY_FILE",
        c.name());
  return [keys](int pe) {
    const bootstrap::secret key = keys->with(pe, "xio nic link");
    proxy::tcp_key out;
    std::copy_n(key.data(), out.size(), out.begin());
    return out;
  };
}

proxy::tcp_settings tcp_settings_of(const setup& s, const proxy::tcp_key_source& key_with) {
  proxy::tcp_settings t;
  t.pe = s.channel->rank();
  t.pes = s.channel->size();
  t.key_with = key_with;
  t.address = s.opts->nic_tcp_address;
  t.network = *s.opts;
  t.max_message = k_model_message;
  t.ack_timeout = std::chrono::milliseconds(s.opts->nic_tcp_ack_ms);
  t.retries = static_cast<unsigned>(s.opts->rdma_retry);
  t.rnr_retries = static_cast<unsigned>(s.opts->rdma_rnr_retry);
  t.connect_timeout = std::chrono::milliseconds(s.opts->timeout_ms);
  return t;
}

void add_tcp(const setup& s, const proxy::tcp_key_source& key_with, const software::nic_faults& faults, nic_parts& c) {
  for (std::uint64_t i = 0; i < s.opts->model_nics; ++i) {
    proxy::tcp_settings t = tcp_settings_of(s, key_with);
    t.seed = static_cast<std::uint32_t>(s.channel->rank() * 4 + static_cast<int>(i) + 1);
    t.faults = faults.frames;
    t.place = faults.place;
    t.on_immediate = handler_of(c);
    c.fabrics.push_back(std::make_unique<proxy::tcp_fabric>(*s.payload, t));
  }
}

bool maps_all(const setup& s) { return std::ranges::find(s.peer_heaps, nullptr) == s.peer_heaps.end(); }

void add_libfabric(const setup& s, nic_parts& c) {
  const libfabric_place where{s.channel->rank(),
                              s.channel->size(),
                              s.local_rank,
                              handler_of(c),
                              [desk = c.desk](std::uint32_t number) { return desk->room(number); },
                              !maps_all(s)};
  opened_domains opened = open_libfabric(*s.opts, *s.payload, where);
  c.fabrics = std::move(opened.fabrics);
  c.atomics |= c.family->atomics & opened.atomics;
}

nic_parts choose_nics(const setup& s, carrier way, const proxy::tcp_key_source& key_with) {
  nic_parts c{};
  c.is_model = way == carrier::shm || way == carrier::tcp;
  if (const std::string why = why_no_software_nic(); c.is_model && !why.empty())
    fail(XIO_ERR_UNSUPPORTED, "RDMA between these PEs goes by the software NIC: {}", why);
  c.family = &find_family(family_name(*s.opts, way));
  c.desk = std::make_shared<proxy::immediate_desk>(*s.payload);
  c.atomics = atomics_of(*c.family, way, *s.opts);
  c.inline_bytes = inline_limit(*c.family, s.opts->rdma_inline);
  software::nic_faults faults = plan_faults(s.opts->model_faults, s.channel->rank(), way);
  switch (way) {
    case carrier::shm: add_shm(s, faults.place, c); break;
    case carrier::verbs:
      c.fabrics = open_verbs(*s.opts, *s.payload, s.channel->rank(), s.local_rank, handler_of(c),
                             {gpu::bus_id(), gpu::export_memory});
      break;
    case carrier::tcp: add_tcp(s, key_with, faults, c); break;
    case carrier::libfabric: add_libfabric(s, c); break;
  }
  c.faults = std::move(faults.ops);
  return c;
}

}  // namespace

std::unique_ptr<endpoint> open_endpoint(const setup& given) {
  setup s = given;
  const bool mapped = maps_all(s);
  const carrier way = agree_on_carrier(*s.channel, *s.opts, mapped, why_no_verbs(*s.opts), why_no_slingshot(*s.opts),
                                       s.why_not_lazy, &s.lazy);
  if (way == carrier::verbs)
    if (auto direct = open_direct(s)) return direct;
  const auto key_with = way == carrier::tcp ? agree_on_keys(*s.channel) : proxy::tcp_key_source{};
  nic_parts c{};
  std::exception_ptr failure;
  try {
    c = choose_nics(s, way, key_with);
  } catch (...) {
    failure = std::current_exception();
  }
  agree_on_opening(*s.channel, failure);
  return std::make_unique<nic_endpoint>(s, std::move(c));
}

}  // namespace xio::rdma
