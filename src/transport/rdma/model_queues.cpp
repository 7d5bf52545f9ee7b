// SPDX-License-Identifier: MIT
#include "transport/rdma/model_queues.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::rdma {

namespace {

constexpr std::uint32_t k_slot_bytes = wire::mlx5::k_block_bytes;
// Completion, record and doorbell on lines of their own, behind the slots.
constexpr std::size_t k_line = 128;
constexpr std::size_t k_tail = 3 * k_line;
// Indices on the wire have 16 bits; half of that may be in flight.
constexpr std::uint32_t k_min_depth = 4, k_max_depth = 32768;

std::size_t shared_bytes(std::uint32_t depth) { return (depth * std::size_t{k_slot_bytes} + k_tail + 255) / 256 * 256; }
std::size_t device_bytes(std::uint32_t depth) {
  return (sizeof(dev::ring_state) + depth * sizeof(std::uint32_t) + 127) / 128 * 128;
}

void check(const queue_request& r) {
  if (!std::has_single_bit(r.depth) || r.depth < k_min_depth || r.depth > k_max_depth)
    fail(XIO_ERR_CONFIG,
         "an RDMA ring of {} entries: the depth must be a power of two from {} to {}; set XIO_RING_DEPTH or "
         "ring_depth",
         r.depth, k_min_depth, k_max_depth);
  if (r.ticket_start % r.depth != 0)
    fail(XIO_ERR_CONFIG,
         "tickets of an RDMA ring of {} entries cannot start at {}; XIO_TICKET_START must be a multiple of the "
         "depth",
         r.depth, r.ticket_start);
}

}  // namespace

model_queues::model_queues(std::shared_ptr<running_nic> nic, const std::vector<bool>& wanted,
                           const queue_request& request, std::uint32_t chunk)
    : nic_(std::move(nic)), views_(wanted.size(), dev::ring_view{}) {
  check(request);
  const auto count = static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), true));
  shared_ = gpu::buffer(count * shared_bytes(request.depth), gpu::place::shared);
  device_ = gpu::buffer(count * device_bytes(request.depth), gpu::place::device);
  std::size_t place = 0;
  try {
    for (std::size_t pe = 0; pe < wanted.size(); ++pe)
      if (wanted[pe]) views_[pe] = make(place++, request, chunk);
  } catch (...) {
    take_down();
    throw;
  }
}

model_queues::~model_queues() { take_down(); }

void model_queues::take_down() {
  for (const auto& v : views_)
    if (v.kind != dev::ring_kind::none) (*nic_)->destroy_queue(v.id);
}

std::vector<std::uint32_t> model_queues::numbers() const {
  std::vector<std::uint32_t> out;
  for (const auto& v : views_) out.push_back(v.kind == dev::ring_kind::none ? 0 : v.id);
  return out;
}

dev::ring_view model_queues::make(std::size_t place, const queue_request& request, std::uint32_t chunk) {
  unsigned char* host = shared_.as<unsigned char>() + place * shared_bytes(request.depth);
  unsigned char* tail = host + request.depth * std::size_t{k_slot_bytes};
  unsigned char* words = device_.as<unsigned char>() + place * device_bytes(request.depth);
  dev::ring_view v{};
  v.state = reinterpret_cast<dev::ring_state*>(words);
  v.sequence = reinterpret_cast<std::uint32_t*>(words + sizeof(dev::ring_state));
  v.slots = host;
  v.depth = request.depth;
  v.depth_log2 = static_cast<std::uint32_t>(std::countr_zero(request.depth));
  v.kind = dev::ring_kind::mlx5;
  v.chunk = chunk;
  v.completion = tail;
  v.record = reinterpret_cast<std::uint32_t*>(tail + k_line) + 1;  // [0] is the receive queue's
  v.doorbell = reinterpret_cast<std::uint64_t*>(tail + 2 * k_line);
  v.scratch_lkey = request.scratch_lkey;

  std::memset(v.completion, 0xff, wire::mlx5::k_cqe_dwords * 4);  // opcode 15: nothing yet
  dev::ring_state state{};
  state.issued = state.published = state.completed = request.ticket_start;
  state.credits = request.depth;
  gpu::put_value(v.state, state);
  // A slot's mark says for which lap it is complete: not for the first one.
  const auto before = static_cast<std::uint32_t>(request.ticket_start >> v.depth_log2);
  const std::vector<std::uint32_t> marks(request.depth, before);
  gpu::copy(v.sequence, marks.data(), marks.size() * sizeof(std::uint32_t));

  model::rdma::mlx5_memory m{};
  m.slots = reinterpret_cast<const std::uint32_t*>(v.slots);
  m.depth = v.depth;
  m.record = v.record;
  m.doorbell = v.doorbell;
  m.cqe = reinterpret_cast<std::uint32_t*>(v.completion);
  m.start = request.ticket_start;
  v.id = (*nic_)->create_queue(m);
  return v;
}

}  // namespace xio::rdma
