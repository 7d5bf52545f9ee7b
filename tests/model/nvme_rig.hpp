// SPDX-License-Identifier: MIT
// A world of one PE with a heap and one opened file, without src/ctx: what the storage API needs and nothing else.
// Host threads and kernels of the host platform may call the device API with it.
#pragma once
#include "../unit/refusal.hpp"
#include "ctx/ctx_value.hpp"
#include "model/nvme/controller.hpp"
#include "scratch_file.hpp"
#include "transport/nvme/file_controller.hpp"
#include "xio/device/storage.hpp"

namespace xio::test {

inline constexpr std::uint64_t k_file = 4 << 20;

struct stamped_file : scratch_file {
  explicit stamped_file(std::uint64_t bytes = k_file) { write(stamped_data(bytes)); }
};

class rig {
 public:
  struct how {
    std::uint32_t depth = 16, queues = 1, flags = 0, block = 0;
    std::uint64_t bytes = 0;
    std::uint64_t mdts = 1 << 20;
    std::uint64_t ticket_start = 0, timeout_ms = 20000;
    std::uint64_t heap_bytes = 8 << 20;
    std::uint64_t sgl = 1;  // 0: data are named by PRPs
    option::storage_files_by by = option::storage_files_by::automatic;
    std::string library = {};
    option::storage_files_by gpus = option::storage_files_by::automatic;  // what the GPU's own library is
  };

  rig(const std::string& path, const how& h) : payload_(gpu::payload()), heap_(h.heap_bytes, gpu::place::shared, 4096) {
    options o = options::defaults();
    o.nvme_mdts = h.mdts;
    o.ticket_start = h.ticket_start;
    o.nvme_sgl = h.sgl;
    o.storage_files_by = h.by;
    o.storage_files_library = h.library;
    payload_.files_by = h.gpus;
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.flags = h.flags;
    attr.queues = h.queues;
    attr.depth = h.depth;
    attr.block_bytes = h.block;
    attr.bytes = h.bytes;
    drive_ = std::make_unique<nvme::file_controller>(*software::built_in(), path, attr, o, machine_, payload_);
    drive_->commit();
    world_->n_pes = 1;
    world_->heap = heap_.as<unsigned char>();
    world_->heap_bytes = heap_.size();
    world_->ticks_per_ms = gpu::ticks_per_ms();
    world_->timeout_ticks = h.timeout_ms * world_->ticks_per_ms;
    const std::uint64_t bus = drive_->map(heap_.data(), heap_.size());
    world_->regions[0] = {reinterpret_cast<std::uint64_t>(heap_.data()), heap_.size(), {bus, 0}, {}, 1, 0, 0, {}, {}};
    for (std::uint32_t q = 0; q < drive_->queue_count(); ++q) {
      rings_.push_back(drive_->queue_view(q));
      rings_.back().index = dev::k_storage_ring_base + q;
    }
    dev::storage_view& s = world_->storages[0];
    s = drive_->view();
    s.queues = rings_.data();
    ctx_->world = world_.get();
  }
  ~rig() { close(); }
  rig& operator=(rig&&) = delete;

  void close() {
    world_->storages[0].live = 0;
    if (drive_ != nullptr) drive_->unmap(heap_.data(), heap_.size());
    drive_.reset();
  }
  unsigned char* heap() const { return heap_.as<unsigned char>(); }
  xio_ctx_t ctx() { return ctx_value(ctx_.get(), 1, *ctx_, *world_, &alone_); }
  xio_storage_t storage() { return {&world_->storages[0], 1}; }
  dev::world_view& world() { return *world_; }
  // As drives are, and not files.
  void blocks_only() { world_->storages[0].features &= ~std::uint32_t{dev::storage_of_bytes}; }
  dev::ctx_view& view() { return *ctx_; }
  const dev::ring_view& ring(std::uint32_t q = 0) const { return rings_[q]; }
  model::nvme::controller& device() { return dynamic_cast<model::nvme::controller&>(drive_->device()); }
  nvme::file_controller& drive() { return *drive_; }
  progress::machine& machine() { return machine_; }

  xio_status_t wait(xio_req_t request) {
    if (request == 0) return XIO_OK;
    if (dev::is_failed_request(request)) return dev::failed_request_status(request);
    return dev::storage_wait(*dev::request_ring(*ctx_, request), *world_, request);
  }
  xio_status_t test(xio_req_t request) { return dev::storage_test(*dev::request_ring(*ctx_, request), request); }
  xio_status_t quiet() { return dev::storage_quiet(*ctx_); }

 private:
  payload_agent payload_;
  const dev::peer_view alone_{};  // no route but storage
  gpu::buffer heap_;
  progress::machine machine_{1};
  std::unique_ptr<nvme::file_controller> drive_;
  std::unique_ptr<dev::world_view> world_ = std::make_unique<dev::world_view>();
  std::unique_ptr<dev::ctx_view> ctx_ = std::make_unique<dev::ctx_view>();
  std::vector<dev::ring_view> rings_;
};

// The same over a file of its own.
struct stamped_rig : private stamped_file, public rig {
  explicit stamped_rig(const how& h = {}) : rig(stamped_file::path, h) {}
};

}  // namespace xio::test

// Runs a kernel to its end.
#define RUN(kernel, blocks, threads, ...)                                             \
  do {                                                                                \
    hipLaunchKernelGGL(kernel, dim3(blocks), dim3(threads), 0, nullptr, __VA_ARGS__); \
    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);                                    \
  } while (0)
