// SPDX-License-Identifier: MIT
#include "ctx/context.hpp"

#include <bit>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/ctx_value.hpp"
#include "ctx/failure_text.hpp"
#include "ctx/graveyard.hpp"
#include "ctx/program.hpp"
#include "xio/device/impl/dormant.hpp"
#include "xio/device/impl/request.hpp"

namespace xio {
namespace {

// Results of fetching RDMA ops. Word 0 is where results go that nobody reads.
constexpr std::uint32_t k_scratch_words = 1024;
constexpr std::uint32_t k_word_bits = 64;
constexpr std::uint32_t k_bitmap_words = k_scratch_words / k_word_bits;

template <class T>
void write_all(const gpu::buffer& to, const std::vector<T>& rows) {
  gpu::copy(to.data(), rows.data(), rows.size() * sizeof(T));
}

// Kernels that run find the new address.
void store_address(dev::ring_view** at, dev::ring_view* to) {
  if (gpu::host_reads_device_memory())
    __atomic_store_n(at, to, __ATOMIC_RELEASE);
  else
    gpu::put_value(at, to);
}

}  // namespace

context::context(const ctx_settings& settings, route_plan plan, dev::world_view* world, const direct::peers& peers,
                 std::uint64_t ticket_start)
    : settings_(settings), plan_(std::move(plan)), world_(world), peers_(peers), ticket_start_(ticket_start) {
  uses_rdma_ = plan_.uses(dev::route::rdma);
}

context::~context() {
  for (const auto& set : queues_.pairs) set->when_connected(nullptr);
  if (waits_ != nullptr) waits_->forget(this);
  graveyard::bury(views_, lanes(), world_, n_pes());
  queues_ = {};
  old_.clear();
  if (scratch_opening_ == 0 || scratch_opening_ != scratch_owner_->rdma_opening()) return;
  try {
    scratch_owner_->open_rdma().unregister_memory(scratch_.data());
  } catch (const std::exception& e) {
    log::debug("while destroying a ctx: {}", e.what());
  }
}

void context::queues::stop() const noexcept {
  for (const auto& set : pairs) set->stop();
  for (const auto& one : copies) one->stop();
  if (flush_pairs != nullptr) flush_pairs->stop();
  if (flush_copies != nullptr) flush_copies->stop();
}

void context::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  queues_.stop();
  // Not before: any status but XIO_ERR_TIMEOUT says that the engine is done with the buffer.
  refuse_work();
}

void context::begin_again(engines& e) {
  const std::uint32_t next = first_index_ + rings_per_lane_;
  if (next + rings_per_lane_ > dev::k_storage_ring_base)
    fail(XIO_ERR_STATE,
         "xio_ctx_recover: this ctx was recovered {} times, and requests have no numbers left for the {} rings of one "
         "more; destroy it and create another",
         rings_per_lane_ == 0 ? 0 : first_index_ / rings_per_lane_, rings_per_lane_);
  old_.push_back(std::exchange(queues_, {}));
  first_index_ = next;
  flush_ring_count_ = 0;
  // From now on nothing of it leads there. Before, its queues were still counted.
  for (const int pe : excluded_)
    plan_.to[static_cast<std::size_t>(pe)] = {dev::route::excluded, dev::route::excluded_bulk, dev::route::excluded};
  rings_per_lane_ = count_rings(settings_, plan_);
  clear_bitmaps();
  register_scratch();
  open_copy_queues(e);
}

void context::register_scratch() {
  if (scratch_owner_ == nullptr || scratch_opening_ == scratch_owner_->rdma_opening()) return;
  scratch_keys_ = scratch_owner_->open_rdma().register_memory(scratch_.data(), scratch_.size());
  scratch_opening_ = scratch_owner_->rdma_opening();
}

void context::give_up() noexcept {
  if (!stopped_) return stop();
  queues_.stop();
  refuse_work();
}

void context::refuse_work() const noexcept {
  try {
    fail_rings(rings_, XIO_ERR_STATE);
    fail_rings(flush_rings_, XIO_ERR_STATE);
  } catch (const std::exception& e) {
    log::warn("the rings of a ctx that was stopped still take work: {}", e.what());
  }
}

