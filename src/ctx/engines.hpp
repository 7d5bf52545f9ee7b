// SPDX-License-Identifier: MIT
// The engines of a world, opened when something needs them, and the local memory that all of them may reach.
#pragma once
#include "memory/blocks.hpp"
#include "memory/cache.hpp"
#include "memory/registration.hpp"
#include "transport/direct/peers.hpp"
#include "transport/nvme/memory_trial.hpp"
#include "transport/nvme/nvme.hpp"
#include "transport/rdma/memory_probe.hpp"
#include "transport/rdma/rdma.hpp"
#include "transport/sdma/sdma.hpp"

namespace xio {

// At the start of the heap, ahead of what xio_malloc hands out, so that a block may be as large as XIO_HEAP_SIZE says:
// dev::heap_head, what a NIC's memory is tried with, and a page with which a drive's is.
constexpr std::uint64_t k_trial_at = 4096;
constexpr std::uint64_t k_head_bytes = k_trial_at + nvme::k_trial_bytes;
constexpr std::uint64_t k_probe_at = k_trial_at - rdma::k_probe_bytes;
static_assert(sizeof(dev::heap_head) <= k_probe_at);

class engines final : memory::engine_side, memory::watcher {
 public:
  // regions: the rows of world_view in device memory; the heap becomes row 0. Everything given must outlive this.
  engines(const options& o, bootstrap::channel& channel, gpu::heap& heap, const direct::peers& peers,
          dev::region_view* regions, int local_rank);
  engines& operator=(engines&&) = delete;
  ~engines();

  // Which GPU each PE has, as hello.hpp's gpus_of. Before any engine is opened.
  void place_gpus(std::vector<std::string> gpus) { gpus_ = std::move(gpus); }

  progress::machine& machine();
  rdma::endpoint& open_rdma();  // the first time collective
  // As if it had never been opened; nobody may have anything of it any more.
  void close_rdma() noexcept;
  // Whether it has to be opened anew, by all PEs together: a device of this PE has failed for good, or the last try
  // did.
  bool rdma_is_lost() const { return lost_ || (rdma_ != nullptr && rdma_->has_failed()); }
  // Collective. As if it were opened the first time, but never by the software NIC in place of devices. Nobody may have
  // work under way. After an error it is closed and lost.
  void reopen_rdma();
  void lose_rdma() noexcept;  // another PE could not
  // Counts the endpoints that were opened; 0 while there is none. Local memory that was registered with one is unknown
  // to the next, but for what register_memory has.
  std::uint32_t rdma_opening() const { return rdma_ != nullptr ? openings_ : 0; }
  sdma::engine& open_sdma();
  bool rdma_is_open() const { return rdma_ != nullptr; }

  // Makes local memory known to every engine that is open; later ones learn of it when they open.
  void register_memory(void* base, std::size_t bytes);
  void unregister_memory(void* base);
  // Any thread. Whether all of it is memory that engines may reach: in the heap, or registered.
  bool knows(const void* base, std::size_t bytes) const;
  xio_mem_cache_stats_t cache_stats() const;

  // The space in which kernels find addresses for its drive, from now until its domain ends.
  dev::bus_space space_of(const nvme::controller& c);
  // Maps all registered memory into a new controller; detach once it has stopped, before it is closed.
  void attach(nvme::controller& c);
  void detach(nvme::controller& c);

 private:
  void reach(dev::region_view& row) override;             // every open engine; all or nothing
  void unreach(dev::region_view& row) noexcept override;  // every open engine
  void forget(const gpu::block& b) noexcept override;     // in the thread that frees it
  void drop_row(std::uint32_t i);
  void show_row(std::uint32_t i);                      // to kernels: what engines know of it by now
  std::uint32_t number_of(const nvme::controller& c);  // of its space
  void adopt_bus(dev::region_view& row, const nvme::controller& c, std::uint64_t bus);

  const options& options_;
  bootstrap::channel& channel_;
  gpu::heap& heap_;
  const direct::peers& peers_;
  dev::region_view* device_rows_;
  const int local_rank_;
  std::vector<std::string> gpus_;
  // xio_mem_free of any thread changes what engines know: from here to spans_, and the engines' own books.
  mutable std::mutex lock_;
  memory::registration regions_;
  memory::registration_cache known_;
  std::array<memory::registration_cache::span*, dev::k_max_regions> spans_{};  // of each row but the heap's
  // In the order in which they have to go, last first: the devices run on the machine's threads.
  std::unique_ptr<progress::machine> machine_;
  std::unique_ptr<rdma::endpoint> rdma_;
  std::uint32_t openings_ = 0;
  bool lost_ = false;
  bool on_devices_ = false;  // the last endpoint was
  std::unique_ptr<sdma::engine> sdma_;
  std::vector<nvme::controller*> controllers_;
  std::array<std::weak_ptr<const void>, dev::k_bus_spaces> domains_{};  // by space
};

}  // namespace xio
