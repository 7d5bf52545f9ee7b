// SPDX-License-Identifier: MIT
#include "transport/rdma/direct/endpoint.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#if HAVE_VERBS

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>

#include "base/error.hpp"
#include "memory/mode.hpp"
#include "progress/machine.hpp"
#include "proxy/immediate_desk.hpp"
#include "proxy/verbs_fabric.hpp"
#include "transport/rdma/carrier.hpp"
#include "transport/rdma/connector.hpp"
#include "transport/rdma/direct/nic.hpp"
#include "transport/rdma/direct/self_write.hpp"
#include "transport/rdma/joined_nics.hpp"
#include "transport/rdma/memory_probe.hpp"
#include "transport/rdma/verbs/ports.hpp"
#include "xio/wire/inbox.hpp"

namespace xio::rdma {

namespace {

using nic_list = std::vector<std::unique_ptr<direct_nic>>;
using proxy::verbs_address;

constexpr std::uint64_t k_most_message = 1u << 30;
constexpr std::size_t k_line = 128;
constexpr std::chrono::milliseconds k_trial{5000};

std::size_t state_bytes(std::uint32_t depth) {
  return (sizeof(dev::ring_state) + depth * sizeof(std::uint64_t) + k_line - 1) / k_line * k_line;
}

// As completion_depth and inline_limit want it. The device places the queues, so the functions that lay memory out are
// null.
proxy::family entries_of(const direct_format& format) {
  proxy::family f{};
  f.name = format.name;
  f.kind = format.kind;
  f.inline_bytes = format.inline_bytes;
  f.gather_bytes = format.gather_bytes;
  f.most_cq_depth = format.most_cq_depth;
  return f;
}

// All queues of an endpoint have these alike.
struct queue_facts {
  const direct_format* format;
  std::uint32_t cq_depth, chunk, atomics, inline_bytes;
  proxy::verbs_path path;
};

// The parts of this process that an immediate goes through.
struct immediate_plan {
  progress::machine* machine;
  const payload_agent* payload;
  unsigned char* heap;
};

// Moves immediates from the receive sides of queue pairs to this PE's inboxes. Kernels look there, and a host thread
// here.
class immediate_watch final : public progress::device {
 public:
  // queues: by place, pe * per_peer + which; some are null.
  immediate_watch(const immediate_plan& plan, const queue_request& request,
                  const std::vector<std::unique_ptr<direct_queue>>& queues)
      : machine_(*plan.machine), queues_(queues), desk_(*plan.payload) {
    unsigned char* const inboxes = plan.heap + request.inboxes;
    for (std::uint32_t i = 0; i < queues.size(); ++i) {
      desk_.enrol(i, {inboxes + i / request.per_peer * wire::inbox::bytes(request.immediates), request.immediates});
      targets_.emplace_back(desk_, i);
    }
    machine_.add(this);
  }
  ~immediate_watch() override { machine_.remove(this); }
  immediate_watch& operator=(immediate_watch&&) = delete;
  bool poll() override {
    bool any = false;
    for (std::size_t i = 0; i < queues_.size(); ++i)
      any |= queues_[i] != nullptr && queues_[i]->poll_receives(targets_[i]);
    return any;
  }

 private:
  // A look at a GPU's memory takes long, and peers that are held up try again after this time (RNR timer).
  static constexpr std::chrono::microseconds k_between{500};
  class target final : public immediate_target {
   public:
    target(proxy::immediate_desk& desk, std::uint32_t number) : desk_(desk), number_(number) {}
    bool put(std::uint32_t immediate) override { return desk_.deliver(number_, immediate); }
    std::uint64_t most_sent() override {
      const auto now = std::chrono::steady_clock::now();
      if (now < next_) return known_;
      next_ = now + k_between;
      return known_ = desk_.room(number_);
    }

   private:
    proxy::immediate_desk& desk_;
    const std::uint32_t number_;
    std::chrono::steady_clock::time_point next_{};
    std::uint64_t known_ = 0;
  };

