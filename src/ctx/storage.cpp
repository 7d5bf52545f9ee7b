// SPDX-License-Identifier: MIT
#include "ctx/storage.hpp"

#include "base/backends.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "xio/device/request.hpp"

namespace xio {

storage::storage(engines& e, const options& o, const std::string& name, const xio_storage_attr_t& attr,
                 dev::storage_view* row, std::uint32_t slot)
    : engines_(e), name_(name), row_(row) {
  controller_ = nvme::open(name, attr, o, e.machine(), gpu::payload());
  view_ = controller_->view();
  view_.queue_count = controller_->queue_count();
  view_.slot = slot;
  view_.live = 1;
  if (view_.queue_count == 0 || view_.queue_count > dev::k_max_storage_queues)
    fail(XIO_ERR_INTERNAL, "{} came with {} queues; this is a bug of XIO", name, view_.queue_count);
  for (std::uint32_t q = 0; q < view_.queue_count; ++q) {
    dev::ring_view ring = controller_->queue_view(q);
    ring.index = dev::k_storage_ring_base + slot * dev::k_max_storage_queues + q;
    rings_.push_back(ring);
  }
  ring_rows_ = gpu::buffer(rings_.size() * sizeof(dev::ring_view), gpu::place::device);
  gpu::copy(ring_rows_.data(), rings_.data(), rings_.size() * sizeof(dev::ring_view));
  view_.queues = ring_rows_.as<dev::ring_view>();
  e.attach(*controller_);
  try {
    gpu::put_value(row_, view_);
  } catch (...) {
    e.detach(*controller_);
    throw;
  }
  note_backend("storage " + name, controller_->backend());
}

storage::~storage() {
  try {
    gpu::put_value(&row_->live, std::uint32_t{0});
  } catch (const std::exception& e) {
    log::debug("while closing {}: {}", name_, e.what());
  }
  engines_.detach(*controller_);
}

}  // namespace xio
