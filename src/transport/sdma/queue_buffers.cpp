// SPDX-License-Identifier: MIT
#include "transport/sdma/queue_buffers.hpp"

#include <bit>

#include "base/error.hpp"
#include "xio/device/impl/sdma.hpp"

namespace xio::sdma {
namespace {

// Lines of words_.
constexpr std::size_t k_line = 128;
constexpr std::size_t k_wptr_line = 0;
constexpr std::size_t k_doorbell_line = 1;
constexpr std::size_t k_lines = 2;

// ROCR pads what it submits to 256 bytes on these (amd_blit_sdma.cpp).
std::uint32_t least_slots_of(std::uint32_t generation) { return generation == wire::sdma::gen_9_0 ? 4 : 1; }

void check(std::uint32_t depth, std::uint64_t ticket_start, std::uint32_t generation) {
  const std::uint32_t least = 4 * least_slots_of(generation);
  if (depth < least || !std::has_single_bit(depth)) {
    fail(XIO_ERR_CONFIG, "SDMA ring of {} entries: the depth must be a power of two of {} and more; see XIO_RING_DEPTH",
         depth, least);
  }
  if (ticket_start % depth != 0) {
    fail(XIO_ERR_CONFIG, "SDMA ring of {} entries: first ticket {} is no multiple of the depth; see XIO_TICKET_START",
         depth, ticket_start);
  }
}

}  // namespace

queue_buffers::queue_buffers(const queue_request& request, const queue_style& style, const queue_parts& made)
    : ticket_start_(request.ticket_start) {
  check(request.depth, request.ticket_start, style.generation);
  view_.depth = request.depth;
  view_.kind = dev::ring_kind::sdma;
  view_.chunk = style.chunk;
  view_.sdma.granule = style.granule;
  view_.sdma.generation = style.generation;
  view_.alone = request.alone ? 1 : 0;
  view_.sdma.least_slots = static_cast<std::uint16_t>(least_slots_of(style.generation));
  if (made.ring != nullptr) {
    view_.slots = made.ring;
    view_.sdma.write_pointer = reinterpret_cast<std::uint64_t*>(made.wptr);
    view_.sdma.doorbell = made.doorbell;
  } else {
    make_parts(style);
  }
  make_completion(style);
  make_state();
}

// Ring, write pointer and doorbell of a software engine.
void queue_buffers::make_parts(const queue_style& style) {
  ring_ = gpu::buffer(ring_bytes(), style.where.submission, 256, gpu::purpose::rings);
  words_ = gpu::buffer(k_lines * k_line, style.where.doorbell, 256, gpu::purpose::rings);
  auto* words = words_.as<unsigned char>();
  view_.slots = ring_.as<unsigned char>();
  view_.sdma.write_pointer = reinterpret_cast<std::uint64_t*>(words + k_wptr_line * k_line);
  view_.sdma.doorbell = reinterpret_cast<std::uint64_t*>(words + k_doorbell_line * k_line);
  gpu::put_value(view_.sdma.write_pointer, start_bytes());
  gpu::put_value(view_.sdma.doorbell, start_bytes());
}

void queue_buffers::make_completion(const queue_style& style) {
  fence_ = gpu::buffer(sizeof(dev::sdma_completion), style.where.completion, 256, gpu::purpose::completions);
  view_.sdma.completion = fence_.as<dev::sdma_completion>();
  gpu::put_value(fence_.as<dev::sdma_completion>(),
                 dev::sdma_completion{static_cast<std::uint32_t>(ticket_start_), 0, 0, 0});
}

void queue_buffers::make_state() {
  state_ = gpu::buffer(sizeof(dev::ring_state), gpu::place::device);
  marks_ = gpu::buffer(view_.depth * sizeof(std::uint64_t), gpu::place::device);
  view_.state = state_.as<dev::ring_state>();
  view_.marks = marks_.as<std::uint64_t>();
  dev::ring_state state{};
  state.issued = state.published = state.completed = ticket_start_;
  state.credits = view_.depth;
  gpu::put_value(view_.state, state);
}

std::uint64_t queue_buffers::ring_bytes() const { return std::uint64_t{view_.depth} * dev::k_sdma_slot_bytes; }
std::uint64_t queue_buffers::start_bytes() const { return ticket_start_ * dev::k_sdma_slot_bytes; }

}  // namespace xio::sdma
