// SPDX-License-Identifier: MIT
#include "transport/nvme/file_controller.hpp"

#include <bit>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::nvme {
namespace {

std::uint32_t checked_depth(const xio_storage_attr_t& attr, const options& o) {
  const std::uint64_t depth = attr.depth != 0 ? attr.depth : o.nvme_depth;
  if (depth < 4 || depth > 4096 || !std::has_single_bit(depth))
    fail(XIO_ERR_ARG, "an NVMe queue of {} entries cannot be; use a power of two from 4 to 4096", depth);
  return static_cast<std::uint32_t>(depth);
}

std::uint32_t checked_queues(const xio_storage_attr_t& attr) {
  if (attr.queues > dev::k_max_storage_queues)
    fail(XIO_ERR_ARG, "{} queues were asked for; a storage has at most {}", attr.queues, dev::k_max_storage_queues);
  return attr.queues == 0 ? 1 : attr.queues;
}

std::uint32_t checked_mdts(std::uint32_t block_bytes, const options& o) {
  // Identify says log2 of pages, and 0 there means no limit: one page cannot be said.
  if (!std::has_single_bit(o.nvme_mdts) || o.nvme_mdts < 8192 || o.nvme_mdts > (2u << 20))
    fail(XIO_ERR_CONFIG, "XIO_NVME_MDTS={} is not a power of two from 8k to 2M; set it to one", o.nvme_mdts);
  if (o.nvme_mdts < block_bytes)
    fail(XIO_ERR_CONFIG, "XIO_NVME_MDTS={} is less than a block of {} bytes; raise it", o.nvme_mdts, block_bytes);
  return static_cast<std::uint32_t>(o.nvme_mdts);
}

}  // namespace

file_controller::file_controller(const std::string& path, const xio_storage_attr_t& attr, const options& o,
                                 model::machine& machine, const payload_agent& payload)
    : machine_(machine),
      // Everything that can be wrong with the arguments comes before the file: TRUNCATE empties it.
      depth_(checked_depth(attr, o)),
      shape_{checked_mdts(attr.block_bytes, o), 32768, checked_queues(attr), 0, false},
      file_(path, attr) {
  registers_ = gpu::buffer(model::nvme::controller::bar_bytes(shape_), gpu::place::shared, 4096);
  device_ = std::make_unique<model::nvme::controller>(registers_.data(), shape_, file_, payload);
  backend_ = std::string("model ") + device_->io_engine();
  machine_.add(device_.get());
  try {
    const std::string name = "file:" + path;
    drive_ = std::make_unique<drive>(name, registers_.data(), static_cast<bus&>(*this),
                                     std::chrono::milliseconds(o.timeout_ms));
    const auto can = memory::of_software_device();
    const auto where = memory::place_rings(o.memory_mode, "an NVMe controller", can, can,
                                           {gpu::place::shared, "its doorbells are registers of the controller"});
    const std::uint32_t wanted = shape_.max_queues;
    const std::uint32_t queues = drive_->request_queues(wanted);
    for (std::uint32_t qid = 1; qid <= queues; ++qid)
      queues_.push_back(std::make_unique<io_queue>(*drive_, qid, depth_, o.ticket_start, where));
    log::debug("{}: {} queues of {} entries, {} blocks of {} bytes, {}", name, queues, depth_, drive_->facts().blocks,
               drive_->facts().block_bytes, backend_);
  } catch (...) {
    queues_.clear();
    drive_.reset();
    machine_.remove(device_.get());
    throw;
  }
}

file_controller::~file_controller() {
  queues_.clear();
  drive_.reset();
  machine_.remove(device_.get());
  // Ends what is with the file before the file closes.
  device_.reset();
}

dev::storage_view file_controller::view() const {
  const drive_facts& f = drive_->facts();
  dev::storage_view v{};
  v.queue_count = queue_count();
  v.nsid = f.nsid;
  v.bytes = f.blocks * f.block_bytes;
  v.block_bytes = f.block_bytes;
  v.block_log2 = static_cast<std::uint32_t>(std::countr_zero(f.block_bytes));
  v.transfer_bytes = f.transfer_bytes;
  v.page_bytes = f.page_bytes;
  v.live = 1;
  v.read_only = f.read_only ? 1 : 0;
  return v;
}

dev::ring_view file_controller::queue_view(std::uint32_t queue) const { return queues_.at(queue)->view(); }

std::uint64_t file_controller::map(void* base, std::size_t bytes) {
  return device_->dma().add(base, bytes, model::nvme::dma_map::memory::payload);
}
void file_controller::unmap(void* base) { device_->dma().remove(base); }

std::uint64_t file_controller::map_queue(void* base, std::size_t bytes) {
  return device_->dma().add(base, bytes, model::nvme::dma_map::memory::host);
}
void file_controller::unmap_queue(void* base) { device_->dma().remove(base); }

}  // namespace xio::nvme
