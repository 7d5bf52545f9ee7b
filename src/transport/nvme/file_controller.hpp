// SPDX-License-Identifier: MIT
// "file:PATH": the model drive over a file, driven like any other drive.
#pragma once
#include "gpu/chore.hpp"
#include "progress/shared_turns.hpp"
#include "transport/nvme/nvme.hpp"
#include "transport/nvme/queue_set.hpp"
#include "transport/software.hpp"

namespace xio::nvme {

class file_controller : public controller, private bus, private gpu::chore {
 public:
  file_controller(const software::devices& devices, const std::string& path, const xio_storage_attr_t& attr,
                  const nvme_options& o, progress::machine& machine, const payload_agent& payload);
  ~file_controller() override;

  void grow() override { software_->grow(); }
  void commit() override { software_->commit(); }
  const char* backend() const override { return backend_.c_str(); }
  dev::storage_view view() const override;
  std::optional<std::uint64_t> extend(std::uint64_t bytes) override { return software_->extend(bytes); }
  dev::ring_view queue_view(std::uint32_t queue) const override { return queues_->queue_view(queue); }
  std::uint32_t queue_count() const override { return queues_->count(); }
  void stop() noexcept override { queues_->stop(); }
  std::shared_ptr<const void> domain() const override { return nullptr; }
  std::uint64_t map(void* base, std::size_t bytes) override;
  void unmap(void* base, std::size_t bytes) override;

  progress::device& device() { return software_->device(); }  // for tests

 private:
  std::uint64_t map_queue(void* base, std::size_t bytes) override;
  void unmap_queue(void* base, std::size_t bytes) override;
  bool work() override { return turns_->help(); }
  void stop_device();

  progress::machine& machine_;
  std::string backend_;
  bool stuck_ = false;  // a job of the file did not end
  gpu::buffer registers_, staging_;
  std::unique_ptr<software_drive> software_;
  std::unique_ptr<progress::shared_turns> turns_;
  std::unique_ptr<drive> drive_;
  std::unique_ptr<queue_set> queues_;
};

}  // namespace xio::nvme
