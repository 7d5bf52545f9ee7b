// SPDX-License-Identifier: MIT
#include "transport/rdma/nic_queues.hpp"

#include <algorithm>
#include <bit>
#include <span>

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

nic_queues::nic_queues(nic_list nics, std::vector<bool> wanted, const queue_request& request, const queue_style& style,
                       bool lazy)
    : nics_(std::move(nics)),
      wanted_(std::move(wanted)),
      request_(request),
      style_(style),
      per_peer_(request.per_peer),
      views_(wanted_.size() * request.per_peer, dev::ring_view{}) {
  check(request, *style.family);
  if (lazy) return;
  try {
    const block& all = add_block(static_cast<std::size_t>(std::ranges::count(wanted_, true)) * per_peer_);
    std::size_t place = 0;
    for (std::size_t pe = 0; pe < wanted_.size(); ++pe)
      if (wanted_[pe]) make_to(pe, all, std::exchange(place, place + per_peer_));
  } catch (...) {
    stop();
    throw;
  }
}

nic_queues::block& nic_queues::add_block(std::size_t count) {
  const family& f = *style_.family;
  const std::uint32_t depth = request_.depth;
  const layout each(f, depth, completion_depth(f, depth, style_.cq_depth));
  block& b = blocks_.emplace_back();  // from here on stop() gives it back
  b.slots = gpu::buffer(count * each.slots, style_.where.submission, 256, gpu::purpose::rings);
  b.completions = gpu::buffer(count * each.completion, style_.where.completion, 256, gpu::purpose::completions);
  b.words = gpu::buffer(count * k_word_lines * k_line, style_.where.doorbell, 256, gpu::purpose::rings);
  b.device = gpu::buffer(count * device_bytes(depth), gpu::place::device, 256,
                         lazy_ != nullptr ? gpu::purpose::tables : gpu::purpose::own);
  for (const auto& nic : nics_)
    if (f.registered_slots && count != 0)
      b.slot_keys.push_back((*nic)->register_memory(b.slots.data(), b.slots.size(), proxy::local_read));
  return b;
}

void nic_queues::make_to(std::size_t pe, const block& in, std::size_t first) {
  for (std::uint32_t which = 0; which < per_peer_; ++which)
    views_[pe * per_peer_ + which] = make(in, first + which, which);
}

void nic_queues::make_to(int pe) {
  const std::size_t at = place_of(pe, 0);
  if (views_[at].id != 0) return;
  try {
    make_to(static_cast<std::size_t>(pe), add_block(per_peer_), 0);
  } catch (...) {
    for (std::uint32_t which = 0; which < per_peer_; ++which) destroy(at + which, &proxy::nic::destroy_queue);
    give_back(blocks_.back());
    blocks_.pop_back();
    throw;
  }
  for (std::uint32_t which = 0; desk_ != nullptr && which < per_peer_; ++which)
    desk_->enrol(views_[at + which].id, inbox_for_(static_cast<std::size_t>(pe)));
}

void nic_queues::give_back(const block& b) noexcept {
  for (std::size_t i = 0; i < b.slot_keys.size(); ++i) (*nics_[i])->unregister_memory(b.slot_keys[i]);
}

dev::ring_view nic_queues::view(int pe, std::uint32_t which) const {
  if (lazy_ == nullptr || lazy_->is_connected(pe)) return views_[place_of(pe, which)];
  return wanted_[static_cast<std::size_t>(pe)] ? lazy_->dormant(pe, common_view(which)) : dev::ring_view{};
}

nic_queues::~nic_queues() { stop(); }

void nic_queues::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  if (lazy_ != nullptr) lazy_->stop();
  for (std::size_t i = 0; i < views_.size(); ++i) destroy(i, &proxy::nic::destroy_queue);
  for (const block& b : blocks_) give_back(b);
  nics_.clear();  // a device that has failed is closed before it is opened again
}

void nic_queues::stop_to(int pe) noexcept {
  if (lazy_ != nullptr) lazy_->exclude(pe);
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
                            std::function<proxy::inbox(std::size_t pe)> inbox_for) {
  desk_ = desk;
  inbox_for_ = std::move(inbox_for);
  for (std::size_t i = 0; i < views_.size(); ++i)
    if (views_[i].id != 0) desk_->enrol(views_[i].id, inbox_for_(i / per_peer_));
}

// The fields that all queue pairs have in common, whether they are there or not.
dev::ring_view nic_queues::common_view(std::uint32_t which) const {
  dev::ring_view v{};
  v.depth = request_.depth;
  v.kind = style_.family->kind;
  v.chunk = style_.chunk;
  v.rdma.nic = static_cast<std::uint16_t>(which % nics_.size());
  v.rdma.scratch_lkey = request_.scratch.lkey[v.rdma.nic];
  v.rdma.atomics = static_cast<std::uint16_t>(style_.atomics);
  v.rdma.inline_bytes = style_.inline_bytes;
  v.rdma.gather_bytes = style_.family->gather_bytes;
  return v;
}

dev::ring_view nic_queues::make(const block& in, std::size_t place, std::uint32_t which) {
  const family& f = *style_.family;
  const std::uint32_t depth = request_.depth, cq_depth = completion_depth(f, depth, style_.cq_depth);
  const layout at(f, depth, cq_depth);
  unsigned char* slots = in.slots.as<unsigned char>() + place * at.slots;
  unsigned char* bells = in.words.as<unsigned char>() + place * k_word_lines * k_line;
  unsigned char* words = in.device.as<unsigned char>() + place * device_bytes(depth);
  dev::ring_view v = common_view(which);
  v.state = reinterpret_cast<dev::ring_state*>(words);
  v.marks = reinterpret_cast<std::uint64_t*>(words + sizeof(dev::ring_state));
  v.slots = slots;
  v.rdma.depth_log2 = static_cast<std::uint32_t>(std::countr_zero(depth));
  if (cq_depth != 0) {
    v.rdma.cq_depth = cq_depth;
    v.rdma.cq_depth_log2 = static_cast<std::uint32_t>(std::countr_zero(cq_depth));
  }
  v.rdma.completions = in.completions.as<unsigned char>() + place * at.completion;
  v.rdma.doorbell = reinterpret_cast<std::uint64_t*>(bells + k_line);
  // Of the doorbell record the first word is the receive queue's.
  f.set_fields(v.rdma, {slots + at.aux, reinterpret_cast<std::uint32_t*>(bells) + 1,
                        reinterpret_cast<std::uint64_t*>(bells + 2 * k_line), style_.path_mtu,
                        in.slot_keys.empty() ? 0 : in.slot_keys[v.rdma.nic].lkey});

  queue_plan plan{request_.ticket_start, style_.chunk, style_.path_mtu, k_first_psn};
  plan.entries = ring_memory(copier_of(style_.where.submission));
  plan.completions = ring_memory(copier_of(style_.where.completion));
  dev::ring_state state{};
  state.issued = state.published = state.completed = request_.ticket_start;
  state.credits = depth;
  prepare(f, v, state, plan, at);
  gpu::put_value(v.state, state);
  v.id = nic_of(which).create_queue([&](std::uint32_t number) { return f.decode(v, plan, number); });
  return v;
}

}  // namespace xio::rdma
