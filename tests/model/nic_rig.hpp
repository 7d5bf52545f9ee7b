// SPDX-License-Identifier: MIT
// Two PEs in one process, without a world: endpoints on the software NIC, one queue pair from each to each, and the
// views that device code gets. Each PE sees the other's heap through a mapping of its own, so no address fits by
// accident.
#pragma once
#include <cstdlib>

#include "../unit/thread_channel.hpp"
#include "transport/rdma/nic_endpoint.hpp"

namespace xio::test {

// All that XIO_NIC_FAMILY knows.
inline constexpr const char* k_families[] = {"mlx5",  "mlx5_cq",  "mlx5_nodbr", "bnxt",
                                             "ionic", "ionic_v1", "ernic",      "proxy"};

struct nic_rig_shape {
  std::uint32_t depth = 64;
  std::uint64_t ticket_start = 0;
  std::uint32_t chunk = 1u << 30;
  std::uint32_t scratch_words = 64, timeout_ms = 10000;
  std::size_t heap_bytes = 1 << 20;
  std::string family = "mlx5";
  std::uint64_t cq_depth = 0;
  option::AUTO_UINT inline_bytes{};
  std::uint32_t immediates = 0;  // entries of each inbox; they lie in the upper half of the heap
  option::AUTO_UINT memory_mode{};
};

// As XIO_HEAP_KIND says it to worlds: in host memory the NIC changes words without a kernel of its own.
inline gpu::heap_kind rig_heap_kind() {
  const char* wanted = std::getenv("XIO_HEAP_KIND");
  return wanted != nullptr && std::string_view(wanted) == "host" ? gpu::heap_kind::host : gpu::heap_kind::device;
}

class nic_rig {
 public:
  struct pe {
    std::unique_ptr<bootstrap::channel> channel;
    std::unique_ptr<gpu::heap> heap;
    std::vector<std::unique_ptr<gpu::mapping>> mappings;
    rdma::setup setup;
    std::unique_ptr<rdma::endpoint> endpoint;
    std::unique_ptr<rdma::queue_set> queues;
    gpu::buffer scratch, scratch_used, rings, peers, world, ctx;
    rdma::memory_keys scratch_keys{};

    const dev::ctx_view* view() const { return ctx.as<dev::ctx_view>(); }
    proxy::nic& nic() const { return static_cast<rdma::nic_endpoint&>(*endpoint).nic(); }
  };

  explicit nic_rig(const nic_rig_shape& shape = {}) : shape_(shape), machine_(1), group_(2) {
    gpu::init(0);
    options_.nic_family = option::parse_word<option::nic_family>(shape.family, "the shape");
    options_.backend = option::backend::model;
    options_.rdma_cq_depth = shape.cq_depth;
    options_.rdma_inline = shape.inline_bytes;
    options_.memory_mode = shape.memory_mode;
    for (int i = 0; i < 2; ++i) {
      pes[i].channel = group_.channel(i);
      pes[i].heap = gpu::make_heap(shape.heap_bytes, rig_heap_kind());
    }
    for (int i = 0; i < 2; ++i) prepare(i);
    both([this](int i) { pes[i].endpoint = rdma::open_endpoint(pes[i].setup); });
    for (auto& p : pes) p.scratch_keys = p.endpoint->register_memory(p.scratch.data(), p.scratch.size());
    both([this](int i) { pes[i].queues = std::move(pes[i].endpoint->create_queues({request(i)}).front()); });
    for (int i = 0; i < 2; ++i) fill_views(i);
  }
  // A test that failed may have left work for a NIC: both end before there are no heaps.
  ~nic_rig() {
    for (auto& p : pes) p.queues.reset();
    for (auto& p : pes) p.endpoint.reset();
  }
  nic_rig& operator=(nic_rig&&) = delete;

