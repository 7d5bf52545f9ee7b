// SPDX-License-Identifier: MIT
#include "transport/nvme/io_queue.hpp"

#include <algorithm>
#include <bit>
#include <thread>

#include "base/error.hpp"
#include "base/run_clock.hpp"
#include "xio/device/impl/nvme.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

std::size_t list_bytes(const queue_maker& d, std::uint32_t op_count) {
  return op_count * dev::prp_room(d.facts().transfer_bytes, d.facts().page_bytes);
}

// Twice the SQ, so that the lag of the CQ doorbell is never felt; less where the drive has no such queues.
std::uint32_t cq_entries(const queue_maker& d, std::uint32_t depth) {
  return std::min(2 * depth, std::bit_floor(d.facts().max_entries));
}

}  // namespace

io_queue::io_queue(queue_maker& d, std::uint32_t qid, std::uint32_t depth, std::uint64_t ticket_start, bool sgls,
                   const memory::ring_places& where)
    : drive_(d),
      qid_(qid),
      depth_(depth),
      cq_depth_(cq_entries(d, depth)),
      op_count_(dev::op_count_for(depth)),
      sq_(d.memory_bus(), depth * sizeof(w::sqe), where.submission),
      cq_(d.memory_bus(), cq_depth_ * sizeof(w::cqe), where.completion),
      state_(sizeof(dev::ring_state), gpu::place::device),
      marks_(depth * sizeof(std::uint64_t), gpu::place::device),
      op_words_(dev::op_words_bytes(op_count_), gpu::place::device) {
  if (!sgls) lists_.emplace(d.memory_bus(), list_bytes(d, op_count_), where.submission);
  start_at(ticket_start & ~std::uint64_t{2 * cq_depth_ - 1});
  qid_ = drive_.create_queues(qid, sq_.address(), depth, cq_.address(), cq_depth_);
}

io_queue::~io_queue() { stop(); }

void io_queue::stop() noexcept {
  if (!stopped_) drive_.delete_queues(qid_);
  stopped_ = true;
}

std::uint64_t io_queue::issued() const {
  std::uint64_t ticket = 0;
  gpu::copy(&ticket, &state_.as<dev::ring_state>()->issued, sizeof ticket);
  return ticket;
}

std::uint64_t io_queue::completed() const {
  std::uint64_t ticket = 0;
  gpu::copy(&ticket, &state_.as<dev::ring_state>()->completed, sizeof ticket);
  return ticket & ~(dev::k_reaping | dev::k_even);
}

void io_queue::fail(xio_status_t status, std::uint32_t vendor) const {
  auto* state = state_.as<dev::ring_state>();
  std::uint32_t failed = 0;
  gpu::copy(&failed, &state->failed, sizeof failed);
  if (failed != 0) return;
  gpu::put_value(&state->failed_ticket, completed());
  gpu::put_value(&state->vendor, vendor);
  gpu::put_value(&state->failed, static_cast<std::uint32_t>(status));
}

// As if a kernel had posted it and had taken its completion off the queue.
std::uint32_t io_queue::run_first(const w::sqe& command, const doorbell_words& to, std::chrono::milliseconds limit) {
  __atomic_store_n(to.sq, post_first(command), __ATOMIC_RELEASE);
  const auto end = run_clock::now() + limit;
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    if (const auto status = take_first(to.cq)) return *status;
    if (run_clock::now() > end)
      xio::fail(XIO_ERR_TIMEOUT, "{} has not completed a command within {} ms; reset it", drive_.name(), limit.count());
  }
}

std::uint32_t io_queue::post_first(w::sqe command) {
  const std::uint64_t ticket = issued();
  const auto slot = static_cast<std::uint32_t>(ticket & (depth_ - 1));
  command.dw[0] = (command.dw[0] & 0xffff) | static_cast<std::uint32_t>(ticket & (op_count_ - 1)) << 16;
  gpu::copy(sq_.as<w::sqe>() + slot, &command, sizeof command);
  return (slot + 1) & (depth_ - 1);
}

std::optional<std::uint32_t> io_queue::take_first(std::uint32_t* cq_doorbell) {
  const std::uint64_t ticket = issued();
  const auto cid = static_cast<std::uint32_t>(ticket & (op_count_ - 1));
  std::uint32_t dw3 = 0;
  gpu::copy(&dw3, &cq_.as<w::cqe>()[head()].dw[3], sizeof dw3);
  if (w::cqe_phase(dw3) != ((ticket & cq_depth_) == 0 ? 1u : 0u)) return std::nullopt;
  if (w::cqe_cid(dw3) != cid)
    xio::fail(XIO_ERR_IO, "{} completed command {} when {} was posted; reset it", drive_.name(), w::cqe_cid(dw3), cid);
  start_at(ticket + 1);
  __atomic_store_n(cq_doorbell, head(), __ATOMIC_RELEASE);
  return w::status_code(w::cqe_status(dw3));
}

// Where the entries before are taken off the CQ, whose phase is 1 in an even lap of a zeroed one.
void io_queue::start_at(std::uint64_t ticket) {
  dev::ring_state s{};
  s.issued = s.published = s.completed = s.first = ticket;
  s.credits = depth_ - 1;
  s.granted = ticket + depth_ - 1;
  s.cq_head = s.cq_announced = ticket;
  gpu::put_value(state_.as<dev::ring_state>(), s);
}

dev::ring_view io_queue::view() const {
  dev::ring_view v{};
  v.state = state_.as<dev::ring_state>();
  v.marks = marks_.as<std::uint64_t>();
  v.slots = sq_.seen_as<unsigned char>();
  v.depth = depth_;
  v.kind = dev::ring_kind::nvme;
  v.id = qid_;
  v.nvme.name_space = drive_.facts().nsid;
  v.chunk = drive_.facts().transfer_bytes;
  v.nvme.completions = cq_.seen_as<unsigned char>();
  v.nvme.cq_depth = cq_depth_;
  v.nvme.cq_depth_log2 = static_cast<std::uint8_t>(std::countr_zero(cq_depth_));
  v.nvme.op_words = op_words_.as<std::uint64_t>();
  v.nvme.op_count = op_count_;
  v.nvme.op_count_log2 = static_cast<std::uint8_t>(std::countr_zero(op_count_));
  if (lists_) {
    v.nvme.list_pages = lists_->seen_as<unsigned char>();
    v.nvme.list_pages_bus = lists_->address();
  }
  return v;
}

}  // namespace xio::nvme
