// SPDX-License-Identifier: MIT
#include "transport/rdma/nic_endpoint.hpp"

#include <algorithm>
#include <iterator>

#include "xio/wire/inbox.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_max_message = 1u << 30;
constexpr std::uint32_t k_path_mtu = 4096;

}  // namespace

nic_endpoint::nic_endpoint(const setup& s, nic_parts parts)
    : heap_(static_cast<unsigned char*>(s.heap)),
      rank_(static_cast<std::size_t>(s.channel->rank())),
      desk_(std::move(parts.desk)),
      heaps_(s.peer_heaps),
      faults_(std::move(parts.faults)),
      joined_(*s.channel) {
  heaps_.resize(static_cast<std::size_t>(s.channel->size()));
  joined_.exchange_with_peers(s, [&] { return start(s, parts); });
  map_heaps(parts.mapped);
  for (std::size_t i = 0; i < nics_.size(); ++i)
    check_heap(
        s, [&](const auto& use) { nic(i).with_fabric(use); },
        {joined_.heap_keys().lkey[i], joined_.heap_keys().rkey[i]}, name_);
  gpu_refusal_ = gpu_memory_refusal(s, for_trial(parts.mapped));
}

// Where NICs are joined by memory, keys of this PE's own memory are unknown to its own queue pairs.
probed_nics nic_endpoint::for_trial(const std::vector<proxy::shm_fabric*>& mapped) {
  const int me = static_cast<int>(rank_);
  return {
      joined_.count(),
      [this, me](std::uint32_t i) { return writer_of([this, i](const auto& use) { nic(i).with_fabric(use); }, me); },
      [=, this](std::uint32_t i, void* base, std::size_t bytes) {
        const proxy::key_pair keys = joined_.add_for_trial(i, base, bytes);
        if (i < mapped.size())
          nic(i).with_fabric([&](proxy::fabric&) {
            mapped[i]->adopt(me, keys.rkey,
                             {reinterpret_cast<std::uint64_t>(base), bytes, static_cast<unsigned char*>(base),
                              joined_nics<proxy::nic>::k_remote});
          });
        return keys;
      },
      [=, this](std::uint32_t i, const proxy::key_pair& keys) {
        if (i < mapped.size()) nic(i).with_fabric([&](proxy::fabric&) { mapped[i]->drop(me, keys.rkey); });
        joined_.remove_from_trial(i, keys);
      },
      name_};
}

memory_keys nic_endpoint::register_memory(void* base, std::size_t bytes) {
  refuse_gpu_memory(gpu_refusal_, base);
  return joined_.register_memory(base, bytes);
}

joined_nics<proxy::nic>::opened nic_endpoint::start(const setup& s, nic_parts& parts) {
  needs_mapping_ = !parts.mapped.empty();
  on_devices_ = !parts.is_model;
  std::uint64_t longest = k_max_message;
  for (const auto& f : parts.fabrics) longest = std::min(longest, f->max_message());
  style_ = queue_style{
      parts.family,      static_cast<std::uint32_t>(longest), k_path_mtu, parts.atomics, {}, s.opts->rdma_cq_depth,
      parts.inline_bytes};
  // Entries and completions in a GPU's memory are reached by copies (proxy::ring_memory), some microseconds each.
  // Doorbell words would be copied at every look, also while nothing happens.
  const memory::ability anywhere{gpu::place::shared, nullptr};
  style_.where = memory::place_rings(s.opts->memory_mode, "queue pairs that a host thread works off", anywhere,
                                     anywhere, memory::of_software_device());
  name_ = std::string(parts.family->name) + " over " + parts.fabrics[0]->name() + (parts.is_model ? " (model)" : "");
  // Numbers of one PE mean nothing at another: if they were equal, mixing them up would go unnoticed.
  for (std::size_t i = 0; i < parts.fabrics.size(); ++i) {
    const auto seed = static_cast<std::uint32_t>(rank_ * 4 + i + 1);
    nics_.push_back(std::make_shared<running_nic>(*s.machine, std::move(parts.fabrics[i]), seed));
    nic(i).set_faults(faults_.get());
  }
  std::vector<proxy::nic*> all;
  for (auto& n : nics_) all.push_back(&**n);
  return {std::move(all), style_.chunk};
}

nic_endpoint::~nic_endpoint() {
  for (auto& n : nics_) (*n)->set_faults(nullptr);
}

bool nic_endpoint::has_failed() const {
  return std::ranges::any_of(nics_, [](const auto& n) { return (*n)->has_failed(); });
}

// Where NICs are joined by memory, each peer's heap is reached by its mapping here.
void nic_endpoint::map_heaps(const std::vector<proxy::shm_fabric*>& mapped) {
  for (std::size_t i = 0; i < mapped.size(); ++i)
    for (std::size_t pe = 0; pe < heaps_.size(); ++pe) {
      const identity& peer = joined_.peers()[pe];
      if (heaps_[pe] != nullptr)
        mapped[i]->adopt(static_cast<int>(pe), peer.heap_rkey[i],
                         {peer.heap_base, peer.heap_bytes, static_cast<unsigned char*>(heaps_[pe]),
                          joined_nics<proxy::nic>::k_remote});
    }
}

// Returns the inbox that a queue pair to `pe` fills. Where NICs share memory, the sender's NIC stores an immediate
// straight into the peer's inbox; elsewhere the receiver's NIC stores it into its own PE's inbox.
proxy::inbox nic_endpoint::inbox_for(const queue_request& request, std::size_t pe) const {
  unsigned char* heap = needs_mapping_ ? static_cast<unsigned char*>(heaps_[pe]) : heap_;
  const std::uint64_t from = needs_mapping_ ? rank_ : pe;
  return {heap + request.inboxes + from * wire::inbox::bytes(request.immediates), request.immediates};
}

std::unique_ptr<nic_queues> nic_endpoint::make_queues(const queue_request& request) {
  std::vector<bool> wanted(heaps_.size());
  for (std::size_t pe = 0; pe < wanted.size(); ++pe)
    wanted[pe] = pe < request.peers.size() && request.peers[pe] && reaches(static_cast<int>(pe));
  auto queues = std::make_unique<nic_queues>(nics_, std::move(wanted), request, style_, joined_.is_lazy(request));
  if (desk_ != nullptr && request.immediates != 0)
    queues->deliver_to(desk_, [this, request](std::size_t pe) { return inbox_for(request, pe); });
  return queues;
}

std::vector<std::unique_ptr<queue_set>> nic_endpoint::create_queues(const std::vector<queue_request>& requests) {
  auto made = joined_.create_queues(requests, [&](const queue_request& r) { return make_queues(r); });
  return {std::move_iterator(made.begin()), std::move_iterator(made.end())};
}

}  // namespace xio::rdma
