// SPDX-License-Identifier: MIT
#include "transport/rdma/nic_queues.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

namespace xio::rdma {

namespace {

// Words with different writers lie on different cache lines.
constexpr std::size_t k_line = 128;
// PSNs begin near the end of their 24 bits, so that every queue pair sees them wrap.
constexpr std::uint32_t k_first_psn = 0xfffff0;

std::size_t whole_lines(std::size_t bytes) { return (bytes + k_line - 1) / k_line * k_line; }

std::size_t whole_blocks(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Bytes of the parts of one queue pair's memory, and where the side table begins among the slots.
struct layout {
  std::size_t aux, slots, completion;
  layout(const family& f, std::uint32_t depth, std::uint32_t cq_depth) {
    aux = whole_lines(depth * std::size_t{f.slot_bytes});
    slots = whole_blocks(aux + f.aux_bytes(depth));
    completion = whole_blocks(f.completion_bytes(cq_depth));
  }
};

// Lines of the words: doorbell record, doorbell, CQ doorbell.
constexpr std::size_t k_word_lines = 3;

std::size_t device_bytes(std::uint32_t depth) {
  return whole_lines(sizeof(dev::ring_state) + depth * sizeof(std::uint64_t));
}

void check(const queue_request& r, const family& f) {
  if (!std::has_single_bit(r.depth) || r.depth < proxy::k_least_depth || r.depth > f.most_depth)
    fail(XIO_ERR_CONFIG,
         "an RDMA ring of {} entries: the depth of a {} queue must be a power of two from {} to {}; set "
         "XIO_RING_DEPTH or ring_depth",
         r.depth, f.name, proxy::k_least_depth, f.most_depth);
  if (r.ticket_start % r.depth != 0)
    fail(XIO_ERR_CONFIG,
         "tickets of an RDMA ring of {} entries cannot start at {}; XIO_TICKET_START must be a multiple of the "
         "depth",
         r.depth, r.ticket_start);
}

using proxy::ring_memory;

// Returns the agent that copies to and from memory which host threads cannot reach; null where they can.
const payload_agent* copier_of(gpu::place where) {
  return where == gpu::place::device && !gpu::host_reads_device_memory() ? &gpu::payload() : nullptr;
}

// The image is made in host memory and then copied, because the ring's own memory may be a GPU's.
void prepare(const family& f, const dev::ring_view& v, dev::ring_state& state, const queue_plan& plan,
             const layout& at) {
  std::vector<unsigned char> slots(at.slots), completion(at.completion);
  f.prepare(v, {slots.data(), slots.data() + at.aux, completion.data()}, state, plan);
  gpu::copy(v.slots, slots.data(), slots.size());
  gpu::copy(v.rdma.completions, completion.data(), completion.size());
}

}  // namespace

nic_queues::nic_queues(nic_list nics, const std::vector<bool>& wanted, const queue_request& request,
                       const queue_style& style)
    : nics_(std::move(nics)), per_peer_(request.per_peer), views_(wanted.size() * request.per_peer, dev::ring_view{}) {
  check(request, *style.family);
  const auto count = static_cast<std::size_t>(std::ranges::count(wanted, true)) * per_peer_;
  const layout each(*style.family, request.depth, completion_depth(*style.family, request.depth, style.cq_depth));
  slots_ = gpu::buffer(count * each.slots, style.where.submission, 256, gpu::purpose::rings);
  completions_ = gpu::buffer(count * each.completion, style.where.completion, 256, gpu::purpose::completions);
  words_ = gpu::buffer(count * k_word_lines * k_line, style.where.doorbell, 256, gpu::purpose::rings);
  device_ = gpu::buffer(count * device_bytes(request.depth), gpu::place::device);
  std::size_t place = 0;
  try {
    if (style.family->registered_slots && count != 0) register_slots();
    for (std::size_t pe = 0; pe < wanted.size(); ++pe)
      for (std::uint32_t which = 0; wanted[pe] && which < per_peer_; ++which)
        views_[pe * per_peer_ + which] = make(place++, which, request, style);
  } catch (...) {
    stop();
    throw;
  }
}

nic_queues::~nic_queues() { stop(); }

void nic_queues::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  for (std::size_t i = 0; i < views_.size(); ++i) destroy(i, &proxy::nic::destroy_queue);
  for (std::size_t i = 0; i < slot_keys_.size(); ++i) (*nics_[i])->unregister_memory(slot_keys_[i]);
  nics_.clear();  // a device that has failed is closed before it is opened again
}

void nic_queues::stop_to(int pe) noexcept {
  for (std::uint32_t which = 0; !stopped_ && which < per_peer_; ++which)
    destroy(place_of(pe, which), &proxy::nic::cut_off_queue);
}

void nic_queues::destroy(std::size_t place, ending how) noexcept {
  const std::uint32_t number = std::exchange(views_[place].id, 0);
  if (number == 0) return;
  (nic_of(place).*how)(number);
  if (desk_ != nullptr) desk_->forget(number);
}

// The number of a queue pair is its view's id, 0 where there is none.
queue_address nic_queues::get_queue_address(std::size_t place) {
  queue_address q{views_[place].id, {}};
  if (q.number != 0) q.what = nic_of(place).get_queue_address(q.number, static_cast<int>(place / per_peer_));
  return q;
}

void nic_queues::connect(std::size_t place, const queue_address& theirs) {
  nic_of(place).connect(views_[place].id, static_cast<int>(place / per_peer_), theirs.what, theirs.number);
}

void nic_queues::deliver_to(const std::shared_ptr<proxy::immediate_desk>& desk,
                            const std::function<proxy::inbox(std::size_t pe)>& inbox_for) {
  desk_ = desk;
  for (std::size_t i = 0; i < views_.size(); ++i)
    if (views_[i].id != 0) desk_->enrol(views_[i].id, inbox_for(i / per_peer_));
}

void nic_queues::register_slots() {
  for (const auto& nic : nics_)
    slot_keys_.push_back((*nic)->register_memory(slots_.data(), slots_.size(), proxy::local_read));
}

dev::ring_view nic_queues::make(std::size_t place, std::uint32_t which, const queue_request& request,
                                const queue_style& style) {
  const family& f = *style.family;
  const std::uint32_t cq_depth = completion_depth(f, request.depth, style.cq_depth);
  const layout at(f, request.depth, cq_depth);
  unsigned char* slots = slots_.as<unsigned char>() + place * at.slots;
  unsigned char* bells = words_.as<unsigned char>() + place * k_word_lines * k_line;
  unsigned char* words = device_.as<unsigned char>() + place * device_bytes(request.depth);
  dev::ring_view v{};
  v.state = reinterpret_cast<dev::ring_state*>(words);
  v.marks = reinterpret_cast<std::uint64_t*>(words + sizeof(dev::ring_state));
  v.slots = slots;
  v.depth = request.depth;
  v.rdma.depth_log2 = static_cast<std::uint32_t>(std::countr_zero(request.depth));
  v.kind = f.kind;
  v.chunk = style.chunk;
  if (cq_depth != 0) {
    v.rdma.cq_depth = cq_depth;
    v.rdma.cq_depth_log2 = static_cast<std::uint32_t>(std::countr_zero(cq_depth));
  }
  const std::uint32_t nic = which % static_cast<std::uint32_t>(nics_.size());
  v.rdma.completions = completions_.as<unsigned char>() + place * at.completion;
  v.rdma.doorbell = reinterpret_cast<std::uint64_t*>(bells + k_line);
  v.rdma.nic = static_cast<std::uint16_t>(nic);
  v.rdma.scratch_lkey = request.scratch.lkey[nic];
  v.rdma.atomics = static_cast<std::uint16_t>(style.atomics);
  v.rdma.inline_bytes = style.inline_bytes;
  v.rdma.gather_bytes = f.gather_bytes;
  // Of the doorbell record the first word is the receive queue's.
  f.set_fields(v.rdma, {slots + at.aux, reinterpret_cast<std::uint32_t*>(bells) + 1,
                        reinterpret_cast<std::uint64_t*>(bells + 2 * k_line), style.path_mtu,
                        slot_keys_.empty() ? 0 : slot_keys_[nic].lkey});

  queue_plan plan{request.ticket_start, style.chunk, style.path_mtu, k_first_psn};
  plan.entries = ring_memory(copier_of(style.where.submission));
  plan.completions = ring_memory(copier_of(style.where.completion));
  dev::ring_state state{};
  state.issued = state.published = state.completed = request.ticket_start;
  state.credits = request.depth;
  prepare(f, v, state, plan, at);
  gpu::put_value(v.state, state);
  v.id = nic_of(which).create_queue([&](std::uint32_t number) { return f.decode(v, plan, number); });
  return v;
}

}  // namespace xio::rdma
