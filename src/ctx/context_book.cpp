// SPDX-License-Identifier: MIT
#include "ctx/context_book.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/attempt.hpp"
#include "ctx/hdp.hpp"
#include "ctx/peer_atomics.hpp"
#include "ctx/program.hpp"
#include "xio/wire/inbox.hpp"

namespace xio {

void context_book::check_program() const {
  ctx_settings settings = choose_ctx(nullptr, g_.opts);
  program::fit(settings);
  program::check_routes("xio_init", plan_of(settings), flushes_hdp());
}

// One for each PE, in the symmetric heap; 0: none are wanted.
std::uint64_t context_book::take_inboxes(std::uint32_t immediates) {
  if (immediates == 0) return 0;
  const std::size_t bytes = static_cast<std::size_t>(g_.members.size()) * wire::inbox::bytes(immediates);
  const std::uint64_t offset = g_.heap.take({"xio_ctx_create", 1, bytes});
  gpu::fill_zero(g_.heap.data() + offset, bytes);
  return offset;
}

void context_book::check_reach(const ctx_settings& settings, const route_plan& plan) {
  for (int pe = 0; pe < g_.members.size(); ++pe) {
    if (!plan.to[static_cast<std::size_t>(pe)].uses(dev::route::rdma)) continue;
    rdma::endpoint& e = g_.all_engines.open_rdma();
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

route_plan context_book::plan_of(ctx_settings& settings) const {
  if (!g_.heap.direct_obstacle().empty()) avoid_direct(settings, g_.heap.direct_obstacle());
  std::vector<bool> mapped;
  for (const unsigned char* base : g_.heap.peers().bases()) mapped.push_back(base != nullptr);
  std::vector<bool> excluded;
  for (int pe = 0; pe < g_.members.size(); ++pe) excluded.push_back(!g_.members.takes_part(pe));
  route_plan plan = plan_routes(settings, mapped, g_.members.me(), excluded);
  plan.flush = flush_route(g_.hdp.decision());
  return plan;
}

bool context_book::has_rdma() const {
  const auto& all = contexts_.live();
  return std::ranges::any_of(all, [](const auto& c) { return c.second->plan().needs(dev::route::rdma); });
}

// The caller must release *inboxes, even if this throws.
std::unique_ptr<context> context_book::make(const xio_ctx_attr_t* attr, const xio_ctx_t* out, std::uint64_t* inboxes) {
  ctx_settings settings{};
  route_plan plan;
  g_.members.agree().vote(call::ctx_create, [&] {
    if (out == nullptr) fail(XIO_ERR_ARG, "xio_ctx_create: ctx is null; give a pointer");
    settings = choose_ctx(attr, g_.opts);
    program::check_layout("xio_ctx_create");
    program::fit(settings);
    plan = plan_of(settings);
    program::check_routes("xio_ctx_create", plan, flushes_hdp());
    // The start of the software devices' thread may fail on one PE alone, so it comes before the PEs exchange anything.
    if (plan.needs(dev::route::rdma)) (void)g_.all_engines.machine();
    return arguments{{"the route", static_cast<std::uint64_t>(settings.route)},
                     {"the ring's depth (XIO_RING_DEPTH or attr.ring_depth)", settings.depth},
                     {"the queue pairs to each PE (XIO_RDMA_QUEUES)", settings.queues},
                     {"the number of contexts in the pool (XIO_CTX_POOL or attr.pool)", settings.pool},
                     {"the size for copy engines (XIO_SDMA_THRESHOLD or attr.bulk_bytes)", settings.bulk_bytes},
                     {"whether NICs flush the HDP (XIO_HDP)", plan.flush == dev::route::rdma}};
  });
  // Every PE comes here with the same plan in kind: if one needs RDMA, all do, and all have the same contexts. One that
  // is still there has to be recovered first: it hears of the new devices so.
  if (plan.needs(dev::route::rdma) && !has_rdma()) reopen_lost_devices(call::ctx_create);
  const bool was_open = g_.all_engines.rdma_is_open();
  const auto opened = attempt([&] {
    if (plan.needs(dev::route::rdma)) g_.all_engines.open_rdma();
  });
  if (settings.queues == 0)
    settings.queues = g_.all_engines.rdma_is_open() ? std::bit_ceil(g_.all_engines.open_rdma().nics()) : 1;
  auto c = std::make_unique<context>(settings, plan, g_.view, g_.heap.peers(), g_.opts.ticket_start);
  try {
    g_.members.agree().vote(call::ctx_create, [&] {
      if (opened) std::rethrow_exception(opened);
      check_reach(settings, plan);
      *inboxes = take_inboxes(settings.immediates);
      c->place_inboxes(*inboxes);
      c->prepare(g_.all_engines);
      return arguments{{"immediates", settings.immediates}, {"the offset of its inboxes in the heap", *inboxes}};
    });
  } catch (...) {
    // Open on some PEs only it would part them at the next ctx, since opening exchanges.
    c.reset();
    if (!was_open) g_.all_engines.close_rdma();
    throw;
  }
  const auto connected = attempt([&] { c->connect(g_.all_engines); });
  g_.members.agree().each(call::ctx_create, [&] {
    if (connected) std::rethrow_exception(connected);
    c->publish(g_.waits, contexts_.serial(contexts_.next()));
    c->show_value(c->value(contexts_.next()));
  });
  return c;
}

void context_book::create(const xio_ctx_attr_t* attr, xio_ctx_t* out) {
  if (out != nullptr) *out = {};
  const bootstrap::one_call whole = g_.members.one_call();
  const std::uint64_t moved = g_.members.channel().bytes_moved();
  std::uint64_t inboxes = 0;
  std::unique_ptr<context> c;
  try {
    c = make(attr, out, &inboxes);
  } catch (...) {
    g_.heap.give_back(inboxes);
    throw;
  }
  const std::uint64_t id = contexts_.add(std::move(c));
  *out = contexts_.get(id).value(id);
  g_.members.note({call::ctx_create, contexts_.serial(id), 0, 0, true}, [&] { return g_.heap.digest(); });
  log::debug("xio_ctx_create has moved {} bytes of this PE by the bootstrap",
             g_.members.channel().bytes_moved() - moved);
}

dev::route context_book::route_of(xio_ctx_t ctx, int pe, std::size_t bytes) const {
  const route_plan& plan = contexts_.get(ctx.id).plan();
  if (pe < 0 || pe >= g_.members.size())
    fail(XIO_ERR_PE, "PE {} is not one of this world's 0 to {}", pe, g_.members.size() - 1);
  if (g_.members.states().is_excluded(pe)) fail(XIO_ERR_PEER, "PE {} was excluded, and has no route", pe);
  const way& w = plan.to[static_cast<std::size_t>(pe)];
  return bytes >= plan.bulk_bytes ? w.bulk : w.small;
}

xio_engine_stats_t context_book::stats(xio_ctx_t ctx, xio_route_t route) const {
  if (route != XIO_ROUTE_RDMA && route != XIO_ROUTE_SDMA)
    fail(XIO_ERR_ARG, "xio_ctx_stats: route {} has no rings to count; ask for XIO_ROUTE_RDMA or XIO_ROUTE_SDMA",
         static_cast<int>(route));
  xio_engine_stats_t out = XIO_ENGINE_STATS_INIT;
  contexts_.get(ctx.id).stats(route == XIO_ROUTE_RDMA ? dev::route::rdma : dev::route::sdma, out);
  return out;
}

void context_book::forget_storage(std::uint32_t row) {
  for (const auto& [id, c] : contexts_.live()) c->forget_storage(row);
}

void context_book::clear() {
  for (const auto& [id, c] : contexts_.live()) log::debug("xio_finalize destroys ctx {}", contexts_.serial(id));
  contexts_.clear();
}

}  // namespace xio