  progress::machine& machine_;
  const std::vector<std::unique_ptr<direct_queue>>& queues_;
  proxy::immediate_desk desk_;
  std::deque<target> targets_;
};

class direct_queues final : public queue_set {
 public:
  // lazy: none is made yet.
  direct_queues(const nic_list& nics, const queue_request& request, const queue_facts& facts, bool lazy)
      : per_peer_(request.per_peer),
        facts_(facts),
        nics_(nics),
        request_(request),
        queues_(request.peers.size() * per_peer_),
        views_(queues_.size(), dev::ring_view{}) {
    const std::uint64_t count_from = facts.format->count_from;
    if (request.ticket_start % count_from != 0)
      fail(XIO_ERR_CONFIG,
           "tickets of a queue on {} hardware cannot start at {}; use a multiple of {} or 0 as XIO_TICKET_START",
           facts.format->name, request.ticket_start, count_from);
    if (lazy) return;
    const auto count = static_cast<std::size_t>(std::ranges::count(request.peers, true));
    const gpu::buffer& all = add_states(count * per_peer_);
    std::size_t place = 0;
    for (std::size_t pe = 0; pe < request.peers.size(); ++pe)
      if (request.peers[pe]) make(pe, all, std::exchange(place, place + per_peer_));
  }
  void make_to(int pe) {
    const std::size_t at = static_cast<std::size_t>(pe) * per_peer_;
    if (queues_[at] != nullptr) return;
    const gpu::buffer& states = add_states(per_peer_);
    try {
      make(static_cast<std::size_t>(pe), states, 0);
    } catch (...) {
      for (std::size_t which = 0; which < per_peer_; ++which) queues_[at + which].reset();
      states_.pop_back();
      throw;
    }
  }
  std::unique_ptr<lazy_set>& lazy() { return lazy_; }
  void when_connected(std::function<void(int pe)> publish) override {
    if (lazy_ != nullptr) lazy_->when_connected(std::move(publish));
  }
  std::string silence_of(int pe) const override { return lazy_ == nullptr ? "" : lazy_->silence_of(pe); }
  // Once all are connected: a queue pair that is not forgets what is posted on it.
  void watch_immediates(const immediate_plan& plan, const queue_request& request) {
    immediates_ = std::make_unique<immediate_watch>(plan, request, queues_);
  }
  dev::ring_view view(int pe, std::uint32_t which) const override {
    if (lazy_ == nullptr || lazy_->is_connected(pe)) return views_[static_cast<std::size_t>(pe) * per_peer_ + which];
    return request_.peers[static_cast<std::size_t>(pe)] ? lazy_->dormant(pe, common_view(which)) : dev::ring_view{};
  }
  void stop() noexcept override {
    if (lazy_ != nullptr) lazy_->stop();
    immediates_.reset();
    for (const auto& q : queues_)
      if (q != nullptr) q->stop();
  }
  void stop_to(int pe) noexcept override {
    if (lazy_ != nullptr) lazy_->exclude(pe);
    // The watch of immediates goes on for the others, and finds a queue pair that is gone empty.
    for (std::size_t i = 0; i < per_peer_; ++i)
      if (const auto& q = queues_[static_cast<std::size_t>(pe) * per_peer_ + i]; q != nullptr) q->stop();
  }
  // As joined_nics::create_queues wants them.
  queue_address get_queue_address(std::size_t place) {
    if (queues_[place] == nullptr) return {};
    const verbs_address& mine = queues_[place]->identity();
    return {mine.qpn, pack(mine)};
  }
  dev::ring_view& view(std::size_t place) { return views_[place]; }
  void connect(std::size_t place, const queue_address& theirs) {
    const int pe = static_cast<int>(place / per_peer_);
    queues_[place]->connect(proxy::unpack(theirs.what, pe, true), pe, facts_.path, views_[place]);
  }

