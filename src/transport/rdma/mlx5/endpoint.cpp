// SPDX-License-Identifier: MIT
#include "transport/rdma/mlx5/endpoint.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#if HAVE_VERBS && HAVE_MLX5DV

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "memory/mode.hpp"
#include "proxy/verbs_fabric.hpp"
#include "transport/rdma/carrier.hpp"
#include "transport/rdma/families.hpp"
#include "transport/rdma/joined_nics.hpp"
#include "transport/rdma/memory_probe.hpp"
#include "transport/rdma/mlx5/direct.hpp"
#include "transport/rdma/verbs/ports.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::rdma {

namespace {

using page_list = std::vector<std::shared_ptr<mlx5_doorbell_page>>;
using proxy::verbs_address;

constexpr std::uint64_t k_most_message = 1u << 30;
// The device counts slots in 16 bits, from 0.
constexpr std::uint64_t k_count_from = 1u << 16;
constexpr std::size_t k_line = 128;

// Describes the capacity of one entry, and that a queue has no completion queue of its own. The device's code places
// the queues, so the functions that lay memory out are null.
const family& entries_of_device() {
  static const family row = [] {
    family f{};
    f.name = "mlx5";
    f.kind = dev::ring_kind::mlx5;
    f.inline_bytes = wire::mlx5::k_inline_in_block;
    f.gather_bytes = wire::mlx5::k_gather_bytes;
    return f;
  }();
  return row;
}

std::size_t state_bytes(std::uint32_t depth) {
  return (sizeof(dev::ring_state) + depth * sizeof(std::uint64_t) + k_line - 1) / k_line * k_line;
}

class mlx5_queues final : public queue_set {
 public:
  mlx5_queues(const page_list& pages, const queue_request& request, std::uint32_t chunk, std::uint32_t atomics,
              std::uint32_t inline_bytes, const proxy::verbs_path& path)
      : per_peer_(request.per_peer),
        path_(path),
        queues_(request.peers.size() * per_peer_),
        views_(queues_.size(), dev::ring_view{}) {
    if (request.ticket_start % k_count_from != 0)
      fail(XIO_ERR_CONFIG,
           "tickets of a queue on mlx5 hardware cannot start at {}; use a multiple of {} or 0 as "
           "XIO_TICKET_START",
           request.ticket_start, k_count_from);
    const auto count = static_cast<std::size_t>(std::count(request.peers.begin(), request.peers.end(), true));
    states_ = gpu::buffer(std::max<std::size_t>(count * per_peer_, 1) * state_bytes(request.depth), gpu::place::device);
    std::size_t place = 0;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      if (!request.peers[i / per_peer_]) continue;
      const auto nic = static_cast<std::uint32_t>(i % per_peer_ % pages.size());
      queues_[i] = std::make_unique<mlx5_send_queue>(pages[nic], request.depth);
      fill(views_[i], *queues_[i], states_.as<unsigned char>() + place++ * state_bytes(request.depth), request, nic);
      views_[i].chunk = chunk;
      views_[i].atomics = atomics;
      views_[i].inline_bytes = inline_bytes;
    }
  }
  dev::ring_view view(int pe, std::uint32_t which) const override {
    return views_[static_cast<std::size_t>(pe) * per_peer_ + which];
  }
  void stop() noexcept override {
    for (const auto& q : queues_)
      if (q != nullptr) q->stop();
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
    queues_[place]->connect(proxy::unpack(theirs.what, pe, true), pe, path_);
  }

 private:
  static void fill(dev::ring_view& v, const mlx5_send_queue& q, unsigned char* words, const queue_request& request,
                   std::uint32_t nic) {
    q.fill(v);
    v.state = reinterpret_cast<dev::ring_state*>(words);
    v.marks = reinterpret_cast<std::uint64_t*>(words + sizeof(dev::ring_state));
    v.nic = nic;
    v.scratch_lkey = request.scratch.lkey[nic];
    v.gather_bytes = wire::mlx5::k_gather_bytes;
    dev::ring_state state{};
    state.issued = state.published = state.completed = request.ticket_start;
    state.credits = request.depth;
    gpu::put_value(v.state, state);
  }

