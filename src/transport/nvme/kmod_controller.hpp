// SPDX-License-Identifier: MIT
// "kmod:BDF/NSID": queue pairs of a controller that the kernel module xio drives. Other processes may have others of
// the same controller.
#pragma once
#include <map>

#include "gpu/polled_device.hpp"
#include "transport/nvme/doorbell_keeper.hpp"
#include "transport/nvme/drive_watch.hpp"
#include "transport/nvme/io_queue.hpp"
#include "transport/nvme/kmod_memory.hpp"
#include "transport/nvme/lost_pages.hpp"
#include "transport/nvme/memory_trial.hpp"
#include "transport/nvme/nvme.hpp"

namespace xio::nvme {

class kmod_controller : public controller, private bus, private queue_maker {
 public:
  kmod_controller(const std::string& name, const std::string& bdf, std::uint32_t nsid, const xio_storage_attr_t& attr,
                  const nvme_options& o, progress::machine& machine, kmod_calls& calls = kernel_module_calls());
  ~kmod_controller() override;

  const char* backend() const override { return backend_.c_str(); }
  dev::storage_view view() const override;
  dev::ring_view queue_view(std::uint32_t queue) const override;
  std::uint32_t queue_count() const override { return static_cast<std::uint32_t>(queues_.size()); }
  void stop() noexcept override;
  std::shared_ptr<const void> domain() const override;
  std::uint64_t map(void* base, std::size_t bytes) override;
  void check_reach(void* page, void* base, std::size_t bytes) override;
  std::uint64_t rows_of(void* base, std::size_t bytes) const override { return memory_->rows_of(base, bytes); }
  void unmap(void* base, std::size_t bytes) override;

 private:
  // bus
  void* lend(std::size_t bytes, gpu::place where) override;
  void take_back(void* base) override;
  void* seen_by_kernels(void* base) const override { return lent_.at(base).seen; }
  std::uint64_t map_queue(void* base, std::size_t) override { return lent_.at(base).address; }
  void unmap_queue(void*, std::size_t) override {}
  // queue_maker
  const std::string& name() const override { return name_; }
  const drive_facts& facts() const override { return facts_; }
  bus& memory_bus() const override { return const_cast<kmod_controller&>(*this); }
  std::uint32_t create_queues(std::uint32_t wanted, std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq,
                              std::uint32_t cq_entries) override;
  void delete_queues(std::uint32_t qid) noexcept override;

  struct pair {
    xio_kmod_queue_pair made;
    unsigned char* page;                // of its doorbells, as the host sees it
    unsigned char* kernels_page;        // the same as kernels store to it, null: they cannot
    std::unique_ptr<lost_pages> watch;  // over `page`
  };
  void identify(std::uint32_t nsid);
  static io_queue::doorbell_words registers_of(const pair& p);
  io_queue::doorbell_words words_of(std::uint32_t qid) const;  // that a host thread carries
  void fit_transfers(std::uint32_t depth);
  void make_queues(const xio_storage_attr_t& attr, const nvme_options& o);
  void choose_doorbells(const nvme_options& o);
  kmod_module::queue_place place_at(std::uint64_t address) const;
  memory::ring_places places(const nvme_options& o) const;
  trial_result try_page(void* page, std::uint64_t address);
  void try_gpu_memory();
  std::string trouble() const;
  void lose(const std::string& what);
  void close() noexcept;

  std::string name_, backend_;
  bool read_only_;
  progress::machine& machine_;
  kmod_module module_;
  drive_facts facts_;
  std::unique_ptr<kmod_memory> memory_;
  std::shared_ptr<const void> domain_ = std::make_shared<int>();
  std::string gpu_refusal_;  // why memory of the GPU is not registered, where that was seen
  struct lent {
    kmod_module::memory memory;  // of the module, or
    gpu::buffer on_gpu;          // of the GPU, pinned
    kmod_module::queue_place place;
    std::uint64_t address;              // on the bus, contiguous
    void* seen;                         // by kernels
    std::unique_ptr<lost_pages> watch;  // over memory of the module
  };
  void* lend_on_gpu(std::size_t bytes);
  std::map<void*, lent> lent_;
  std::map<std::uint32_t, pair> pairs_;  // by queue identifier
  std::vector<std::unique_ptr<io_queue>> queues_;
  // Where a host thread rings: the words that kernels store to, as doorbells::host has them.
  std::unique_ptr<drive_memory> words_;
  std::unique_ptr<doorbell_keeper> keeper_;
  std::optional<gpu::polled_device> polled_;  // where none does
  std::unique_ptr<drive_watch> watch_;
};

}  // namespace xio::nvme
