// SPDX-License-Identifier: MIT
#include "transport/rdma/nic_endpoint.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "xio/wire/inbox.hpp"

namespace xio::rdma {

namespace nic_rights = proxy;

namespace {

constexpr std::uint32_t k_local = nic_rights::local_read | nic_rights::local_write;
constexpr std::uint32_t k_remote = nic_rights::remote_read | nic_rights::remote_write | nic_rights::remote_atomic;
constexpr std::uint32_t k_max_message = 1u << 30;
constexpr std::uint32_t k_path_mtu = 4096;

}  // namespace

nic_endpoint::nic_endpoint(const setup& s, nic_parts parts)
    : channel_(*s.channel),
      heap_(static_cast<unsigned char*>(s.heap)),
      desk_(std::move(parts.desk)),
      heaps_(s.peer_heaps),
      faults_(std::move(parts.faults)) {
  heaps_.resize(static_cast<std::size_t>(channel_.size()));
  try {
    start(s, parts);
  } catch (...) {
    // The others are on their way to the exchange: they must hear of it.
    exchange_identities(channel_, {}, status_of_current_exception());
    throw;
  }
  exchange_with_peers(s, parts.mapped);
}

void nic_endpoint::start(const setup& s, nic_parts& parts) {
  needs_mapping_ = !parts.mapped.empty();
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
    const auto seed = static_cast<std::uint32_t>(channel_.rank() * 4 + static_cast<int>(i) + 1);
    nics_.push_back(std::make_shared<running_nic>(*s.machine, std::move(parts.fabrics[i]), seed));
    nic(i).set_faults(faults_.get());
  }
}

nic_endpoint::~nic_endpoint() {
  for (auto& n : nics_) (*n)->set_faults(nullptr);
  for (const auto& [base, keys] : registered_) unregister_on_all(keys);
  unregister_on_all(heap_keys_);
}

// Tells the others of this PE's heap and NICs, and learns of theirs.
void nic_endpoint::exchange_with_peers(const setup& s, const std::vector<proxy::shm_fabric*>& mapped) {
  identity mine{};
  try {
    heap_keys_ = register_on_all(s.heap, s.heap_bytes, k_local | k_remote);
    mine.heap_base = reinterpret_cast<std::uint64_t>(s.heap);
    mine.heap_bytes = s.heap_bytes;
    mine.nics = static_cast<std::uint32_t>(nics_.size());
    mine.max_message = style_.chunk;
    std::copy(std::begin(heap_keys_.rkey), std::end(heap_keys_.rkey), mine.heap_rkey);
    for (std::size_t i = 0; i < nics_.size(); ++i) mine.nic_addresses[i] = nic(i).get_address();
  } catch (...) {
    exchange_identities(channel_, mine, status_of_current_exception());
    throw;
  }
  peers_ = exchange_identities(channel_, mine, XIO_OK);
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    std::vector<device_address> addresses;
    for (const identity& p : peers_) addresses.push_back(p.nic_addresses[i]);
    nic(i).connect_peers(addresses);
  }
  for (std::size_t i = 0; i < mapped.size(); ++i)
    for (std::size_t pe = 0; pe < peers_.size(); ++pe)
      if (heaps_[pe] != nullptr)
        mapped[i]->adopt(
            static_cast<int>(pe), peers_[pe].heap_rkey[i],
            {peers_[pe].heap_base, peers_[pe].heap_bytes, static_cast<unsigned char*>(heaps_[pe]), k_remote});
}

memory_keys nic_endpoint::register_on_all(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  memory_keys keys{};
  std::size_t i = 0;
  try {
    for (; i < nics_.size(); ++i) {
      const auto pair = nic(i).register_memory(base, bytes, allowed);
      keys.lkey[i] = pair.lkey;
      keys.rkey[i] = pair.rkey;
    }
  } catch (...) {
    while (i-- > 0) nic(i).unregister_memory({keys.lkey[i], keys.rkey[i]});
    throw;
  }
  return keys;
}

void nic_endpoint::unregister_on_all(const memory_keys& keys) {
  for (std::size_t i = 0; i < nics_.size(); ++i) nic(i).unregister_memory({keys.lkey[i], keys.rkey[i]});
}

memory_keys nic_endpoint::register_memory(void* base, std::size_t bytes) {
  const memory_keys keys = register_on_all(base, bytes, k_local);
  const std::lock_guard hold(lock_);
  registered_.emplace(base, keys);
  return keys;
}

void nic_endpoint::unregister_memory(void* base) {
  const std::lock_guard hold(lock_);
  const auto found = registered_.find(base);
  if (found == registered_.end())
    fail(XIO_ERR_NOT_REGISTERED, "no memory at {} is registered with {}; give the address that was registered", base,
         name_);
  unregister_on_all(found->second);
  registered_.erase(found);
}

void nic_endpoint::fill_remote(dev::ring_view& v, std::size_t pe) const {
  v.remote_heap = peers_[pe].heap_base;
  v.remote_key = peers_[pe].heap_rkey[v.nic];
}

// What a queue pair to `pe` fills: where NICs are joined by memory the sender's puts it straight into the peer's inbox;
// else it is the receiver's that puts it into its own.
proxy::inbox nic_endpoint::inbox_for(const queue_request& request, int pe) const {
  const auto them = static_cast<std::size_t>(pe);
  const auto me = static_cast<std::size_t>(channel_.rank());
  unsigned char* heap = needs_mapping_ ? static_cast<unsigned char*>(heaps_[them]) : heap_;
  const std::uint64_t from = needs_mapping_ ? me : them;
  return {heap + request.inboxes + from * wire::inbox::bytes(request.immediates), request.immediates};
}

std::unique_ptr<queue_set> nic_endpoint::create_queues(const queue_request& request) {
  std::unique_ptr<nic_queues> queues;
  std::vector<queue_address> mine;
  std::vector<bool> wanted(heaps_.size());
  for (std::size_t pe = 0; pe < wanted.size(); ++pe)
    wanted[pe] = pe < request.peers.size() && request.peers[pe] && reaches(static_cast<int>(pe));
  try {
    queues = std::make_unique<nic_queues>(nics_, wanted, request, style_);
    for (int pe = 0; pe < channel_.size(); ++pe)
      for (std::uint32_t which = 0; which < request.per_peer; ++which) {
        queue_address q{queues->view_at(pe, which).id, {}};
        if (q.number != 0) q.what = queues->nic_of(which).get_queue_address(q.number, pe);
        mine.push_back(q);
      }
  } catch (...) {
    // The others are on their way to the exchange: they must hear of it.
    skip_queues(request, status_of_current_exception());
    throw;
  }
  const auto theirs = exchange_queues(channel_, mine, request.per_peer, XIO_OK);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].number == 0) continue;
    const std::size_t pe = i / request.per_peer;
    const auto which = static_cast<std::uint32_t>(i % request.per_peer);
    fill_remote(queues->view_at(static_cast<int>(pe), which), pe);
    if (desk_ != nullptr && request.immediates != 0)
      queues->deliver_to(desk_, mine[i].number, inbox_for(request, static_cast<int>(pe)));
    queues->nic_of(which).connect(mine[i].number, static_cast<int>(pe), theirs[i].what, theirs[i].number);
  }
  return queues;
}

}  // namespace xio::rdma
