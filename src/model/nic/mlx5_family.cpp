// SPDX-License-Identifier: MIT
#include "model/nic/families.hpp"
#include "model/nic/mlx5_queue.hpp"
#include "xio/device/impl/mlx5.hpp"

namespace xio::model::rdma {
namespace {

namespace w = wire::mlx5;

// Indices on the wire have 16 bits; half of that may be in flight.
constexpr std::uint32_t k_most_depth = 32768;
constexpr std::uint32_t k_inline_bytes = w::k_inline_in_block, k_gather_bytes = w::k_gather_bytes;

constexpr std::uint32_t k_atomics = dev::nic_masked | dev::nic_native_4;
constexpr std::size_t k_cqe_bytes = w::k_cqe_dwords * 4;

std::size_t completion_bytes(std::uint32_t) { return k_cqe_bytes; }
std::size_t aux_bytes(std::uint32_t) { return 0; }

void set_fields(dev::rdma_ring& r, const queue_parts& parts) { r.mlx5.doorbell_record = parts.doorbell_record; }
// Without a doorbell record.
void set_no_fields(dev::rdma_ring&, const queue_parts&) {}

void prepare(const dev::ring_view&, const queue_image& image, dev::ring_state&, const queue_plan&) {
  std::memset(image.completion, 0xff, completion_bytes(0));  // opcode 15: nothing yet
}

constexpr std::uint32_t k_most_cq_depth = 65536;

std::size_t queue_bytes(std::uint32_t cq_depth) { return cq_depth * k_cqe_bytes; }

void prepare_queue(const dev::ring_view& v, const queue_image& image, dev::ring_state&, const queue_plan&) {
  std::memset(image.completion, 0xff, queue_bytes(v.rdma.cq_depth));
}

std::unique_ptr<proxy::wire_queue> decode(const dev::ring_view& v, const queue_plan& plan, std::uint32_t number) {
  auto m = memory_of<mlx5_memory>(v, plan);
  m.depth = v.depth;
  m.doorbell_record = v.rdma.mlx5.doorbell_record;
  m.doorbell = v.rdma.doorbell;
  m.cqe = reinterpret_cast<std::uint32_t*>(v.rdma.completions);
  m.queued_cq = v.rdma.cq_depth != 0;
  m.cq_depth_log2 = v.rdma.cq_depth_log2;
  return std::make_unique<mlx5_queue>(m, number, plan.max_message);
}

}  // namespace

const family& mlx5_family() {
  static const family row{
      "mlx5", dev::ring_kind::mlx5, w::k_block_bytes, k_most_depth, k_inline_bytes, k_gather_bytes, k_atomics,
      0,      completion_bytes,     aux_bytes,        set_fields,   prepare,        decode};
  return row;
}

const family& mlx5_nodbr_family() {
  static const family row = [] {
    family f = mlx5_family();
    f.name = "mlx5_nodbr";
    f.set_fields = set_no_fields;
    return f;
  }();
  return row;
}

const family& mlx5_cq_family() {
  static const family row = [] {
    family f = mlx5_family();
    f.name = "mlx5_cq";
    f.most_cq_depth = k_most_cq_depth;
    f.completion_bytes = queue_bytes;
    f.prepare = prepare_queue;
    return f;
  }();
  return row;
}

}  // namespace xio::model::rdma
