// SPDX-License-Identifier: MIT
// A world: PEs that found each other, their symmetric heap, contexts and storages. The C API (api.cpp) is a thin skin
// over it. Calls are made by one thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "bootstrap/bootstrap.hpp"
#include "ctx/agreement.hpp"
#include "ctx/context.hpp"
#include "ctx/engines.hpp"
#include "ctx/handles.hpp"
#include "ctx/storage.hpp"
#include "ctx/team.hpp"
#include "gpu/gpu.hpp"
#include "memory/allocator.hpp"
#include "memory/hdp_flusher.hpp"
#include "topology/placement.hpp"
#include "transport/direct/peers.hpp"
#include "xio/xio.h"

namespace xio {

class world {
 public:
  // Collective. Throws on every PE or on none.
  world(options o, std::unique_ptr<bootstrap::channel> channel);
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  // Collective. Closes everything; throws afterwards if a PE could not be waited for. Closes nothing if a kernel of
  // this process does not end: then it is in_use(), and must not be destroyed.
  void finalize();
  bool in_use() const { return in_use_; }

  int my_pe() const { return me_; }
  int n_pes() const { return n_; }
  void barrier();
  // Lets the bootstrap end the other PEs, as far as it can.
  void abort(int code) noexcept { channel_->abort(code); }

  struct allocation {
    const char* function;  // for sentences
    std::size_t count, bytes;
    std::size_t alignment = 1;
    bool zero = false;  // the block reads as zeroes on every PE once any PE has it
  };
  void allocate(const allocation& wanted, void** out);
  void release(void* block);
  void* reach(const void* symmetric, int pe) const;

  void register_memory(void* base, std::size_t bytes) { engines_->register_memory(base, bytes); }
  void unregister_memory(void* base) { engines_->unregister_memory(base); }
  xio_mem_cache_stats_t cache_stats() const { return engines_->cache_stats(); }

  void create_ctx(const xio_ctx_attr_t* attr, xio_ctx_t* out);
  // Even if another PE makes either of them fail, this PE's side of the ctx is stopped before it returns or throws.
  void destroy_ctx(xio_ctx_t ctx);
  void recover_ctx(xio_ctx_t ctx);
  dev::route route_of(xio_ctx_t ctx, int pe, std::size_t bytes) const;
  xio_engine_stats_t ctx_stats(xio_ctx_t ctx, xio_route_t route) const;
  xio_error_info_t ctx_error(xio_ctx_t ctx) const;

  // Collective. `choose` names the members, and may throw; empty: this PE is in none, and gets the empty team.
  xio_team_t create_team(const std::function<std::vector<int>()>& choose);
  void destroy_team(xio_team_t t);
  // By their numbers in the world; empty for the empty team.
  std::vector<int> members_of(xio_team_t t) const;
  std::vector<int> everybody() const;
  std::vector<int> machine_mates() const;
  std::vector<int> across_machines();  // collective

  xio_storage_t open_storage(const char* name, const xio_storage_attr_t* attr);
  void close_storage(xio_storage_t s);
  const dev::storage_view& storage_info(xio_storage_t s) const { return storages_.get(s.id).view(); }
  xio_engine_stats_t storage_stats(xio_storage_t s) const;

 private:
  void exchange_hellos();  // every PE's version and place
  void share_heap();       // heap and peers' heaps
  void map_peer(int pe, const std::vector<std::byte>& handle);
  void publish_world();  // writes the view that kernels read
  std::uint64_t take(const allocation& wanted);
  std::optional<std::uint64_t> offset_of(const void* p) const;
  std::uint64_t live_block_at(const void* block) const;
  std::unique_ptr<context> make_context(const xio_ctx_attr_t* attr, const xio_ctx_t* out, std::uint64_t* inboxes);
  std::uint64_t take_inboxes(std::uint32_t immediates);
  void check_program() const;
  // Changes the route where loads and stores cannot be.
  route_plan plan_of(ctx_settings& settings) const;
  bool flushes_hdp() const;
  void check_reach(const ctx_settings& settings, const route_plan& plan);
  void stop(context& c);
  context& stop_together(call what, xio_ctx_t ctx);
  void clear_inboxes(const context& c);
  void agree_on_epoch();
  void reopen_lost_devices(call what);
  bool has_rdma_contexts() const;
  void wait_for_kernels();
  xio_error_info_t call_error(const dev::call_record& call, xio_status_t status) const;
  void close_all();

  options options_;
  std::unique_ptr<bootstrap::channel> channel_;
  agreement agreement_;
  bool in_use_ = false;
  int me_;
  int n_;
  topology::placement place_;
  std::vector<std::string> gpus_;     // bus ids by PE, see hello.hpp
  std::string direct_obstacle_;       // between GPUs of this world; see peer_atomics.hpp
  std::uint64_t base_alignment_ = 0;  // what every PE's heap address is a multiple of

  // Later members use earlier ones; they go in reverse.
  std::unique_ptr<gpu::heap> heap_;
  std::unique_ptr<direct::peers> peers_;
  std::optional<memory::allocator> allocator_;
  gpu::buffer view_;
  std::unique_ptr<memory::hdp_flusher> hdp_;
  std::unique_ptr<engines> engines_;
  handles<storage> storages_;
  std::array<std::uint64_t, dev::k_max_storages> first_tickets_{};  // of the next storage in a place
  handles<context> contexts_;
  handles<team> teams_;
};

}  // namespace xio
