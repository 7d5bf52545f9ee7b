// SPDX-License-Identifier: MIT
// A ctx: the structures in device memory that its kernels read, and the queues behind them.
#pragma once
#include "ctx/engines.hpp"
#include "ctx/rings.hpp"
#include "ctx/route.hpp"
#include "ctx/wait_book.hpp"

namespace xio {

// Made in three steps, because queue pairs are exchanged in the middle: prepare (local), connect (collective),
// publish (local). After a failure it is stopped, and made anew in the same places by begin_again (local) in the place
// of prepare. Lane 0 is the ctx itself, lanes 1.. are its pool for xio_ctx_create_wg.
class context {
 public:
  // Everything given must outlive the context.
  context(const ctx_settings& settings, route_plan plan, dev::world_view* world, const direct::peers& peers,
          std::uint64_t ticket_start);
  ~context();
  context& operator=(context&&) = delete;

  // Where its inboxes lie in every heap; zeroed. Before connect.
  void place_inboxes(std::uint64_t offset) { inboxes_ = offset; }
  void prepare(engines& e);
  void connect(engines& e);
  void publish(wait_book& waits, std::uint64_t serial);

  // Takes its queues from all engines. On return none of its ops reads or writes memory any more, even if peers go on;
  // its rings then refuse work with XIO_ERR_STATE. No kernel may be using it. A second call does nothing.
  void stop() noexcept;
  // Of a ctx that was stopped: throws XIO_ERR_STATE if requests have no numbers left for new rings.
  void begin_again(engines& e);
  // Called when a PE, this one or another, has failed since begin_again: the ctx is stopped, as before.
  void give_up() noexcept;

  // Takes the queues to these PEs from their engines, and refuses ops to them from now on. Kernels may be using it.
  void exclude(const std::vector<int>& pes);
  // Why a queue to that PE failed, where it may be for its silence; or "".
  std::string silence_of(int pe) const;

  // The value that kernels get; call it after publish.
  xio_ctx_t value(std::uint64_t id) const;
  dev::ctx_view* view() const { return views_; }
  const route_plan& plan() const { return plan_; }
  std::uint64_t inboxes() const { return inboxes_; }  // 0: none
  std::uint32_t immediates() const { return settings_.immediates; }

  // Adds the counters of its rings of that way, the pool's included.
  void stats(dev::route way, xio_engine_stats_t& out) const;
  // The ring that failed last, and its clock then; false if none has.
  bool ring_failure(xio_error_info_t& info, std::uint64_t& clock) const {
    const counted_queues there = connected_rings();
    return find_failure(there.rings, there.peers, info, clock);
  }
  // The last call of kernels that failed, the pool's included; false if none has.
  bool failed_call(dev::call_record& last) const;
  // Bit per storage slot that kernels posted to through this ctx.
  std::uint32_t storages_used() const;
  // Another storage is about to take that slot.
  void forget_storage(std::uint32_t slot);
  // The first failure of its calls on streams, an xio_status or 0: host memory that kernels store to.
  std::uint32_t* stream_failed() const { return stream_failed_.as<std::uint32_t>(); }
  // The value as it was first, in device memory: for callers that pass kernels a word.
  void show_value(const xio_ctx_t& ctx);
  const xio_ctx_t* shown_value() const { return value_.as<xio_ctx_t>(); }
  // As if no call of kernels or on a stream had failed. No kernel may be using it.
  void forget_failures();

 private:
  std::uint32_t lanes() const { return settings_.pool + 1; }
  std::size_t n_pes() const { return plan_.to.size(); }
  bool has_rings() const { return rings_per_lane_ != 0; }
  // The queues that engines hold for it.
  struct queues {
    std::vector<std::unique_ptr<rdma::queue_set>> pairs;
    std::vector<std::unique_ptr<sdma::queue>> copies;
    // To flush the HDP by, for all lanes: see route_plan::flush.
    std::unique_ptr<rdma::queue_set> flush_pairs;
    std::unique_ptr<sdma::queue> flush_copies;
    void stop() const noexcept;
  };
  void refuse_peer(std::uint32_t lane, int pe);
  bool lose_rings(std::uint32_t lane, const std::vector<int>& pes, bool (*lose)(const dev::ring_view&));
  void stop_queues(const std::vector<int>& pes) noexcept;
  void register_scratch();
  void refuse_work() const noexcept;
  void clear_bitmaps();
  void open_copy_queues(engines& e);
  void collect_rings(std::uint32_t lane);
  void write_rings();
  counted_queues connected_rings() const;
  void show_connected(std::uint32_t lane, int pe);
  void fill_peers(std::uint32_t lane);
  void fill_view(std::uint32_t lane);
  rdma::queue_request flush_request(rdma::endpoint& e);
  rdma::queue_request lane_request() const;
  void fill_flush_rings();

  ctx_settings settings_;
  route_plan plan_;
  dev::world_view* world_;
  const direct::peers& peers_;
  std::uint64_t ticket_start_;

  std::uint64_t inboxes_ = 0;

  wait_book* waits_ = nullptr;  // from publish on
  std::string labels_;          // there
  bool uses_rdma_;
  std::uint32_t rings_per_lane_ = 0;  // from prepare on
  std::uint32_t first_index_ = 0;     // of its rings; grows when it is made anew, so that old requests find none
  engines* scratch_owner_ = nullptr;
  std::uint32_t scratch_opening_ = 0;  // of engines, the endpoint that has scratch_keys_
  rdma::memory_keys scratch_keys_{};

  dev::ctx_view* views_ = nullptr;  // one per lane; buried in the end
  gpu::buffer peer_rows_;           // peer_view, n_pes per lane; one set for all lanes if there are no rings
  gpu::buffer ring_rows_;           // ring_view, rings_per_lane_ per lane; then as many for those that are dormant
  gpu::buffer scratch_;             // k_scratch_words per lane
  gpu::buffer scratch_used_;        // a bit for each
  gpu::buffer pool_used_;
  mutable std::mutex rings_lock_;      // of rings_ while queue pairs are connected one by one
  std::vector<dev::ring_view> rings_;  // what ring_rows_ holds, of all lanes
  std::vector<int> ring_peers_;        // the PE that each of them leads to
  gpu::buffer flush_rows_;
  gpu::buffer stream_failed_;
  gpu::buffer value_;
  std::vector<dev::ring_view> flush_rings_;  // what flush_rows_ holds
  std::uint32_t flush_ring_count_ = 0;
  queues queues_;
  std::vector<int> excluded_;
  std::vector<queues> old_;  // others that were stopped, whose memory views may still name
  bool stopped_ = false;
};

}  // namespace xio
