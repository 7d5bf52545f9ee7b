// SPDX-License-Identifier: MIT
// How the PEs that live go on without the others: a view that all agree on, and what they keep alike made so again.
// docs/decisions/0181 has the reasons.

#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/world.hpp"

namespace xio {
namespace {

constexpr std::uint64_t k_words_bytes = dev::k_barrier_rounds * sizeof(std::uint64_t);

bool is_kind(const bootstrap::call_report& r, call what) {
  return (r.kind & ~bootstrap::k_goes_back) == static_cast<std::uint64_t>(what);
}

}  // namespace

// Of barriers among the living: each view that PEs leave has words of its own, and there are n - 1 of these at most.
void world::reserve_for_views() {
  const auto views = static_cast<std::size_t>(members_.size()) - 1;
  if (views != 0) {
    barrier_words_ = heap_->take({"xio_init", views, k_words_bytes});
    gpu::fill_zero(heap_->data() + barrier_words_, views * k_words_bytes);
  }
  members_.note_alike(0, heap_->digest());
}

// Does on this PE what others have completed, or undoes what others have not.
void world::finish_call(const bootstrap::common_state& s, xio_shrink_report_t& report) {
  const bootstrap::call_report& last = s.last;
  const bool behind = members_.last_call().calls < last.calls;
  if (s.in_doubt == 0) return;
  log::info("PE {} {} call {}, of kind {}, which was complete on some PEs only", members_.me(),
            behind ? "makes up for" : "has completed", last.calls, last.kind);
  if (is_kind(last, call::malloc) && behind) {
    const std::uint64_t at = heap_->take({"xio_world_shrink", 1, last.b, last.c});
    report.block = at != 0 ? heap_->data() + at : nullptr;
    report.is_done = at != 0 ? 1 : 0;
  } else if (is_kind(last, call::free) && behind) {
    if (last.a != 0 && heap_->has_block(last.a)) heap_->give_back(last.a);
    report.is_done = 1;
  } else if (is_kind(last, call::ctx_create)) {
    behind ? contexts_->skip() : contexts_->undo_create(last.a);
  } else if (is_kind(last, call::team_create)) {
    behind ? teams_->skip() : teams_->undo_create(last.a);
  } else if (is_kind(last, call::ctx_destroy) && behind) {
    contexts_->destroy_late(last.a);
    report.is_done = 1;
  } else if (is_kind(last, call::team_destroy) && behind) {
    teams_->destroy_late(last.a);
    report.is_done = 1;
  }
}

void world::enter_view(const bootstrap::members_channel::decision& d) {
  const std::vector<int> gone = d.gone.list();
  if (gone.empty()) return;
  for (const int pe : d.dead.list()) members_.states().vouch_dead(pe, "a PE of the world has proven it");
  (void)exclude(gone);
  if (!(d.gone - d.dead).empty()) teams_->keep_memory();
  const std::vector<int> living = members_.everybody();
  const std::vector<std::uint32_t> pes(living.begin(), living.end());
  gpu::buffer row(sizeof(dev::living_view) + pes.size() * sizeof pes[0], gpu::place::device);
  auto* const list = reinterpret_cast<std::uint32_t*>(row.as<dev::living_view>() + 1);
  dev::living_view v{};
  v.words = barrier_words_ + views_.size() * k_words_bytes;
  v.pes = list;
  v.n = static_cast<std::uint32_t>(pes.size());
  while (pes[v.place] != static_cast<std::uint32_t>(members_.me())) ++v.place;
  gpu::copy(list, pes.data(), pes.size() * sizeof pes[0]);
  gpu::copy(row.data(), &v, sizeof v);
  gpu::put_value(&view_.get()->living, row.as<dev::living_view>());
  views_.push_back(std::move(row));
}

xio_shrink_report_t world::shrink() {
  bootstrap::members_channel* const members = members_.survivors();
  if (members == nullptr)
    fail(XIO_ERR_STATE,
         "xio_world_shrink: this world was not made to outlive its PEs; set XIO_SURVIVE=1 on every PE before xio_init, "
         "or start with xiorun --survive");
  xio_shrink_report_t report = XIO_SHRINK_REPORT_INIT;
  struct at_the_end {
    bootstrap::members_channel* members;
    ~at_the_end() { members->end_shrink(); }
  } const end{members};
  for (bool complete = false; !complete;) {
    const auto d = members->shrink(members_.last_call());
    finish_call(d.state, report);
    enter_view(d);
    report.messages += static_cast<std::uint32_t>(d.messages);
    report.n_gone += d.gone.count();
    report.n_dead += d.dead.count();
    complete = d.is_complete;
    if (d.state.alike == 0 || heap_->digest() != d.state.hash())
      fail(
          XIO_ERR_INTERNAL,
          "xio_world_shrink: the symmetric heaps of the PEs differ behind call {}; this is a bug of XIO, and the world "
          "can only be ended",
          d.state.last.calls);
    members_.note_alike(d.state.last.calls, d.state.hash());
  }
  contexts_->close_unused_nics();
  report.view = members->view();
  report.n_living = members->members().count();
  report.heap_hash = heap_->digest();
  log::info("PE {} is in view {} of the world with {} PEs; {} have left, {} of them proven to be dead", members_.me(),
            report.view, report.n_living, report.n_gone, report.n_dead);
  return report;
}

}  // namespace xio
