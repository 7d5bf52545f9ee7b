// SPDX-License-Identifier: MIT
// How contexts end, and begin again. docs/ordering.md has the contract, docs/decisions/0080 the reasons.
#include "base/error.hpp"
#include "ctx/attempt.hpp"
#include "ctx/context_book.hpp"
#include "xio/wire/inbox.hpp"

namespace xio {

// Ends what this PE's engines do for a ctx. Needs no other PE.
void context_book::stop(context& c) {
  const std::uint32_t used = c.storages_used();
  c.stop();
  // Commands have this long to end by themselves. It is less than other PEs wait for this one, and added to that time
  // where they have not come little.
  std::chrono::milliseconds patience{1000};
  if (g_.opts.timeout_ms != 0) patience = std::min(patience, std::chrono::milliseconds(g_.opts.timeout_ms / 8));
  g_.storages.end_commands(used, patience);
}

// While the others come this PE still serves what their kernels do: one that is done early must not fail those that are
// not.
void context_book::call_all(call what, xio_ctx_t ctx) {
  g_.members.agree().vote(what, [&] {
    contexts_.get(ctx.id);
    return arguments{{"the ctx's number", contexts_.serial(ctx.id)}};
  });
}

// Whether the others came or not, this PE's own side is stopped then.
void context_book::destroy(xio_ctx_t ctx) {
  const bootstrap::one_call whole = g_.members.one_call();
  const auto met = attempt([&] { call_all(call::ctx_destroy, ctx); });
  if (met && !contexts_.has(ctx.id)) std::rethrow_exception(met);
  context& c = contexts_.get(ctx.id);
  stop(c);
  if (met) std::rethrow_exception(met);
  const std::uint64_t inboxes = c.inboxes();
  contexts_.remove(ctx.id);
  // From here on it is gone, also where a PE ends meanwhile.
  g_.members.note({call::ctx_destroy, contexts_.serial(ctx.id)}, [&] { return g_.heap.digest_without(inboxes); });
  if (inboxes == 0) return;
  // Until its queue pairs are gone a peer may still be putting an immediate there. One that does not come any more has
  // none, or is left out.
  const auto last = attempt([&] { g_.members.agree().each(call::ctx_destroy, [] {}); });
  g_.heap.give_back(inboxes);
  if (last) std::rethrow_exception(last);
}

// Local: the others do the same, or have done it.
void context_book::end(std::uint64_t id) {
  context& c = contexts_.get(id);
  stop(c);
  const std::uint64_t inboxes = c.inboxes();
  contexts_.remove(id);
  g_.heap.give_back(inboxes);
}

void context_book::clear_inboxes(const context& c) {
  if (c.inboxes() != 0)
    gpu::fill_zero(g_.heap.data() + c.inboxes(),
                   static_cast<std::size_t>(g_.members.size()) * wire::inbox::bytes(c.immediates()));
}

// A barrier that failed was counted by the PEs that came to it, and not by the others.
void context_book::agree_on_epoch() {
  std::uint64_t* at = &g_.view->barrier_epoch;
  dev::living_view* living = nullptr;
  gpu::copy(&living, &g_.view->living, sizeof living);  // NOLINT(bugprone-sizeof-expression): the pointer
  if (living != nullptr) at = &living->epoch;
  std::uint64_t mine = 0;
  gpu::copy(&mine, at, sizeof mine);
  const auto all = bootstrap::allgather_value(g_.members.channel(), mine);
  const std::uint64_t newest = *std::ranges::max_element(all);
  if (newest != mine) gpu::put_value(at, newest);
}

// A device that has failed for good has taken with it what was made on it. So all PEs open their endpoints anew, and
// every ctx that had queue pairs is stopped until it is recovered, too: its keys are those of the endpoint before.
void context_book::reopen_lost_devices(call what) {
  const auto all = bootstrap::allgather_value(g_.members.channel(), std::uint32_t{g_.all_engines.rdma_is_lost()});
  if (std::ranges::find(all, 1u) == all.end()) return;
  for (const auto& [id, c] : contexts_.live())
    if (c->plan().needs(dev::route::rdma)) c->stop();
  g_.members.agree().each(what, [] {});
  const auto opened = attempt([&] { g_.all_engines.reopen_rdma(); });
  try {
    g_.members.agree().each(what, [&] {
      if (opened) std::rethrow_exception(opened);
    });
  } catch (...) {
    g_.all_engines.lose_rdma();
    throw;
  }
}

void context_book::recover(xio_ctx_t ctx) {
  const bootstrap::one_call whole = g_.members.one_call();
  // Before anything is stopped: where a PE does not come, kernels go on with the ctx as it is.
  call_all(call::ctx_recover, ctx);
  context& c = contexts_.get(ctx.id);
  stop(c);
  const std::uint32_t used = c.storages_used();
  try {
    // From here on nothing of the ctx is under way between any two PEs.
    g_.members.agree().each(call::ctx_recover, [] {});
    reopen_lost_devices(call::ctx_recover);
    const auto agreed = attempt([&] { agree_on_epoch(); });
    g_.members.agree().each(call::ctx_recover, [&] {
      if (agreed) std::rethrow_exception(agreed);
      clear_inboxes(c);
      c.begin_again(g_.all_engines);
    });
    const auto connected = attempt([&] { c.connect(g_.all_engines); });
    g_.members.agree().each(call::ctx_recover, [&] {
      if (connected) std::rethrow_exception(connected);
      g_.storages.go_on(used);
      c.publish(g_.waits, contexts_.serial(ctx.id));
    });
  } catch (...) {
    c.give_up();
    throw;
  }
}

}  // namespace xio
