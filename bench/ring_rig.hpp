// SPDX-License-Identifier: MIT
// Rings for bench/ring: of a software NIC and of a software drive, and copies of them that nobody reads.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "model/nic/families.hpp"
#include "progress/machine.hpp"
#include "proxy/shm_executor.hpp"
#include "ring_kernels.hpp"
#include "transport/rdma/nic_queues.hpp"
#include "xio/device/impl/nvme.hpp"
#include "xio/memory.h"
#include "xio/wire/mlx5.hpp"

namespace xio::bench {

inline constexpr std::uint32_t k_places = 512;
inline constexpr std::uint32_t k_block = 512;

inline void must(xio_status_t status, const char* what) {
  if (status != XIO_OK) fail(status, "{}: {}", what, xio_last_error());
}

// A queue pair of the software NIC, in pinned host memory; what it writes to is pinned host memory too.
class nic_ring {
 public:
  nic_ring(const rdma::family& family, std::uint32_t depth)
      : machine_(1), world_(sizeof(dev::world_view), gpu::place::device) {
    remote_ = gpu::buffer(k_places * 8, gpu::place::shared);
    auto fabric = std::make_unique<proxy::shm_fabric>(gpu::payload(), k_chunk, 1);
    const auto base = reinterpret_cast<std::uint64_t>(remote_.data());
    fabric->adopt(0, k_key, {base, remote_.size(), remote_.as<unsigned char>(), proxy::remote_write});
    nics_.push_back(std::make_shared<rdma::running_nic>(machine_, std::move(fabric), 1));
    const rdma::queue_request request{{true}, depth, 0, {}, 1};
    queues_ = std::make_unique<rdma::nic_queues>(
        nics_, request.peers, request, rdma::queue_style{&family, k_chunk, 4096, 0, {}, 0, family.inline_bytes});
    dev::ring_view& v = queues_->view(std::size_t{0});
    v.rdma.remote_heap = base;
    v.rdma.remote_key = k_key;
    (*nics_[0])->connect(v.id, 0, {}, v.id);
    auto world = std::make_unique<dev::world_view>();
    world->ticks_per_ms = gpu::ticks_per_ms();
    world->timeout_ticks = 10000 * gpu::ticks_per_ms();
    gpu::put_value(world_.as<dev::world_view>(), *world);
    view_ = gpu::buffer(sizeof v, gpu::place::device);
    gpu::put_value(view_.as<dev::ring_view>(), v);
  }

  ring_target target() const {
    return {world_.as<dev::world_view>(), view_.as<dev::ring_view>(), {}, {}, nullptr, 0, k_places};
  }

 private:
  static constexpr std::uint32_t k_chunk = 1u << 20;
  static constexpr std::uint32_t k_key = 0x4711;
  progress::machine machine_;
  gpu::buffer world_, view_, remote_;
  rdma::nic_list nics_;
  std::unique_ptr<rdma::nic_queues> queues_;
};

// A queue of the software drive over a file in memory; what it reads into is pinned host memory.
class drive_ring {
 public:
  explicit drive_ring(std::uint32_t depth) : path_("/dev/shm/xio-bench-ring-" + std::to_string(getpid())) {
    xio_init_attr_t init = XIO_INIT_ATTR_INIT;
    init.bootstrap = "local";
    init.heap_bytes = 2u << 20;
    must(xio_init(&init, &world_), "xio_init");
    must(xio_ctx_create(world_, nullptr, &target_.ctx), "xio_ctx_create");
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = XIO_STORAGE_CREATE;
    attr.depth = depth;
    attr.block_bytes = k_block;
    attr.bytes = std::uint64_t{k_places} * k_block;
    must(xio_storage_open(world_, ("file:" + path_).c_str(), &attr, &target_.storage), "xio_storage_open");
    void* buffer = nullptr;
    must(xio_mem_alloc(XIO_MEM_HOST_MAPPED, attr.bytes, nullptr, &buffer), "xio_mem_alloc");
    must(xio_mem_register(world_, buffer, attr.bytes), "xio_mem_register");
    target_.buffer = static_cast<unsigned char*>(buffer);
    target_.block_bytes = k_block;
    target_.places = k_places;
    dev::ctx_view ctx;
    gpu::copy(&ctx, target_.ctx.view, sizeof ctx);
    target_.world = ctx.world;
    dev::storage_view s;
    gpu::copy(&s, target_.storage.view, sizeof s);
    target_.ring = s.queues;
  }
  ~drive_ring() {
    (void)xio_storage_close(world_, target_.storage);
    (void)xio_mem_unregister(world_, target_.buffer);
    (void)xio_mem_free(target_.buffer);
    (void)xio_ctx_destroy(world_, target_.ctx);
    (void)xio_finalize(world_);
    (void)unlink(path_.c_str());
  }
  drive_ring(const drive_ring&) = delete;
  drive_ring& operator=(const drive_ring&) = delete;