  const std::uint32_t per_peer_;
  const proxy::verbs_path path_;
  std::vector<std::unique_ptr<mlx5_send_queue>> queues_;
  std::vector<dev::ring_view> views_;
  gpu::buffer states_;
};

// Reads the events of devices whose queues kernels drive: nobody else polls them.
class event_watch final : public progress::device {
 public:
  event_watch(progress::machine& m, std::vector<proxy::verbs_fabric*> fabrics)
      : machine_(m), fabrics_(std::move(fabrics)) {
    machine_.add(this);
  }
  ~event_watch() override { machine_.remove(this); }
  event_watch(const event_watch&) = delete;
  event_watch& operator=(const event_watch&) = delete;
  // No queue pair is a fabric's own here: each turn is about the events alone.
  bool poll() override {
    for (proxy::verbs_fabric* f : fabrics_) f->poll();
    return false;
  }

 private:
  progress::machine& machine_;
  const std::vector<proxy::verbs_fabric*> fabrics_;
};

class mlx5_endpoint final : public endpoint {
 public:
  mlx5_endpoint(const setup& s, page_list pages)
      : path_(path_of(*s.opts)),
        atomics_(s.opts->rdma_atomic32 == option::rdma_atomic32::emulate ? std::uint32_t{dev::nic_four_in_eight} : 0),
        cq_depth_(s.opts->rdma_cq_depth),
        inline_(s.opts->rdma_inline),
        pages_(std::move(pages)),
        joined_(*s.channel) {
    joined_.exchange_with_peers(s, [&] { return open_fabrics(); });
    for (std::size_t i = 0; i < fabrics_.size(); ++i)
      check_heap(
          s, [&](const auto& use) { use(*fabrics_[i]); }, {joined_.heap_keys().lkey[i], joined_.heap_keys().rkey[i]},
          fabrics_[i]->name());
    std::vector<proxy::verbs_fabric*> watched;
    for (const auto& one : fabrics_) watched.push_back(one.get());
    watch_ = std::make_unique<event_watch>(*s.machine, std::move(watched));
  }

  const char* backend() const override { return name_.c_str(); }
  std::uint32_t nics() const override { return joined_.count(); }
  memory_keys heap_keys() const override { return joined_.heap_keys(); }
  bool on_devices() const override { return true; }
  bool has_failed() const override {
    return std::any_of(fabrics_.begin(), fabrics_.end(), [](const auto& f) { return f->has_failed(); });
  }
  bool reaches(int) const override { return true; }
  memory_keys register_memory(void* base, std::size_t bytes) override { return joined_.register_memory(base, bytes); }
  void unregister_memory(void* base) override { joined_.unregister_memory(base, name_); }

  std::unique_ptr<queue_set> create_queues(const queue_request& wanted) override {
    queue_request request = wanted;
    request.peers.resize(joined_.peers().size());
    return joined_.create_queues(request, [&] {
      // Its firmware keeps the last completion alone.
      proxy::completion_depth(entries_of_device(), request.depth, cq_depth_);
      return std::make_unique<mlx5_queues>(pages_, request, chunk_, atomics_,
                                           proxy::inline_limit(entries_of_device(), inline_), path_);
    });
  }
  void skip_queues(const queue_request& request, xio_status_t why) override { joined_.skip_queues(request, why); }