 private:
  const gpu::buffer& add_states(std::size_t count) {
    return states_.emplace_back(std::max<std::size_t>(count, 1) * state_bytes(depth()), gpu::place::device);
  }
  std::uint32_t depth() const { return nics_[0]->depth_of(request_.depth); }
  std::uint32_t nic_of(std::size_t which) const { return static_cast<std::uint32_t>(which % nics_.size()); }
  void make(std::size_t pe, const gpu::buffer& states, std::size_t first) {
    for (std::uint32_t which = 0; which < per_peer_; ++which) {
      const std::size_t i = pe * per_peer_ + which;
      queues_[i] = nics_[nic_of(which)]->make_queue(depth(), facts_.cq_depth, request_.immediates != 0);
      views_[i] = common_view(which);
      fill(views_[i], *queues_[i], states.as<unsigned char>() + (first + which) * state_bytes(depth()));
    }
  }
  // The fields that all queue pairs have in common, whether they are there or not.
  dev::ring_view common_view(std::uint32_t which) const {
    dev::ring_view v{};
    v.kind = facts_.format->kind;
    v.rdma.nic = static_cast<std::uint16_t>(nic_of(which));
    v.rdma.scratch_lkey = request_.scratch.lkey[v.rdma.nic];
    v.rdma.gather_bytes = facts_.format->gather_bytes;
    v.chunk = facts_.chunk;
    v.rdma.atomics = static_cast<std::uint16_t>(facts_.atomics);
    v.rdma.inline_bytes = facts_.inline_bytes;
    return v;
  }
  void fill(dev::ring_view& v, const direct_queue& q, unsigned char* words) const {
    dev::ring_state state{};
    state.issued = state.published = state.completed = request_.ticket_start;
    state.credits = request_.depth;
    v.state = reinterpret_cast<dev::ring_state*>(words);
    v.marks = reinterpret_cast<std::uint64_t*>(words + sizeof(dev::ring_state));
    q.fill(v, state);
    gpu::put_value(v.state, state);
  }

  const std::uint32_t per_peer_;
  const queue_facts facts_;
  const nic_list& nics_;  // of the endpoint
  const queue_request request_;
  std::vector<std::unique_ptr<direct_queue>> queues_;
  std::vector<dev::ring_view> views_;
  std::deque<gpu::buffer> states_;
  std::unique_ptr<immediate_watch> immediates_;  // goes before the queues
  std::unique_ptr<lazy_set> lazy_;               // goes first, or null
};

// Reads the events of devices whose queues kernels drive: nobody else polls them.
class event_watch final : public progress::device {
 public:
  event_watch(progress::machine& m, const nic_list& nics) : machine_(m), nics_(nics) { machine_.add(this); }
  ~event_watch() override { machine_.remove(this); }
  event_watch& operator=(event_watch&&) = delete;
  bool poll() override {
    for (const auto& n : nics_) n->poll_events();
    return false;
  }

 private:
  progress::machine& machine_;
  const nic_list& nics_;
};

class direct_endpoint final : public endpoint {
 public:
  direct_endpoint(const setup& s, const direct_provider& provider, nic_list nics, gpu::place rings)
      : immediates_{s.machine, s.payload, static_cast<unsigned char*>(s.heap)},
        path_(path_of(*s.opts)),
        atomics_(s.opts->rdma_atomic32 == option::rdma_atomic32::emulate ? std::uint32_t{dev::nic_four_in_eight} : 0),
        cq_depth_(s.opts->rdma_cq_depth),
        inline_(s.opts->rdma_inline),
        format_(provider.format),
        rings_(rings),
        nics_(std::move(nics)),
        joined_(*s.channel) {
    joined_.exchange_with_peers(s, [&] { return describe(); });
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      const proxy::key_pair keys{joined_.heap_keys().lkey[i], joined_.heap_keys().rkey[i]};
      if (can_be_tried(i)) check_heap(s, writer(s, i), keys, "RDMA device " + nics_[i]->identity().device);
    }
    // All are of one provider: all can be tried, or none.
    if (can_be_tried(0))
      gpu_refusal_ = gpu_memory_refusal(
          s, {joined_.count(), [&](std::uint32_t i) { return writer(s, i); },
              [&](std::uint32_t i, void* base, std::size_t bytes) { return joined_.add_for_trial(i, base, bytes); },
              [&](std::uint32_t i, const proxy::key_pair& keys) { joined_.remove_from_trial(i, keys); }, name_});
    watch_ = std::make_unique<event_watch>(*s.machine, nics_);
  }

  const char* backend() const override { return name_.c_str(); }
  std::uint32_t nics() const override { return joined_.count(); }
  memory_keys heap_keys() const override { return joined_.heap_keys(); }
  bool on_devices() const override { return true; }
  bool takes_immediates() const override { return format_.takes_immediates; }
  bool has_failed() const override {
    return std::ranges::any_of(nics_, [](const auto& n) { return n->has_failed(); });
  }
  bool reaches(int) const override { return true; }
  memory_keys register_memory(void* base, std::size_t bytes) override {
    refuse_gpu_memory(gpu_refusal_, base);
    return joined_.register_memory(base, bytes);
  }
  void unregister_memory(void* base) override { joined_.unregister_memory(base, name_); }

