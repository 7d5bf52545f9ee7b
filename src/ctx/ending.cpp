// SPDX-License-Identifier: MIT
// How contexts end, and begin again. docs/ordering.md has the contract, docs/decisions/0080 the reasons.
#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "ctx/attempt.hpp"
#include "ctx/world.hpp"
#include "xio/wire/inbox.hpp"

namespace xio {

// Ends what this PE's engines do for a ctx. Needs no other PE.
void world::stop(context& c) {
  const std::uint32_t used = c.storages_used();
  c.stop();
  // Commands have this long to end by themselves: it is less than other PEs wait for this one.
  std::chrono::milliseconds patience{1000};
  if (options_.timeout_ms != 0) patience = std::min(patience, std::chrono::milliseconds(options_.timeout_ms / 2));
  for (const auto& [id, s] : storages_.live())
    if ((used >> s->slot() & 1) != 0) s->end_commands(patience);
}

// While the others come this PE still serves what their kernels do: one that is done early must not fail those that are
// not. Whether they came or not, then, its own side is stopped.
context& world::stop_together(call what, xio_ctx_t ctx) {
  const auto met = attempt([&] {
    agreement_.vote(what, [&] {
      contexts_.get(ctx.id);
      return arguments{{"the ctx's number", contexts_.serial(ctx.id)}};
    });
  });
  if (met && !contexts_.has(ctx.id)) std::rethrow_exception(met);
  context& c = contexts_.get(ctx.id);
  stop(c);
  if (met) std::rethrow_exception(met);
  return c;
}

void world::destroy_ctx(xio_ctx_t ctx) {
  const std::uint64_t inboxes = stop_together(call::ctx_destroy, ctx).inboxes();
  contexts_.remove(ctx.id);
  if (inboxes == 0) return;
  // Until its queue pairs are gone a peer may still be putting an immediate there.
  agreement_.each(call::ctx_destroy, [] {});
  allocator_->release(inboxes);
}

void world::clear_inboxes(const context& c) {
  if (c.inboxes() != 0)
    gpu::fill_zero(heap_->data() + c.inboxes(), static_cast<std::size_t>(n_) * wire::inbox::bytes(c.immediates()));
}

// A barrier that failed was counted by the PEs that came to it, and not by the others.
void world::agree_on_epoch() {
  std::uint64_t* at = &view_.as<dev::world_view>()->barrier_epoch;
  std::uint64_t mine = 0;
  gpu::copy(&mine, at, sizeof mine);
  const auto all = bootstrap::allgather_value(*channel_, mine);
  const std::uint64_t newest = *std::max_element(all.begin(), all.end());
  if (newest != mine) gpu::put_value(at, newest);
}

// A device that has failed for good has taken with it what was made on it. So all PEs open their endpoints anew, and
// every ctx that had queue pairs is stopped until it is recovered, too: its keys are those of the endpoint before.
void world::reopen_lost_devices(call what) {
  const auto all = bootstrap::allgather_value(*channel_, std::uint32_t{engines_->rdma_is_lost()});
  if (std::find(all.begin(), all.end(), 1u) == all.end()) return;
  for (const auto& [id, c] : contexts_.live())
    if (c->plan().needs(dev::route::rdma)) c->stop();
  agreement_.each(what, [] {});
  const auto opened = attempt([&] { engines_->reopen_rdma(); });
  try {
    agreement_.each(what, [&] {
      if (opened) std::rethrow_exception(opened);
    });
  } catch (...) {
    engines_->lose_rdma();
    throw;
  }
}

void world::recover_ctx(xio_ctx_t ctx) {
  context& c = stop_together(call::ctx_recover, ctx);
  const std::uint32_t used = c.storages_used();
  try {
    // From here on nothing of the ctx is under way between any two PEs.
    agreement_.each(call::ctx_recover, [] {});
    reopen_lost_devices(call::ctx_recover);
    const auto agreed = attempt([&] { agree_on_epoch(); });
    agreement_.each(call::ctx_recover, [&] {
      if (agreed) std::rethrow_exception(agreed);
      clear_inboxes(c);
      c.begin_again(*engines_);
    });
    const auto connected = attempt([&] { c.connect(*engines_); });
    agreement_.each(call::ctx_recover, [&] {
      if (connected) std::rethrow_exception(connected);
      for (const auto& [id, s] : storages_.live())
        if ((used >> s->slot() & 1) != 0) s->go_on();
      c.publish();
    });
  } catch (...) {
    c.give_up();
    throw;
  }
}

}  // namespace xio
