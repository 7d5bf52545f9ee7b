// SPDX-License-Identifier: MIT
#include "transport/nvme/queue_set.hpp"

#include <bit>

#include "base/error.hpp"
#include "base/log.hpp"
#include "transport/nvme/doorbell_trial.hpp"

namespace xio::nvme {
namespace {

// Identifiers count from 1 to as many queues as the drive gives, so the one asked for is there or it is not.
std::uint32_t granted(std::uint32_t last, const nvme_options& o, drive& d) {
  const std::uint32_t there = d.request_queues(last);
  if (o.nvme_queue_id != 0 && there < last)
    fail(XIO_ERR_ARG, "{} has no I/O queue {}: it gives {}; set XIO_NVME_QUEUE_ID to that or less, or to 0", d.name(),
         last, there);
  return there;
}

}  // namespace

dev::storage_view shape_of(const drive_facts& f, std::uint32_t queues) {
  dev::storage_view v{};
  v.queue_count = v.member_queues = queues;
  v.members = 1;
  v.bytes = f.blocks * f.block_bytes;
  v.block_bytes = f.block_bytes;
  v.block_log2 = static_cast<std::uint32_t>(std::countr_zero(f.block_bytes));
  v.transfer_bytes = f.transfer_bytes;
  v.page_bytes = f.page_bytes;
  v.live = 1;
  v.read_only = f.read_only ? 1 : 0;
  v.features = (f.compares ? dev::storage_compares : 0u) | (f.zeroes ? dev::storage_zeroes : 0u);
  v.stripe_log2 = 63;  // one stripe
  return v;
}

std::uint32_t depth_that_fits(std::uint32_t depth, const queue_maker& d) {
  if (depth > d.facts().max_entries)
    fail(XIO_ERR_ARG, "{} has queues of at most {} entries (CAP.MQES), {} were asked for; set a smaller depth",
         d.name(), d.facts().max_entries, depth);
  return depth;
}

std::uint32_t checked_depth(const xio_storage_attr_t& attr, const nvme_options& o) {
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

std::uint32_t checked_last_queue(const xio_storage_attr_t& attr, const nvme_options& o) {
  const std::uint32_t queues = checked_queues(attr);
  if (o.nvme_queue_id == 0) return queues;
  if (o.nvme_queue_id < queues)
    fail(XIO_ERR_ARG,
         "{} queues cannot end at identifier {}, for they count from 1; set XIO_NVME_QUEUE_ID to {} or more", queues,
         o.nvme_queue_id, queues);
  return static_cast<std::uint32_t>(o.nvme_queue_id);
}

queue_set::queue_set(drive& d, const xio_storage_attr_t& attr, const nvme_options& o, progress::machine& m,
                     const doorbell_reach& can, const memory::ring_places& where)
    : drive_(d),
      depth_(depth_that_fits(checked_depth(attr, o), d)),
      last_(granted(checked_last_queue(attr, o), o, d)),
      doorbells_(d, o, m, can, last_) {
  const bool sgls = d.facts().sgls && o.nvme_sgl != 0;
  const std::uint32_t before = o.nvme_queue_id == 0 ? 0 : last_ - checked_queues(attr);
  for (std::uint32_t qid = before + 1; qid <= last_; ++qid) {
    doorbells_.prepare(qid);
    queues_.push_back(std::make_unique<io_queue>(drive_, qid, depth_, o.ticket_start, sgls, where));
  }
  if (way() == doorbell_way::bar && !can.software) try_registers(o);
}

void queue_set::try_registers(const nvme_options& o) {
  std::vector<tried_queue> all;
  for (const auto& q : queues_) {
    const dev::ring_view v = queue_view(static_cast<std::uint32_t>(all.size()));
    all.push_back({q.get(), v.nvme.sq_doorbell, {drive_.sq_doorbell(q->id()), drive_.cq_doorbell(q->id())}});
  }
  if (!kernels_ring(drive_, all, o)) doorbells_.leave_registers(queues_);
}

dev::storage_view queue_set::view() const { return shape_of(drive_.facts(), count()); }

void queue_set::fail(xio_status_t status, std::uint32_t vendor) const {
  for (const auto& q : queues_) q->fail(status, vendor);
}

void queue_set::stop() noexcept {
  try {
    fail(XIO_ERR_STATE, 0);
  } catch (const std::exception& e) {
    log::debug("while closing {}: {}", drive_.name(), e.what());
  }
  for (const auto& q : queues_) q->stop();
}

dev::ring_view queue_set::queue_view(std::uint32_t queue) const {
  dev::ring_view v = queues_.at(queue)->view();
  doorbells_.show(v.id, v);
  return v;
}

}  // namespace xio::nvme
