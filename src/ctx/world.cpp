// SPDX-License-Identifier: MIT
#include "ctx/world.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/attempt.hpp"
#include "ctx/call_text.hpp"
#include "ctx/failure_text.hpp"
#include "ctx/hdp.hpp"
#include "ctx/hello.hpp"
#include "ctx/peer_atomics.hpp"
#include "ctx/program.hpp"
#include "ctx/rings.hpp"
#include "memory/mode.hpp"
#include "xio/wire/inbox.hpp"

namespace xio {

namespace {

constexpr std::uint64_t k_page = 4096;

// When a ctx ends, commands that no kernel waited for have this long to end by themselves. It is less than other PEs
// wait for this one.
constexpr std::chrono::milliseconds k_storage_patience{1000};

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

gpu::heap_kind kind_of_heap(const options& o) {
  switch (o.heap_kind) {
    case option::heap_kind::host: return gpu::heap_kind::host;
    case option::heap_kind::managed: return gpu::heap_kind::managed;
    case option::heap_kind::uncached: return gpu::heap_kind::uncached;
    case option::heap_kind::fine: return gpu::heap_kind::fine;
    case option::heap_kind::device: break;
  }
  return gpu::heap_kind::device;
}

// Whether the symmetric heap lies where the memory mode wants it.
void check_heap_place(const options& o) {
  memory::ability can{gpu::place::device, "XIO_HEAP_KIND=device makes the symmetric heap of GPU memory"};
  if (o.heap_kind == option::heap_kind::host)
    can = {gpu::place::shared, "XIO_HEAP_KIND=host makes the symmetric heap of host memory"};
  // There both are the same memory; managed memory moves.
  if (gpu::host_reads_device_memory() || o.heap_kind == option::heap_kind::managed) can.why_not = nullptr;
  memory::mode(o.memory_mode).place(memory::part::data, "the symmetric heap", can);
}

std::uint32_t next_world_number() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

world::world(options o, std::unique_ptr<bootstrap::channel> channel)
    : options_(std::move(o)),
      channel_(std::move(channel)),
      agreement_(*channel_),
      me_(channel_->rank()),
      n_(channel_->size()),
      storages_("storage", "closed", next_world_number()),
      contexts_("ctx", "destroyed", storages_.world()),
      teams_("team", "destroyed", storages_.world()) {
  log::set_pe(me_);
  exchange_hellos();
  share_heap();
  direct_obstacle_ = find_direct_obstacle(agreement_, *channel_, options_, gpus_, place_, direct_obstacle_);
  publish_world();
  log::info("PE {} of {} by {}, {} platform, heap {} bytes at {}", me_, n_, channel_->name(), gpu::name(),
            heap_->size(), static_cast<void*>(heap_->data()));
}

void world::exchange_hellos() {
  hello mine{};
  agreement_.each(call::init, [&] { mine = make_hello(options_); });
  const auto all = bootstrap::allgather_value(*channel_, mine);
  check_hellos(all);
  std::vector<std::string> machines, kernels;
  for (const hello& h : all) {
    machines.emplace_back(h.machine, strnlen(h.machine, sizeof h.machine));
    kernels.emplace_back(h.kernel, strnlen(h.kernel, sizeof h.kernel));
  }
  place_ = topology::place(machines, kernels, me_);
  if (place_.apart > 0)
    log::warn(
        "{} of the {} PEs of this machine are in other containers (or of other users), so RDMA reaches them and not "
        "loads and stores; where their containers share a PID namespace set XIO_MACHINE to the same word in all of "
        "them",
        place_.apart, place_.local_size);
}

void world::share_heap() {
  heap_offer mine{};
  agreement_.each(call::init, [&] {
    gpu::init(gpu::device_for(place_.local_rank, options_.gpu_device == option::gpu_device::current));
    check_heap_place(options_);
    const bool shared = std::count(place_.together.begin(), place_.together.end(), true) > 1;
    heap_ = gpu::make_heap(k_head_bytes + whole_pages(options_.heap_size), kind_of_heap(options_),
                           shared && options_.peer_access != option::peer_access::off);
    mine = make_offer(*heap_);
  });
  const auto all = bootstrap::allgather_value(*channel_, mine);
  check_offers(all);
  gpus_ = gpus_of(all, place_.together);
  agreement_.each(call::init, [&] {
    check_sharing(options_, gpus_, gpu::device_count());
    peers_ = std::make_unique<direct::peers>(n_, me_, *heap_);
    base_alignment_ = mine.alignment;
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
      base_alignment_ = std::min(base_alignment_, all[pe].alignment);
      if (place_.together[pe] && static_cast<int>(pe) != me_)
        map_peer(static_cast<int>(pe), {all[pe].handle, all[pe].handle + all[pe].handle_bytes});
    }
    allocator_.emplace(k_head_bytes, heap_->size());
  });
  const auto& my_gpu = gpus_[static_cast<std::size_t>(me_)];
  const bool one_gpu = std::all_of(gpus_.begin(), gpus_.end(), [&](const std::string& id) { return id == my_gpu; });
  if (direct_obstacle_.empty())
    direct_obstacle_ = gpu::heap_atomics_obstacle(kind_of_heap(options_), n_ == 1 || (!my_gpu.empty() && one_gpu));
}

// A heap that cannot be mapped is an obstacle of the direct route, and no error: another route may serve.
void world::map_peer(int pe, const std::vector<std::byte>& handle) {
  if (options_.peer_access == option::peer_access::off) {
    direct_obstacle_ = "XIO_PEER_ACCESS=off keeps PEs from mapping each other's heaps";
    return;
  }
  try {
    peers_->map(pe, handle, heap_->size(), kind_of_heap(options_));
  } catch (const error& e) {
    direct_obstacle_ = fmt::format("{}; XIO_PEER_ACCESS=off does not try it", e.what());
  }
}

void world::publish_world() {
  // The last word of xio_init: after it every PE has mapped what it needs of the others.
  agreement_.each(call::init, [&] {
    view_ = gpu::buffer(sizeof(dev::world_view), gpu::place::device, 256, gpu::purpose::tables);
    dev::world_view v{};
    v.my_pe = static_cast<std::uint32_t>(me_);
    v.n_pes = static_cast<std::uint32_t>(n_);
    v.heap = heap_->data();
    v.heap_bytes = heap_->size();
    v.ticks_per_ms = gpu::ticks_per_ms();
    v.timeout_ticks = options_.timeout_ms * v.ticks_per_ms;
    auto* at = view_.as<dev::world_view>();
    gpu::put_value(at, v);
    engines_ = std::make_unique<engines>(options_, *channel_, *heap_, *peers_, at->regions, place_.local_rank);
    engines_->place_gpus(gpus_);
    hdp_ = open_hdp(options_, *engines_, *heap_);
    program::check_layout("xio_init");
    gpu::put_value(&at->hdp, hdp_->view());
    if (!program::has_all()) check_program();
  });
}

// A ctx without attributes must be possible.
void world::check_program() const {
  ctx_settings settings = choose_ctx(nullptr, options_);
  program::fit(settings);
  program::check_routes("xio_init", plan_of(settings), flushes_hdp());
}

void world::close_all() {
  for (const auto& [id, c] : contexts_.live()) log::debug("xio_finalize destroys ctx {}", contexts_.serial(id));
  contexts_.clear();
  for (const auto& [id, s] : storages_.live()) log::debug("xio_finalize closes {}", s->name());
  storages_.clear();
  teams_.clear();
  engines_.reset();
  hdp_.reset();
  peers_.reset();
}

void world::wait_for_kernels() {
  in_use_ = !gpu::wait_for_kernels(options_.timeout_ms);
  if (in_use_)
    fail(XIO_ERR_STATE,
         "xio_finalize: a kernel still runs after {} ms, and may be using the world, whose memory is kept for it until "
         "the process ends; end kernels first",
         options_.timeout_ms);
}

void world::finalize() {
  std::exception_ptr first;
  const auto finish_together = [&](auto&& step) {
    try {
      agreement_.each(call::finalize, step);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  finish_together([&] { wait_for_kernels(); });
  if (in_use_) std::rethrow_exception(first);
  close_all();
  // A heap goes away only after every PE has let go of it.
  if (!first) finish_together([] {});
  view_ = {};
  heap_.reset();
  if (first) std::rethrow_exception(first);
}

void world::barrier() {
  agreement_.each(call::barrier, [] {});
}

// --- Symmetric memory --------------------------------------------------------------------------------

std::optional<std::uint64_t> world::offset_of(const void* p) const {
  const auto at = reinterpret_cast<std::uint64_t>(p) - reinterpret_cast<std::uint64_t>(heap_->data());
  if (at >= heap_->size()) return {};
  return at;
}

std::uint64_t world::take(const allocation& wanted) {
  if (!std::has_single_bit(wanted.alignment))
    fail(XIO_ERR_ARG, "{}: alignment {} is no power of two; use one such as 256", wanted.function, wanted.alignment);
  if (wanted.alignment > base_alignment_)
    fail(XIO_ERR_ARG, "{}: alignment {} is more than the heap's own, {}; use at most that", wanted.function,
         wanted.alignment, base_alignment_);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(wanted.count, wanted.bytes, &bytes))
    fail(XIO_ERR_ARG, "{}: {} times {} bytes are more than an address can count; ask for less", wanted.function,
         wanted.count, wanted.bytes);
  if (bytes == 0) return 0;
  const auto offset = allocator_->allocate(bytes, wanted.alignment);
  if (!offset)
    fail(
        XIO_ERR_NO_MEMORY,
        "{}: no {} bytes (alignment {}) in the symmetric heap: {} of {} are free, {} in one piece; raise XIO_HEAP_SIZE "
        "or free something",
        wanted.function, bytes, wanted.alignment, allocator_->free_bytes(), heap_->size() - k_head_bytes,
        allocator_->largest_free());
  return *offset;
}

void world::allocate(const allocation& wanted, void** out) {
  std::uint64_t offset = 0;
  if (out != nullptr) *out = nullptr;
  try {
    agreement_.vote(
        call::malloc,
        [&] {
          if (out == nullptr) fail(XIO_ERR_ARG, "{}: out is null; give a pointer", wanted.function);
          offset = take(wanted);
          const std::size_t bytes = wanted.count * wanted.bytes;
          // Before the vote: a PE that returns may put into this block at once.
          if (wanted.zero && offset != 0) gpu::fill_zero(heap_->data() + offset, bytes);
          return arguments{
              {"the size", bytes}, {"the alignment", wanted.alignment}, {"the offset in the heap", offset}};
        },
        XIO_ERR_NOT_SYMMETRIC);
  } catch (...) {
    if (offset != 0) allocator_->release(offset);
    throw;
  }
  if (offset != 0) *out = heap_->data() + offset;
}

std::uint64_t world::live_block_at(const void* block) const {
  const auto offset = offset_of(block);
  if (!offset || *offset < k_head_bytes)
    fail(XIO_ERR_NOT_SYMMETRIC, "xio_free: {} is not in the symmetric heap; give what xio_malloc returned", block);
  const auto found = allocator_->find(*offset);
  if (!found)
    fail(XIO_ERR_STATE,
         "xio_free: {} (offset {}) is no allocated block: freed already, or never returned by xio_malloc", block,
         *offset);
  if (found->offset != *offset)
    fail(XIO_ERR_ARG, "xio_free: {} is {} bytes into a block; give the block's start", block, *offset - found->offset);
  return *offset;
}

void world::release(void* block) {
  std::uint64_t offset = 0;
  agreement_.vote(
      call::free,
      [&] {
        if (block != nullptr) offset = live_block_at(block);
        return arguments{{"the block's offset in the heap (0 is null)", offset}};
      },
      XIO_ERR_NOT_SYMMETRIC);
  if (offset != 0) allocator_->release(offset);
}

void* world::reach(const void* symmetric, int pe) const {
  const auto offset = offset_of(symmetric);
  if (!offset || *offset < k_head_bytes || pe < 0 || pe >= n_) return nullptr;
  unsigned char* base = peers_->base(pe);
  return base == nullptr ? nullptr : base + *offset;
}

// --- Contexts ----------------------------------------------------------------------------------------

// One for each PE, in the symmetric heap; 0: none are wanted.
std::uint64_t world::take_inboxes(std::uint32_t immediates) {
  if (immediates == 0) return 0;
  const std::size_t bytes = static_cast<std::size_t>(n_) * wire::inbox::bytes(immediates);
  const std::uint64_t offset = take({"xio_ctx_create", 1, bytes});
  gpu::fill_zero(heap_->data() + offset, bytes);
  return offset;
}

void world::check_reach(const ctx_settings& settings, const route_plan& plan) {
  for (int pe = 0; pe < n_; ++pe) {
    if (!plan.to[static_cast<std::size_t>(pe)].uses(dev::route::rdma)) continue;
    rdma::endpoint& e = engines_->open_rdma();
    if (!e.reaches(pe))
      fail(XIO_ERR_NO_ROUTE,
           "PE {} is reached neither by load and store nor by {}; run its PEs on one machine, or give both machines an "
           "RDMA device",
           pe, e.backend());
    if (settings.immediates != 0 && !e.takes_immediates())
      fail(XIO_ERR_UNSUPPORTED,
           "a ctx with immediates: {} does not hand immediates to kernels; set XIO_NIC_FAMILY=proxy, or immediates to "
           "0",
           e.backend());
  }
}

route_plan world::plan_of(ctx_settings& settings) const {
  if (!direct_obstacle_.empty()) avoid_direct(settings, direct_obstacle_);
  std::vector<bool> mapped;
  for (const unsigned char* base : peers_->bases()) mapped.push_back(base != nullptr);
  route_plan plan = plan_routes(settings, mapped, me_);
  plan.flush = flush_route(hdp_->decision());
  return plan;
}

bool world::flushes_hdp() const { return hdp_->view().way != dev::hdp_way::none; }

bool world::has_rdma_contexts() const {
  const auto& all = contexts_.live();
  return std::any_of(all.begin(), all.end(), [](const auto& c) { return c.second->plan().needs(dev::route::rdma); });
}

// The caller must release *inboxes, even if this throws.
std::unique_ptr<context> world::make_context(const xio_ctx_attr_t* attr, const xio_ctx_t* out, std::uint64_t* inboxes) {
  ctx_settings settings{};
  route_plan plan;
  agreement_.vote(call::ctx_create, [&] {
    if (out == nullptr) fail(XIO_ERR_ARG, "xio_ctx_create: ctx is null; give a pointer");
    settings = choose_ctx(attr, options_);
    program::check_layout("xio_ctx_create");
    program::fit(settings);
    plan = plan_of(settings);
    program::check_routes("xio_ctx_create", plan, flushes_hdp());
    // The start of the software devices' thread may fail on one PE alone, so it comes before the PEs exchange anything.
    if (plan.needs(dev::route::rdma)) (void)engines_->machine();
    return arguments{{"the route", static_cast<std::uint64_t>(settings.route)},
                     {"the ring's depth (XIO_RING_DEPTH or attr.ring_depth)", settings.depth},
                     {"the queue pairs to each PE (XIO_RDMA_QUEUES)", settings.queues},
                     {"the number of contexts in the pool (XIO_CTX_POOL or attr.pool)", settings.pool},
                     {"the size for copy engines (XIO_SDMA_THRESHOLD or attr.bulk_bytes)", settings.bulk_bytes},
                     {"whether NICs flush the HDP (XIO_HDP)", plan.flush == dev::route::rdma}};
  });
  // Every PE comes here with the same plan in kind: if one needs RDMA, all do, and all have the same contexts. One that
  // is still there has to be recovered first: it hears of the new devices so.
  if (plan.needs(dev::route::rdma) && !has_rdma_contexts()) reopen_lost_devices(call::ctx_create);
  const bool was_open = engines_->rdma_is_open();
  const auto opened = attempt([&] {
    if (plan.needs(dev::route::rdma)) engines_->open_rdma();
  });
  if (settings.queues == 0)
    settings.queues = engines_->rdma_is_open() ? std::bit_ceil(engines_->open_rdma().nics()) : 1;
  auto c = std::make_unique<context>(settings, plan, view_.as<dev::world_view>(), *peers_, options_.ticket_start);
  try {
    agreement_.vote(call::ctx_create, [&] {
      if (opened) std::rethrow_exception(opened);
      check_reach(settings, plan);
      *inboxes = take_inboxes(settings.immediates);
      c->place_inboxes(*inboxes);
      c->prepare(*engines_);
      return arguments{{"immediates", settings.immediates}, {"the offset of its inboxes in the heap", *inboxes}};
    });
  } catch (...) {
    // Open on some PEs only it would part them at the next ctx, since opening exchanges.
    c.reset();
    if (!was_open) engines_->close_rdma();
    throw;
  }
  const auto connected = attempt([&] { c->connect(*engines_); });
  agreement_.each(call::ctx_create, [&] {
    if (connected) std::rethrow_exception(connected);
    c->publish();
  });
  return c;
}

void world::create_ctx(const xio_ctx_attr_t* attr, xio_ctx_t* out) {
  if (out != nullptr) *out = {};
  std::uint64_t inboxes = 0;
  std::unique_ptr<context> c;
  try {
    c = make_context(attr, out, &inboxes);
  } catch (...) {
    if (inboxes != 0) allocator_->release(inboxes);
    throw;
  }
  const std::uint64_t id = contexts_.add(std::move(c));
  *out = contexts_.get(id).value(id);
}

dev::route world::route_of(xio_ctx_t ctx, int pe, std::size_t bytes) const {
  const route_plan& plan = contexts_.get(ctx.id).plan();
  if (pe < 0 || pe >= n_) fail(XIO_ERR_PE, "PE {} is not one of this world's 0 to {}", pe, n_ - 1);
  const way& w = plan.to[static_cast<std::size_t>(pe)];
  return bytes >= plan.bulk_bytes ? w.bulk : w.small;
}

xio_engine_stats_t world::ctx_stats(xio_ctx_t ctx, xio_route_t route) const {
  if (route != XIO_ROUTE_RDMA && route != XIO_ROUTE_SDMA)
    fail(XIO_ERR_ARG, "xio_ctx_stats: route {} has no rings to count; ask for XIO_ROUTE_RDMA or XIO_ROUTE_SDMA",
         static_cast<int>(route));
  xio_engine_stats_t out = XIO_ENGINE_STATS_INIT;
  contexts_.get(ctx.id).stats(route == XIO_ROUTE_RDMA ? dev::route::rdma : dev::route::sdma, out);
  return out;
}

xio_error_info_t world::ctx_error(xio_ctx_t ctx) const {
  const context& c = contexts_.get(ctx.id);
  const std::uint32_t used = c.storages_used();
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  std::uint64_t when = 0;
  const auto of_storages = [&](auto find) {
    for (const auto& [id, s] : storages_.live())
      if ((used >> s->slot() & 1) != 0 && find(s->rings())) return true;
    return false;
  };
  // A queue that has stopped, else the last op of a drive that failed by itself.
  if (!c.ring_failure(info, when) && !of_storages([&](const auto& rings) { return find_stopped(rings, info, when); }))
    of_storages([&](const auto& rings) { return find_failure(rings, {}, info, when); });
  // The last failure: a call's own, unless it only met what its engine had recorded.
  dev::call_record call{};
  if (!c.failed_call(call)) return info;
  const auto status = static_cast<xio_status_t>(static_cast<std::int32_t>(call.status));
  const bool own = info.status == XIO_OK || (status != info.status && call.clock > when);
  return own ? call_error(call, status) : info;
}

xio_error_info_t world::call_error(const dev::call_record& call, xio_status_t status) const {
  const call_place here{reinterpret_cast<std::uint64_t>(heap_->data()), heap_->size(), static_cast<std::uint32_t>(n_)};
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  info.status = status;
  info.engine = "device";
  put_sentence(info, call_text(call, here));
  return info;
}

// --- Storage -----------------------------------------------------------------------------------------

xio_storage_t world::open_storage(const char* name, const xio_storage_attr_t* attr) {
  program::check_storage("xio_storage_open");
  const xio_storage_attr_t a = choose_storage(attr, options_);
  std::uint32_t taken = 0;
  for (const auto& [id, s] : storages_.live()) taken |= 1u << s->slot();
  const auto slot = static_cast<std::uint32_t>(std::countr_one(taken));
  if (slot >= dev::k_max_storages)
    fail(XIO_ERR_NO_MEMORY, "xio_storage_open: {} storages are open and that is the most; close one before '{}'",
         dev::k_max_storages, name);
  dev::storage_view* row = &view_.as<dev::world_view>()->storages[slot];
  for (const auto& [id, c] : contexts_.live()) c->forget_storage(slot);
  const auto serial = static_cast<std::uint32_t>(storages_.serial(storages_.next()));
  options o = options_;
  o.ticket_start = std::max(o.ticket_start, first_tickets_[slot]);
  return xio_storage_t{row, storages_.add(std::make_unique<storage>(*engines_, o, name, a, row, slot, serial))};
}

void world::close_storage(xio_storage_t s) {
  const storage& closing = storages_.get(s.id);
  // Queues begin at a lap of their CQ, which has less entries than this: a request of the closed storage is none of
  // those that the next one in its place gives.
  constexpr std::uint64_t lap = std::uint64_t{1} << 16;
  std::uint64_t& first = first_tickets_[closing.slot()];
  first = std::max(first, (closing.next_ticket() / lap + 1) * lap);
  storages_.remove(s.id);
}

xio_engine_stats_t world::storage_stats(xio_storage_t s) const {
  xio_engine_stats_t out = XIO_ENGINE_STATS_INIT;
  add_stats(storages_.get(s.id).rings(), out);
  return out;
}

}  // namespace xio