void context::prepare(engines& e) {
  rings_per_lane_ = count_rings(settings_, plan_);
  constexpr auto device = gpu::place::device;
  views_ = static_cast<dev::ctx_view*>(graveyard::take(lanes() * sizeof(dev::ctx_view), gpu::purpose::own));
  const bool lazy = uses_rdma_ && e.open_rdma().is_lazy(lane_request());
  const auto rows = lazy ? gpu::purpose::tables : gpu::purpose::own;
  peer_rows_ = gpu::buffer((has_rings() ? lanes() : 1) * n_pes() * sizeof(dev::peer_view), device, 256, rows);
  stream_failed_ = gpu::buffer(sizeof(std::uint32_t), gpu::place::shared);
  if (settings_.pool != 0)
    pool_used_ = gpu::buffer((settings_.pool + k_word_bits - 1) / k_word_bits * sizeof(std::uint64_t), device);
  if (has_rings()) ring_rows_ = gpu::buffer(2 * lanes() * rings_per_lane_ * sizeof(dev::ring_view), device, 256, rows);
  if (plan_.needs(dev::route::rdma)) {
    // Host memory: the NIC's completion and its result then travel the same way and cannot overtake each other.
    scratch_ = gpu::buffer(lanes() * k_scratch_words * sizeof(std::uint64_t), gpu::place::shared, gpu::page_size());
    scratch_owner_ = &e;
    (void)e.open_rdma();
    register_scratch();
    scratch_used_ = gpu::buffer(lanes() * k_bitmap_words * sizeof(std::uint64_t), device);
  }
  clear_bitmaps();
  open_copy_queues(e);
}

void context::clear_bitmaps() {
  if (settings_.pool != 0) {
    std::vector<std::uint64_t> used((settings_.pool + k_word_bits - 1) / k_word_bits);
    // Bits past the end have no context behind them.
    if (settings_.pool % k_word_bits != 0) used.back() = ~std::uint64_t{0} << (settings_.pool % k_word_bits);
    write_all(pool_used_, used);
  }
  if (scratch_owner_ != nullptr) {
    std::vector<std::uint64_t> used(lanes() * k_bitmap_words);
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) used[lane * k_bitmap_words] = 1;
    write_all(scratch_used_, used);
  }
}

void context::open_copy_queues(engines& e) {
  if (plan_.flush == dev::route::sdma)
    queues_.flush_copies = e.open_sdma().create_queue({settings_.depth, ticket_start_, plan_.self, 0, false});
  for (std::uint32_t lane = 0; lane < lanes(); ++lane)
    for (std::size_t pe = 0; pe < n_pes(); ++pe)
      for (std::uint32_t which = 0; plan_.to[pe].uses(dev::route::sdma) && which < settings_.copy_queues; ++which)
        queues_.copies.push_back(
            e.open_sdma().create_queue({settings_.depth, ticket_start_, static_cast<int>(pe), which, false}));
}

// One queue pair to oneself by each NIC.
rdma::queue_request context::flush_request(rdma::endpoint& e) {
  rdma::queue_request request{};
  request.peers.resize(n_pes());
  request.peers[static_cast<std::size_t>(plan_.self)] = true;
  request.depth = settings_.depth;
  request.ticket_start = ticket_start_;
  request.scratch = scratch_keys_;
  request.per_peer = std::bit_ceil(e.nics());
  flush_ring_count_ = request.per_peer;
  return request;
}

rdma::queue_request context::lane_request() const {
  rdma::queue_request request{};
  for (const way& w : plan_.to) request.peers.push_back(w.uses(dev::route::rdma));
  request.depth = settings_.depth;
  request.ticket_start = ticket_start_;
  request.scratch = scratch_keys_;
  request.per_peer = settings_.queues;
  request.inboxes = inboxes_;
  request.immediates = settings_.immediates;
  request.lazy = true;
  return request;
}

void context::connect(engines& e) {
  const bool flushes = plan_.flush == dev::route::rdma;
  if (!flushes && !uses_rdma_) return;
  rdma::endpoint& endpoint = e.open_rdma();
  std::vector<rdma::queue_request> requests;
  if (flushes) requests.push_back(flush_request(endpoint));
  if (uses_rdma_) requests.insert(requests.end(), lanes(), lane_request());
  queues_.pairs = endpoint.create_queues(requests);
  if (!flushes) return;
  queues_.flush_pairs = std::move(queues_.pairs.front());
  queues_.pairs.erase(queues_.pairs.begin());
}

void context::collect_rings(std::uint32_t lane) {
  std::uint32_t index = first_index_;
  const auto add = [&](const dev::ring_view& ring, std::size_t pe) {
    rings_.push_back(ring);
    rings_.back().index = index++;
    ring_peers_.push_back(static_cast<int>(pe));
  };
  for (std::size_t pe = 0; pe < n_pes(); ++pe)
    for (std::uint32_t which = 0; plan_.to[pe].uses(dev::route::rdma) && which < settings_.queues; ++which)
      add(queues_.pairs[lane]->view(static_cast<int>(pe), which), pe);
  std::size_t copy = lane * (queues_.copies.size() / lanes());
  for (std::size_t pe = 0; pe < n_pes(); ++pe)
    for (std::uint32_t which = 0; plan_.to[pe].uses(dev::route::sdma) && which < settings_.copy_queues; ++which)
      add(queues_.copies[copy++]->view(), pe);
}

