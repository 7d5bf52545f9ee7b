// SPDX-License-Identifier: MIT
// "nvme:BDF/NSID": a real drive behind an IOMMU, taken from the kernel by vfio.
#pragma once
#include "gpu/polled_device.hpp"
#include "transport/nvme/drive.hpp"
#include "transport/nvme/drive_watch.hpp"
#include "transport/nvme/nvme.hpp"
#include "transport/nvme/queue_set.hpp"
#include "transport/nvme/vfio_device.hpp"
#include "transport/nvme/vfio_function.hpp"
#include "transport/nvme/vfio_lender.hpp"

namespace xio::nvme {

// Of a controller that runs, "" or what happened to it. NVMe base 2.0, 3.1.3.6; a function that is gone reads as ones.
std::string trouble_of(std::uint32_t csts);

class vfio_controller : public controller, private bus {
 public:
  vfio_controller(const std::string& name, const xio_storage_attr_t& attr, const nvme_options& o,
                  progress::machine& machine);
  ~vfio_controller() override;

  const char* backend() const override { return backend_.c_str(); }
  dev::storage_view view() const override;
  dev::ring_view queue_view(std::uint32_t queue) const override { return queues_->queue_view(queue); }
  std::uint32_t queue_count() const override { return queues_->count(); }
  void stop() noexcept override;
  std::shared_ptr<const void> domain() const override;
  std::uint64_t map(void* base, std::size_t bytes) override { return device_->space().map(base, bytes); }
  void unmap(void* base, std::size_t bytes) override { device_->space().unmap(base, bytes); }

 private:
  std::uint64_t map_queue(void* base, std::size_t bytes) override { return device_->space().map(base, bytes); }
  void unmap_queue(void* base, std::size_t bytes) override { device_->space().unmap(base, bytes); }
  void cut_off() override { device_->cut_off(); }
  void* lend(std::size_t bytes, gpu::place) override { return lender_ == nullptr ? nullptr : lender_->lend(bytes); }
  void take_back(void* base) override { lender_->take_back(base); }

  doorbell_reach show_doorbells(std::uint32_t queues);
  std::string trouble();
  void lose(const std::string& what);
  void close() noexcept;

  std::string name_;
  vfio_name place_;
  std::string backend_;
  bool read_only_;
  std::unique_ptr<vfio_lender> lender_;
  std::unique_ptr<vfio_device> device_;
  std::unique_ptr<drive> drive_;
  bool cut_off_ = false;         // by the watch; looked at when that has ended
  void* kernel_page_ = nullptr;  // the doorbells as kernels store to them
  std::unique_ptr<queue_set> queues_;
  gpu::polled_device polled_;
  std::uint32_t csts_ = 0;  // the watch's alone: as it was last
  std::unique_ptr<drive_watch> watch_;
};

}  // namespace xio::nvme