  std::vector<std::unique_ptr<queue_set>> create_queues(const std::vector<queue_request>& asked) override {
    std::vector<queue_request> requests = asked;
    // The watch of immediates polls all queue pairs from the start, and doorbells are not mapped for a GPU while its
    // kernels run.
    const bool maps = gpu::name() != std::string_view("host");
    for (queue_request& r : requests) r.lazy = r.lazy && r.immediates == 0 && !maps;
    auto made = joined_.create_queues(requests, [&](const queue_request& r) { return make_queues(r); });
    for (std::size_t i = 0; i < made.size(); ++i)
      if (requests[i].immediates != 0) made[i]->watch_immediates(immediates_, requests[i]);
    return {std::move_iterator(made.begin()), std::move_iterator(made.end())};
  }

 private:
  // Rings that the host does not reach are tried by no write of its own.
  bool can_be_tried(std::size_t nic) const { return rings_ != gpu::place::device || nics_[nic]->fabric() != nullptr; }
  self_write writer(const setup& s, std::size_t nic) const {
    const int me = s.channel->rank();
    if (rings_ == gpu::place::device)
      return writer_of([fabric = nics_[nic]->fabric()](const auto& use) { use(*fabric); }, me);
    return [this, nic, me](const probed_memory& memory, std::chrono::milliseconds patience) {
      return write_to_itself(*nics_[nic], {&format_, me, path_}, memory, patience);
    };
  }
  // Queues of a port that is down would be made, and their first ops fail after all retries.
  void check_ports() const {
    for (const auto& n : nics_)
      if (const port_facts p = n->port(); !p.active)
        fail(XIO_ERR_IO, "RDMA device {} port {} is not up ({}); bring up its link or network interface",
             n->identity().device, p.number, p.state);
  }
  std::unique_ptr<direct_queues> make_queues(queue_request request) {
    check_ports();
    request.peers.resize(joined_.peers().size());
    if (request.immediates != 0 && rings_ == gpu::place::device)
      fail(XIO_ERR_UNSUPPORTED,
           "a ctx with immediates on {}: a host thread posts and reads receives, so rings cannot lie in GPU memory; "
           "leave XIO_MEMORY_MODE at auto or 0",
           name_);
    const proxy::family entries = entries_of(format_);
    return std::make_unique<direct_queues>(
        nics_, request,
        queue_facts{&format_, proxy::completion_depth(entries, nics_[0]->depth_of(request.depth), cq_depth_), chunk_,
                    atomics_, proxy::inline_limit(entries, inline_), path_},
        joined_.is_lazy(request));
  }
  joined_nics<direct_nic>::opened describe() {
    std::vector<direct_nic*> all;
    std::uint64_t longest = k_most_message;
    name_ = std::string(format_.name) + " on";
    for (const auto& n : nics_) {
      all.push_back(n.get());
      name_ += " " + n->identity().device;
      longest = std::min(longest, n->max_message());
    }
    chunk_ = static_cast<std::uint32_t>(longest);
    return {std::move(all), chunk_};
  }

  const immediate_plan immediates_;
  const proxy::verbs_path path_;
  const std::uint32_t atomics_;
  const std::uint64_t cq_depth_;    // as rdma_options::rdma_cq_depth
  const option::AUTO_UINT inline_;  // as rdma_options::rdma_inline
  const direct_format format_;
  const gpu::place rings_;
  const nic_list nics_;
  std::string name_;
  std::uint32_t chunk_ = 0;
  joined_nics<direct_nic> joined_;  // goes before the NICs: memory is taken from them
  std::unique_ptr<event_watch> watch_;
  std::string gpu_refusal_;  // as of gpu_memory_refusal
};

// A provider puts ring, completions and doorbell record into one piece of memory.
gpu::place place_of_rings(const rdma_options& o, const direct_provider& provider) {
  const std::string who = std::string(provider.format.name) + " queues";
  const memory::ability can{gpu::place::shared, provider.rings_only_shared};
  const auto where = memory::place_rings(o.memory_mode, who.c_str(), can, can, can);
  if (where.submission != where.completion || where.submission != where.doorbell)
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_MEMORY_MODE={} parts the ring of an {} queue from its completions or doorbell record, which lie in one "
         "registered buffer; ask for all three (7) or none (0)",
         o.memory_mode.value_or(0), provider.format.name);
  return where.submission;
}

