// SPDX-License-Identifier: MIT
// A world: PEs that found each other and what they have together, one part for each subject. The C API (api.cpp) is a
// thin skin over the parts. Calls of one world are made by one thread at a time, so parts have no locks, but for what
// any thread may free or register: that lock is in engines.hpp.
#pragma once
#include "ctx/context_book.hpp"
#include "ctx/graveyard.hpp"
#include "ctx/team_book.hpp"
#include "ctx/wait_book.hpp"
#include "xio/peers.h"

namespace xio {

class world {
 public:
  // Collective. Throws on every PE or on none.
  world(options o, std::unique_ptr<bootstrap::channel> channel);
  world& operator=(world&&) = delete;

  // Collective. Closes everything; throws afterwards if a PE could not be waited for. Closes nothing if a kernel of
  // this process does not end: then it is in_use(), and must not be destroyed.
  void finalize();
  bool in_use() const { return in_use_; }

  membership& members() { return members_; }
  const membership& members() const { return members_; }
  shared_heap& heap() { return *heap_; }
  const shared_heap& heap() const { return *heap_; }
  engines& local_memory() { return *engines_; }
  const engines& local_memory() const { return *engines_; }
  context_book& contexts() { return *contexts_; }
  const context_book& contexts() const { return *contexts_; }
  team_book& teams() { return *teams_; }
  const team_book& teams() const { return *teams_; }
  storage_book& storages() { return *storages_; }
  const storage_book& storages() const { return *storages_; }
  const wait_book& waits() const { return *waits_; }

  // These need several parts at once.
  xio_storage_t open_storage(const char* name, const xio_storage_attr_t* attr);
  void close_storage(xio_storage_t s);
  xio_error_info_t ctx_error(xio_ctx_t ctx) const;
  xio_pe_info_t pe_state(int pe);
  // Local. Returns those of them that can still store to this PE's heap.
  std::vector<int> exclude(const std::vector<int>& pes);
  xio_shrink_report_t shrink();

 private:
  void publish();  // writes the view that kernels read
  void wait_for_kernels();
  // shrinking.cpp
  void reserve_for_views();
  void finish_call(const bootstrap::common_state& s, xio_shrink_report_t& report);
  void enter_view(const bootstrap::members_channel::decision& d);
  void close_all();

  options options_;
  bool in_use_ = false;
  // Later members use earlier ones; they go in reverse, and finalize() ends them in that order, too: contexts before
  // the storages and engines that their ops are in, engines before the heap that they reach, the heap once no PE has
  // it mapped, and last the channel by which PEs say so. All but the first are there from the constructor's end on.
  membership members_;
  std::optional<shared_heap> heap_;
  std::optional<wait_book> waits_;
  std::unique_ptr<dev::world_view, graveyard::burial> view_;
  gpu::buffer pe_states_;  // see peer_states::show_at
  std::uint64_t barrier_words_ = 0;
  std::vector<gpu::buffer> views_;  // living_view of each view that PEs have left
  std::unique_ptr<memory::hdp_flusher> hdp_;
  std::unique_ptr<engines> engines_;
  std::optional<storage_book> storages_;
  std::optional<context_book> contexts_;
  std::optional<team_book> teams_;
};

}  // namespace xio
