// SPDX-License-Identifier: MIT
// The I/O queues of a drive, the same for every kind of controller: how many, how deep, where, rung how.
#pragma once
#include "transport/nvme/doorbells.hpp"

namespace xio::nvme {

// Of a storage's attributes and options; throw one sentence. Before anything of the drive is touched.
std::uint32_t checked_depth(const xio_storage_attr_t& attr, const nvme_options& o);
std::uint32_t checked_queues(const xio_storage_attr_t& attr);
// Identifier of the last queue, of as many as were asked for: that count, or nvme_options::nvme_queue_id.
std::uint32_t checked_last_queue(const xio_storage_attr_t& attr, const nvme_options& o);

std::uint32_t depth_that_fits(std::uint32_t depth, const queue_maker& d);
// A namespace as kernels see it, for controller::view.
dev::storage_view shape_of(const drive_facts& f, std::uint32_t queues);

class queue_set {
 public:
  // depth must fit the drive (facts().max_entries), or this throws, and so must nvme_options::nvme_queue_id. Fewer
  // queues than asked for where the drive has no more.
  queue_set(drive& d, const xio_storage_attr_t& attr, const nvme_options& o, progress::machine& m,
            const doorbell_reach& can, const memory::ring_places& where);

  std::uint32_t count() const { return static_cast<std::uint32_t>(queues_.size()); }
  std::uint32_t depth() const { return depth_; }
  doorbell_way way() const { return doorbells_.way(); }
  // As controller::view and queue_view.
  dev::storage_view view() const;
  dev::ring_view queue_view(std::uint32_t queue) const;
  // As io_queue's, of every queue.
  void fail(xio_status_t status, std::uint32_t vendor) const;
  void stop() noexcept;  // the rings fail with XIO_ERR_STATE

 private:
  void try_registers(const nvme_options& o);

  drive& drive_;
  std::uint32_t depth_;
  std::uint32_t last_;  // identifier of the last queue
  doorbells doorbells_;
  std::vector<std::unique_ptr<io_queue>> queues_;
};

}  // namespace xio::nvme