struct attempt {
  direct_offer offer;
  const direct_provider* provider = nullptr;
  nic_list nics;
  gpu::place rings = gpu::place::shared;
};

// The provider of all ports. Throws where there is none: a PE's rings are of one format.
const direct_provider& provider_of(const rdma_options& o, const std::vector<proxy::verbs_port>& ports) {
  const direct_provider* first = nullptr;
  for (const proxy::verbs_port& port : ports) {
    const std::string& device = port.identity.device;
    const direct_provider* p = find_direct_provider(port);
    if (p == nullptr)
      fail(XIO_ERR_UNSUPPORTED, "RDMA device {} is none of those whose queues kernels can drive (mlx5, bnxt, ionic)",
           device);
    if (o.nic_family != option::nic_family::automatic && option::word_of(o.nic_family) != p->format.name)
      fail(XIO_ERR_UNSUPPORTED, "RDMA device {} has queues of {}", device, p->format.name);
    if (first != nullptr && p != first)
      fail(XIO_ERR_UNSUPPORTED,
           "RDMA device {} has queues of {} and {} of {}, and kernels of one world drive one kind; choose NICs of one "
           "vendor with XIO_HCA_LIST",
           ports[0].identity.device, first->format.name, device, p->format.name);
    if (!port.no_queues.empty()) fail(XIO_ERR_UNSUPPORTED, "{}", port.no_queues);
    first = p;
  }
  return *first;
}

// This PE's part, up to where it has all that a device, its driver and the platform must give.
attempt try_direct(const setup& s) {
  const rdma_options& o = *s.opts;
  if (!wants_direct(o)) return {make_direct_offer(o, direct_state::unwanted, XIO_OK, ""), nullptr, {}};
  auto state = direct_state::failed;
  try {
    const auto ports = open_ports(o, s.channel->rank(), s.local_rank, gpu::bus_id(), true);
    state = direct_state::absent;
    const direct_provider& provider = provider_of(o, ports);
    state = direct_state::refused;
    direct_hooks hooks;
    hooks.map_registers = gpu::map_registers;
    hooks.unmap_registers = gpu::unmap_registers;
    hooks.export_memory = gpu::export_memory;
    hooks.rings = place_of_rings(o, provider);
    state = direct_state::failed;
    nic_list nics;
    for (const proxy::verbs_port& port : ports) {
      nics.push_back(provider.open(port, path_of(o), hooks));
      nics.back()->forced_mtu = path_of(o).mtu;
      // A doorbell that does not arrive is found here, and not by the first op's deadline.
      if (hooks.rings != gpu::place::device)
        try_doorbells(*nics.back(), {&provider.format, s.channel->rank(), path_of(o)}, k_trial);
    }
    return {make_direct_offer(o, direct_state::ready, XIO_OK, "", provider.format.name), &provider, std::move(nics),
            hooks.rings};
  } catch (...) {
    const xio_status_t status = status_of_current_exception();
    return {make_direct_offer(o, state, status, last_error()), nullptr, {}};
  }
}

}  // namespace

void direct_nic::connect_peers(const std::vector<proxy::device_address>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int pe = static_cast<int>(i);
    const verbs_address remote = proxy::unpack(all[i], pe, false);
    check_pair(identity(), remote, pe);
    agree_mtu(identity(), remote, pe, forced_mtu);
  }
}

std::unique_ptr<endpoint> open_direct(const setup& s) {
  attempt a = try_direct(s);
  if (!agree_on_direct(*s.channel, a.offer)) return nullptr;
  return std::make_unique<direct_endpoint>(s, *a.provider, std::move(a.nics), a.rings);
}

}  // namespace xio::rdma

#else

#include "transport/rdma/carrier.hpp"

namespace xio::rdma {

std::unique_ptr<endpoint> open_direct(const setup& s) {
  const auto state = wants_direct(*s.opts) ? direct_state::absent : direct_state::unwanted;
  agree_on_direct(*s.channel, make_direct_offer(*s.opts, state, XIO_ERR_UNSUPPORTED,
                                                "this libxio was built without libibverbs; install rdma-core's "
                                                "headers and configure again"));
  return nullptr;
}

}  // namespace xio::rdma

#endif