 private:
  // Memory is registered and addresses are exchanged as with any verbs device.
  joined_nics<proxy::verbs_fabric>::opened open_fabrics() {
    std::vector<proxy::verbs_fabric*> all;
    std::uint64_t longest = k_most_message;
    name_ = "mlx5 on";
    for (const auto& p : pages_) {
      fabrics_.push_back(std::make_unique<proxy::verbs_fabric>(p->port(), path_, nullptr, gpu::export_memory));
      all.push_back(fabrics_.back().get());
      name_ += " " + p->port().identity.device;
      longest = std::min(longest, p->port().max_message);
    }
    chunk_ = static_cast<std::uint32_t>(longest);
    return {std::move(all), chunk_};
  }

  const proxy::verbs_path path_;
  const std::uint32_t atomics_;
  const std::uint64_t cq_depth_;    // as options::rdma_cq_depth
  const option::AUTO_UINT inline_;  // as options::rdma_inline
  const page_list pages_;
  std::vector<std::unique_ptr<proxy::verbs_fabric>> fabrics_;
  std::string name_;
  std::uint32_t chunk_ = 0;
  joined_nics<proxy::verbs_fabric> joined_;  // goes before the fabrics: memory is taken from them
  std::unique_ptr<event_watch> watch_;
};

// Ring, completion and doorbell record lie in one registered buffer.
gpu::place place_of_rings(const options& o) {
  const memory::ability can{gpu::place::shared, nullptr};
  const auto where = memory::place_rings(o.memory_mode, "mlx5 queues", can, can, can);
  if (where.submission != where.completion || where.submission != where.doorbell)
    fail(XIO_ERR_UNSUPPORTED,
         "XIO_MEMORY_MODE={} parts the ring of an mlx5 queue from its completions or doorbell record, which lie in one "
         "registered buffer; ask for all three (7) or none (0)",
         o.memory_mode.value_or(0));
  return where.submission;
}

struct attempt {
  direct_offer offer;
  page_list pages;
};

// This PE's part, up to where it has all that a device, its driver and the platform must give.
attempt try_mlx5(const setup& s) {
  const options& o = *s.opts;
  if (!wants_direct(o)) return {make_direct_offer(o, direct_state::unwanted, XIO_OK, ""), {}};
  auto state = direct_state::failed;
  try {
    const auto ports = open_ports(o, s.channel->rank(), s.local_rank, gpu::bus_id());
    state = direct_state::absent;
    for (const proxy::verbs_port& port : ports)
      if (!mlx5dv_is_supported(port.context->device))
        fail(XIO_ERR_UNSUPPORTED, "RDMA device {} is none of mlx5", port.identity.device);
    state = direct_state::refused;
    mlx5_hooks hooks;
    hooks.map_registers = gpu::map_registers;
    hooks.unmap_registers = gpu::unmap_registers;
    hooks.export_memory = gpu::export_memory;
    hooks.rings = place_of_rings(o);
    state = direct_state::failed;
    page_list pages;
    for (const proxy::verbs_port& port : ports) pages.push_back(std::make_shared<mlx5_doorbell_page>(port, hooks));
    return {make_direct_offer(o, direct_state::ready, XIO_OK, ""), std::move(pages)};
  } catch (...) {
    const xio_status_t status = status_of_current_exception();
    return {make_direct_offer(o, state, status, last_error()), {}};
  }
}

}  // namespace

std::unique_ptr<endpoint> open_mlx5(const setup& s) {
  attempt a = try_mlx5(s);
  if (!agree_on_direct(*s.channel, a.offer)) return nullptr;
  return std::make_unique<mlx5_endpoint>(s, std::move(a.pages));
}

}  // namespace xio::rdma

#else

#include "transport/rdma/carrier.hpp"

namespace xio::rdma {

std::unique_ptr<endpoint> open_mlx5(const setup& s) {
  const auto state = wants_direct(*s.opts) ? direct_state::absent : direct_state::unwanted;
  agree_on_direct(*s.channel,
                  make_direct_offer(*s.opts, state, XIO_ERR_UNSUPPORTED,
                                    "this libxio was built without rdma-core's libmlx5; install its headers "
                                    "and configure again"));
  return nullptr;
}

}  // namespace xio::rdma

#endif