// Kernels find a queue pair that is not connected in the second half, until it has its place in the first.
void context::write_rings() {
  write_all(ring_rows_, rings_);
  std::vector<dev::ring_view> all = rings_;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (dev::is_dormant(all[i])) all[i].rdma.dormant.ctx = view() + i / rings_per_lane_;
  gpu::copy(ring_rows_.as<dev::ring_view>() + all.size(), all.data(), all.size() * sizeof all[0]);
}

counted_queues context::connected_rings() const {
  const std::lock_guard hold(rings_lock_);
  counted_queues out{this, labels_, {}, {}, [this](dev::call_record& r) { return failed_call(r); }};
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    if (dev::is_dormant(rings_[i])) continue;
    out.rings.push_back(rings_[i]);
    out.peers.push_back(ring_peers_[i]);
  }
  return out;
}

// A thread of the library calls it while kernels run: a row names only views that are whole. It is called again where
// it has thrown.
void context::show_connected(std::uint32_t lane, int pe) {
  std::size_t first = lane * rings_per_lane_;
  while (ring_peers_[first] != pe) ++first;
  auto* const shown = ring_rows_.as<dev::ring_view>() + first;
  counted_queues made{this, labels_, {}, std::vector<int>(settings_.queues, pe), {}};
  for (std::uint32_t which = 0; which < settings_.queues; ++which) {
    made.rings.push_back(queues_.pairs[lane]->view(pe, which));
    made.rings[which].index = rings_[first + which].index;
    gpu::put_value(shown + which, made.rings[which]);
  }
  const bool is_new = dev::is_dormant(rings_[first]);
  {
    const std::lock_guard hold(rings_lock_);
    std::ranges::copy(made.rings, rings_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  if (is_new) waits_->show(made);
  // Kernels find them from here on.
  for (std::uint32_t which = 0; which < settings_.queues; ++which)
    store_address(&shown[rings_.size() + which].rdma.dormant.ring, shown + which);
  store_address(&peer_rows_.as<dev::peer_view>()[lane * n_pes() + static_cast<std::size_t>(pe)].rdma, shown);
}

void context::fill_peers(std::uint32_t lane) {
  auto* rings = ring_rows_.as<dev::ring_view>() + lane * rings_per_lane_;
  const dev::ring_view* views = rings_.data() + lane * rings_per_lane_;
  dev::ring_view* copies = rings + rings_per_lane_ - queues_.copies.size() / lanes();
  std::vector<dev::peer_view> rows;
  for (std::size_t i = 0; i < n_pes(); ++i) {
    const int pe = static_cast<int>(i);
    const way& w = plan_.to[i];
    dev::peer_view p{};
    p.direct = peers_.base(pe);
    p.small = w.small;
    p.bulk = w.bulk;
    p.atomic = w.atomic;
    p.by_engine = w.small != dev::route::direct ? 1 : 0;
    if (w.uses(dev::route::rdma)) {
      p.rdma = rings + (dev::is_dormant(*views) ? lanes() * rings_per_lane_ : 0);
      views += settings_.queues;
      p.rdma_count = static_cast<std::uint16_t>(settings_.queues);
      rings += settings_.queues;
    }
    if (w.uses(dev::route::sdma)) {
      p.sdma = copies;
      p.sdma_count = static_cast<std::uint16_t>(settings_.copy_queues);
      copies += settings_.copy_queues;
    }
    rows.push_back(p);
  }
  gpu::copy(peer_rows_.as<dev::peer_view>() + lane * n_pes(), rows.data(), rows.size() * sizeof(dev::peer_view));
}

void context::fill_view(std::uint32_t lane) {
  dev::ctx_view v{};
  v.world = world_;
  v.peers = peer_rows_.as<dev::peer_view>() + (has_rings() ? lane * n_pes() : 0);
  v.bulk_bytes = plan_.bulk_bytes;
  v.one_way = settings_.queues == 1 && std::ranges::all_of(plan_.to, [](const way& w) {
                return w.small == w.bulk && w.small == w.atomic && w.small != dev::route::sdma;
              });
  v.inboxes = inboxes_;
  v.inbox_entries = settings_.immediates;
  if (has_rings()) {
    v.rings = ring_rows_.as<dev::ring_view>() + lane * rings_per_lane_;
    v.ring_count = rings_per_lane_;
    v.ring_first = first_index_;
  }
  v.flush_rings = flush_rows_.as<dev::ring_view>();
  v.flush_ring_count = flush_ring_count_;
  if (scratch_owner_ != nullptr) {
    v.scratch = scratch_.as<std::uint64_t>() + lane * k_scratch_words;
    v.scratch_used = scratch_used_.as<std::uint64_t>() + lane * k_bitmap_words;
    v.scratch_count = k_scratch_words;
  }
  v.pool_index = lane == 0 ? UINT32_MAX : lane - 1;
  if (lane == 0 && settings_.pool != 0) {
    v.pool = view() + 1;
    v.pool_used = pool_used_.as<std::uint64_t>();
    v.pool_count = settings_.pool;
  }
  gpu::put_value(view() + lane, v);
}

void context::fill_flush_rings() {
  std::vector<dev::ring_view>& rows = flush_rings_;
  rows.clear();
  if (queues_.flush_copies != nullptr) rows.push_back(queues_.flush_copies->view());
  for (std::uint32_t i = 0; queues_.flush_pairs != nullptr && i < flush_ring_count_; ++i)
    rows.push_back(queues_.flush_pairs->view(plan_.self, i));
  if (rows.empty()) return;
  flush_ring_count_ = static_cast<std::uint32_t>(rows.size());
  flush_rows_ = gpu::buffer(rows.size() * sizeof(dev::ring_view), gpu::place::device);
  write_all(flush_rows_, rows);
}

void context::publish(wait_book& waits, std::uint64_t serial) {
  rings_.clear();
  ring_peers_.clear();
  fill_flush_rings();
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    if (has_rings()) collect_rings(lane);
    if (has_rings() || lane == 0) fill_peers(lane);
    fill_view(lane);
  }
  for (const auto* rows : {&rings_, &flush_rings_})
    for (const dev::ring_view& r : *rows) program::check_ring("xio_ctx_create", r.kind);
  if (has_rings()) write_rings();
  waits_ = &waits;
  labels_ = fmt::format("ctx=\"{}\"", serial);
  waits.forget(this);
  waits.show(connected_rings());
  for (std::uint32_t lane = 0; lane < queues_.pairs.size(); ++lane)
    queues_.pairs[lane]->when_connected([this, lane](int pe) { show_connected(lane, pe); });
  __atomic_store_n(stream_failed(), 0u, __ATOMIC_RELEASE);
  old_.clear();
  stopped_ = false;
}

xio_ctx_t context::value(std::uint64_t id) const {
  dev::ctx_view c;
  dev::world_view w{};
  std::vector<dev::peer_view> peers(n_pes());
  gpu::copy(&c, view(), sizeof c);
  // Copies the part that never changes: not the regions, which other threads may be changing.
  gpu::copy(&w, world_, offsetof(dev::world_view, regions));
  gpu::copy(&w.hdp, &world_->hdp, sizeof w.hdp);
  gpu::copy(peers.data(), c.peers, peers.size() * sizeof(dev::peer_view));
  return ctx_value(view(), id, c, w, peers.data());
}

void context::stats(dev::route way, xio_engine_stats_t& out) const {
  std::vector<dev::ring_view> some;
  for (const auto& ring : connected_rings().rings)
    if (route_of(ring.kind) == way) some.push_back(ring);
  add_stats(some, out);
}

namespace {

// False if no call has failed. A record that kernels keep changing is taken as it is after some tries.
bool read_record(const dev::ctx_view* view, dev::call_record& out) {
  for (int tries = 0; tries < 8; ++tries) {
    gpu::copy(&out, &view->failed_call, sizeof out);
    std::uint64_t again = 0;
    gpu::copy(&again, &view->failed_call.number, sizeof again);
    if (again == out.number && (again & 1) == 0) break;
  }
  return out.number != 0 && out.status != 0;
}

}  // namespace

bool context::failed_call(dev::call_record& last) const {
  bool any = false;
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    dev::call_record one{};
    if (!read_record(&view()[lane], one)) continue;
    if (!any || one.clock > last.clock) last = one;
    any = true;
  }
  return any;
}

std::uint32_t context::storages_used() const {
  std::uint32_t all = 0;
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    // The bits outlive the storages: kernels set them beside each other.
    std::uint32_t errors[dev::k_max_storages];
    gpu::copy(errors, &view()[lane].storage_errors, sizeof errors);
    for (std::uint32_t slot = 0; slot < dev::k_max_storages; ++slot) all |= (errors[slot] != 0 ? 1u : 0u) << slot;
  }
  return all;
}

void context::forget_storage(std::uint32_t slot) {
  for (std::uint32_t lane = 0; lane < lanes(); ++lane)
    gpu::put_value(&view()[lane].storage_errors[slot], std::uint32_t{0});
}

void context::show_value(const xio_ctx_t& ctx) {
  value_ = gpu::buffer(sizeof ctx, gpu::place::device);
  gpu::put_value(value_.as<xio_ctx_t>(), ctx);
}

void context::forget_failures() {
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    gpu::put_value(&view()[lane].error, std::uint32_t{0});
    gpu::put_value(&view()[lane].failed_call, dev::call_record{});
    gpu::put_value(&view()[lane].stream_failed, std::uint32_t{0});
  }
  __atomic_store_n(stream_failed(), 0u, __ATOMIC_RELEASE);
}

}  // namespace xio
