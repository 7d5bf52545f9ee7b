// SPDX-License-Identifier: MIT
#include "transport/nvme/file_controller.hpp"

#include <bit>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::nvme {
namespace {

std::uint32_t checked_mdts(std::uint32_t block_bytes, const nvme_options& o) {
  // Identify says log2 of pages, and 0 there means no limit: one page cannot be said.
  if (!std::has_single_bit(o.nvme_mdts) || o.nvme_mdts < 8192 || o.nvme_mdts > k_most_transfer)
    fail(XIO_ERR_CONFIG, "XIO_NVME_MDTS={} is not a power of two from 8k to 8M; set it to one", o.nvme_mdts);
  if (o.nvme_mdts < block_bytes)
    fail(XIO_ERR_CONFIG, "XIO_NVME_MDTS={} is less than a block of {} bytes; raise it", o.nvme_mdts, block_bytes);
  return static_cast<std::uint32_t>(o.nvme_mdts);
}

drive_shape checked_shape(const xio_storage_attr_t& attr, const nvme_options& o) {
  checked_depth(attr, o);
  return {checked_mdts(attr.block_bytes, o), checked_last_queue(attr, o), o.storage_files_by, o.storage_files_library};
}

}  // namespace

file_controller::file_controller(const software::devices& devices, const std::string& path,
                                 const xio_storage_attr_t& attr, const nvme_options& o, progress::machine& machine,
                                 const payload_agent& payload)
    : machine_(machine),
      // The arguments are checked before the file is touched, because the file may have to be made.
      software_(devices.open_drive(path, attr, checked_shape(attr, o), o.model_faults)) {
  registers_ = gpu::buffer(software_->register_bytes(), gpu::place::shared, 4096);
  if (!payload.direct) staging_ = gpu::buffer(software_->staging_bytes(), gpu::place::shared, 4096);
  software_->start(registers_.data(), payload, {staging_.as<std::byte>(), staging_.size()});
  backend_ = std::string("model ") + software_->io_engine();
  turns_ = std::make_unique<progress::shared_turns>(software_->device());
  machine_.add(turns_.get());
  gpu::add_chore(*this);
  try {
    const std::string name = "file:" + path;
    drive_ = std::make_unique<drive>(name, registers_.data(), static_cast<bus&>(*this),
                                     std::chrono::milliseconds(o.timeout_ms));
    const auto can = memory::of_software_device();
    const auto where = memory::place_rings(o.memory_mode, "an NVMe controller", can, can,
                                           {gpu::place::shared, "its doorbells are registers of the controller"});
    const doorbell_reach reach{registers_.data(), 0, registers_.data(), true};
    queues_ = std::make_unique<queue_set>(*drive_, attr, o, machine_, reach, where);
    backend_ += std::string(", doorbells ") + name_of(queues_->way());
    log::debug("{}: {} queues of {} entries, {} blocks of {} bytes, {}", name, queues_->count(), queues_->depth(),
               drive_->facts().blocks, drive_->facts().block_bytes, backend_);
  } catch (...) {
    queues_.reset();
    drive_.reset();
    stop_device();
    throw;
  }
}

file_controller::~file_controller() {
  queues_.reset();
  drive_.reset();
  stop_device();
}

void file_controller::stop_device() {
  gpu::remove_chore(*this);
  machine_.remove(turns_.get());
}

dev::storage_view file_controller::view() const {
  dev::storage_view v = queues_->view();
  v.bytes = software_->bytes();
  v.features |= dev::storage_of_bytes;
  return v;
}

std::uint64_t file_controller::map(void* base, std::size_t bytes) {
  using memory = software_drive::memory;
  return software_->map(base, bytes, gpu::in_device_memory(base) ? memory::payload : memory::in_host_memory);
}
void file_controller::unmap(void* base, std::size_t) {
  // One job that does not end is enough to wait for.
  if (stuck_) {
    software_->unmap(base);
  } else if (!software_->take_away(base)) {
    stuck_ = true;
    log::warn("{}: the file is busy with memory at {}, which may still be read or written", backend_, base);
  }
}

std::uint64_t file_controller::map_queue(void* base, std::size_t bytes) {
  return software_->map(base, bytes, software_drive::memory::queues);
}
void file_controller::unmap_queue(void* base, std::size_t) { software_->unmap(base); }

}  // namespace xio::nvme