  // Runs body(0) and body(1) at the same time; the first exception comes out.
  template <class Body>
  void both(Body&& body) {
    std::exception_ptr errors[2];
    std::thread threads[2];
    for (int i = 0; i < 2; ++i)
      threads[i] = std::thread([&, i] {
        try {
          body(i);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    for (auto& t : threads) t.join();
    for (auto& e : errors)
      if (e) std::rethrow_exception(e);
  }

  rdma::queue_request request(int i) const {
    rdma::queue_request all{std::vector<bool>{true, true}, shape_.depth, shape_.ticket_start, pes[i].scratch_keys, 1};
    all.inboxes = inboxes();
    all.immediates = shape_.immediates;
    return all;
  }

  // Where in a heap its inboxes lie, that for PE 0 first.
  std::uint64_t inboxes() const { return shape_.heap_bytes / 2; }

  // Makes memory known as row 1 of PE i's table.
  void register_memory(int i, void* base, std::size_t bytes) {
    dev::region_view row{};
    row.base = reinterpret_cast<std::uint64_t>(base);
    row.bytes = bytes;
    row.lkey[0] = pes[i].endpoint->register_memory(base, bytes).lkey[0];
    row.live = 1;
    gpu::put_value(&pes[i].world.as<dev::world_view>()->regions[1], row);
  }

  dev::ring_state state(int from, int to) const {
    dev::ring_state s;
    gpu::copy(&s, pes[from].queues->view(to, 0).state, sizeof s);
    return s;
  }

 private:
  void prepare(int i) {
    pe& p = pes[i];
    for (auto& other : pes)
      p.mappings.push_back(gpu::map_heap(other.heap->handle(), shape_.heap_bytes, rig_heap_kind()));
    p.scratch = gpu::buffer(shape_.scratch_words * 8, gpu::place::shared);
    p.scratch_used = gpu::buffer((shape_.scratch_words + 63) / 64 * 8, gpu::place::device);
    p.setup.opts = &options_;
    p.setup.machine = &machine_;
    p.setup.payload = &gpu::payload();
    p.setup.channel = p.channel.get();
    p.setup.heap = p.heap->data();
    p.setup.heap_bytes = shape_.heap_bytes;
    for (auto& m : p.mappings) p.setup.peer_heaps.push_back(m->data());
  }

  void fill_views(int i) {
    pe& p = pes[i];
    p.rings = gpu::buffer(2 * sizeof(dev::ring_view), gpu::place::device);
    p.peers = gpu::buffer(2 * sizeof(dev::peer_view), gpu::place::device);
    p.world = gpu::buffer(sizeof(dev::world_view), gpu::place::device);
    p.ctx = gpu::buffer(sizeof(dev::ctx_view), gpu::place::device);
    for (int to = 0; to < 2; ++to) {
      dev::ring_view ring = p.queues->view(to, 0);
      ring.index = static_cast<std::uint32_t>(to);
      ring.chunk = shape_.chunk;
      gpu::put_value(p.rings.as<dev::ring_view>() + to, ring);
      dev::peer_view peer{};
      peer.rdma_count = 1;
      peer.small = peer.bulk = peer.atomic = dev::route::rdma;
      peer.rdma = p.rings.as<dev::ring_view>() + to;
      gpu::put_value(p.peers.as<dev::peer_view>() + to, peer);
    }
    auto world = std::make_unique<dev::world_view>();
    world->my_pe = static_cast<std::uint32_t>(i);
    world->n_pes = 2;
    world->heap = p.heap->data();
    world->heap_bytes = shape_.heap_bytes;
    world->ticks_per_ms = gpu::ticks_per_ms();
    world->timeout_ticks = shape_.timeout_ms * gpu::ticks_per_ms();
    world->regions[0] = {reinterpret_cast<std::uint64_t>(p.heap->data()),
                         shape_.heap_bytes,
                         {},
                         {p.endpoint->heap_keys().lkey[0]},
                         1,
                         0,
                         0,
                         {},
                         {}};
    gpu::put_value(p.world.as<dev::world_view>(), *world);
    dev::ctx_view ctx{};
    ctx.world = p.world.as<dev::world_view>();
    ctx.peers = p.peers.as<dev::peer_view>();
    ctx.rings = p.rings.as<dev::ring_view>();
    ctx.ring_count = 2;
    ctx.scratch_count = shape_.scratch_words;
    ctx.scratch = p.scratch.as<std::uint64_t>();
    ctx.scratch_used = p.scratch_used.as<std::uint64_t>();
    gpu::put_value(p.ctx.as<dev::ctx_view>(), ctx);
  }

  nic_rig_shape shape_;
  options options_ = options::defaults();
  progress::machine machine_;
  thread_group group_;

 public:
  std::array<pe, 2> pes;  // last: they go first
};

}  // namespace xio::test
