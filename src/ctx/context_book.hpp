// SPDX-License-Identifier: MIT
// The contexts of a world: how all PEs make, end and recover them together.
#pragma once
#include "ctx/context.hpp"
#include "ctx/shared_heap.hpp"
#include "ctx/storage_book.hpp"
#include "memory/hdp_flusher.hpp"

namespace xio {

class context_book {
 public:
  // A ctx is made of these; all of them must outlive the book.
  struct ground {
    const options& opts;
    membership& members;
    shared_heap& heap;
    dev::world_view* view;  // in device memory
    engines& all_engines;
    const memory::hdp_flusher& hdp;
    storage_book& storages;
    wait_book& waits;
  };
  // world: see handles.
  context_book(const ground& g, std::uint32_t world) : g_(g), contexts_("ctx", "destroyed", world) {}

  // Throws where a ctx without attributes cannot be, for what the program was built without.
  void check_program() const;

  // Collective.
  void create(const xio_ctx_attr_t* attr, xio_ctx_t* out);
  // Even if another PE makes it fail, this PE's side of the ctx is stopped before it returns or throws.
  void destroy(xio_ctx_t ctx);
  // Changes nothing where not all PEs come. A later failure leaves the ctx stopped.
  void recover(xio_ctx_t ctx);

  // Local. Takes these PEs out of every ctx. Kernels may be running.
  void exclude(const std::vector<int>& pes);
  xio_ctx_t refreshed(xio_ctx_t ctx) const { return contexts_.get(ctx.id).value(ctx.id); }
  // As those of team_book.
  void undo_create(std::uint64_t serial) { end(contexts_.id_of(serial)); }
  void skip() { contexts_.skip(); }
  void destroy_late(std::uint64_t serial) {
    if (contexts_.has(contexts_.id_of(serial))) end(contexts_.id_of(serial));
  }
  // Where no ctx needs the NICs, they are opened by the next one, on all PEs alike.
  void close_unused_nics() {
    if (!has_rdma()) g_.all_engines.close_rdma();
  }
  // The sentence of queues of any ctx against that PE, or "".
  std::string silence_of(int pe) const;

  const context& get(xio_ctx_t ctx) const { return contexts_.get(ctx.id); }
  context& get(xio_ctx_t ctx) { return contexts_.get(ctx.id); }
  dev::route route_of(xio_ctx_t ctx, int pe, std::size_t bytes) const;
  xio_engine_stats_t stats(xio_ctx_t ctx, xio_route_t route) const;
  // Another storage is about to take that row.
  void forget_storage(std::uint32_t row);
  void clear();

 private:
  std::unique_ptr<context> make(const xio_ctx_attr_t* attr, const xio_ctx_t* out, std::uint64_t* inboxes);
  std::uint64_t take_inboxes(std::uint32_t immediates);
  // Changes the route where loads and stores cannot be.
  route_plan plan_of(ctx_settings& settings) const;
  bool flushes_hdp() const { return g_.hdp.view().way != dev::hdp_way::none; }
  void check_reach(const ctx_settings& settings, const route_plan& plan);
  bool has_rdma() const;
  // ending.cpp
  void stop(context& c);
  void end(std::uint64_t id);
  void call_all(call what, xio_ctx_t ctx);
  void clear_inboxes(const context& c);
  void agree_on_epoch();
  void reopen_lost_devices(call what);

  ground g_;
  handles<context> contexts_;
};

}  // namespace xio