  ring_target target() const { return target_; }

 private:
  std::string path_;
  xio_world_t* world_ = nullptr;
  ring_target target_{};
};

// A ring like another one, its entries where one wants them, that no device reads: what is posted stays, and is looked
// at. Its doorbells are in pinned host memory.
class unread_ring {
 public:
  unread_ring(const ring_target& like, std::uint32_t depth, gpu::place where)
      : target_(like),
        state_(sizeof(dev::ring_state), gpu::place::device),
        marks_(depth * sizeof(std::uint64_t), gpu::place::device),
        slots_(depth * std::size_t{64}, where),
        words_(256, gpu::place::shared),
        view_(sizeof(dev::ring_view), gpu::place::device) {
    dev::ring_view v;
    gpu::copy(&v, like.ring, sizeof v);
    is_storage_ = v.kind == dev::ring_kind::nvme;
    v.state = state_.as<dev::ring_state>();
    v.marks = marks_.as<std::uint64_t>();
    v.slots = slots_.as<unsigned char>();
    v.depth = depth;
    std::uint64_t* doorbell = words_.as<std::uint64_t>() + 16;
    if (is_storage_) {
      v.nvme.shadow_tail = nullptr;
      v.nvme.sq_doorbell = reinterpret_cast<std::uint32_t*>(doorbell);
      v.nvme.op_count = dev::op_count_for(depth);
      v.nvme.op_count_log2 = static_cast<std::uint8_t>(__builtin_ctz(v.nvme.op_count));
      op_words_ = gpu::buffer(dev::op_words_bytes(v.nvme.op_count), gpu::place::device);
      v.nvme.op_words = op_words_.as<std::uint64_t>();
    } else {
      v.rdma.depth_log2 = static_cast<std::uint32_t>(__builtin_ctz(depth));
      v.rdma.doorbell = doorbell;
      v.rdma.mlx5.doorbell_record = words_.as<std::uint32_t>();
    }
    wanted_ = v;
    gpu::put_value(view_.as<dev::ring_view>(), v);
    empty();
    target_.ring = view_.as<dev::ring_view>();
  }

  ring_target target() const { return target_; }

  // Throws unless each of the last `ops` entries is in its place, and the last doorbell covers them.
  void check(std::uint32_t ops) const {
    dev::ring_state s;
    gpu::copy(&s, state_.data(), sizeof s);
    std::vector<std::uint32_t> slots(wanted_.depth * std::size_t{16});
    gpu::copy(slots.data(), slots_.data(), slots_.size());
    const auto bell = *(words_.as<volatile std::uint64_t>() + 16);
    const std::uint64_t all =
        is_storage_ ? s.issued & (wanted_.depth - 1) : wire::mlx5::doorbell_value(s.issued, wanted_.id);
    bool good = s.issued - s.completed == ops && s.published == s.issued && bell == all;
    for (std::uint64_t ticket = s.issued - ops; ticket != s.issued; ++ticket) {
      const std::uint32_t* dw = slots.data() + (ticket & (wanted_.depth - 1)) * 16;
      good = good && (is_storage_ ? dw[0] >> 16 == (ticket & (wanted_.nvme.op_count - 1))
                                  : wire::mlx5::get_control(dw).index == (ticket & 0xffff));
    }
    if (!good) fail(XIO_ERR_TRANSPORT, "of {} entries, {} to {}, some are not in the ring", ops, s.completed, s.issued);
  }

  // As if all of it were complete.
  void empty() {
    dev::ring_state s;
    gpu::copy(&s, state_.data(), sizeof s);
    s.completed = s.issued;
    s.credits = wanted_.depth - (is_storage_ ? 1 : 0);
    s.granted = s.issued + static_cast<std::uint64_t>(s.credits);
    gpu::put_value(state_.as<dev::ring_state>(), s);
  }

 private:
  ring_target target_;
  gpu::buffer state_, marks_, slots_, words_, op_words_, view_;
  dev::ring_view wanted_;
  bool is_storage_;
};

}  // namespace xio::bench
