// SPDX-License-Identifier: MIT
#include "transport/sdma/kfd_engine.hpp"

#include "base/error.hpp"
#include "base/run_clock.hpp"
#include "gpu/memory.hpp"
#include "transport/sdma/generation.hpp"
#include "transport/sdma/queue_buffers.hpp"
#include "xio/device/impl/sdma.hpp"

namespace xio::sdma {
namespace {

// The queues of one engine share this; they own it jointly, because a queue may outlive its engine.
struct device {
  device(const sdma_options& o, std::unique_ptr<kfd_driver> d, kfd_gpu g, const queue_style& s)
      : driver(std::move(d)),
        gpu(std::move(g)),
        style(s),
        chooser(gpu.identity, gpu.facts, parse_engines(o.sdma_engines)) {}

  const std::unique_ptr<kfd_driver> driver;
  const kfd_gpu gpu;
  const queue_style style;
  std::mutex lock;  // of chooser
  engine_chooser chooser;
};

struct ring_and_queue {
  void* ring = nullptr;
  kfd_queue queue{};
};

void unmake(const device& d, const ring_and_queue& made, std::size_t bytes) noexcept {
  d.driver->destroy_queue(made.queue.id);
  d.driver->free_ring(made.ring, bytes);
}

ring_and_queue make(const device& d, const engine_choice& choice, std::size_t bytes) {
  ring_and_queue made;
  made.ring = d.driver->allocate_ring(d.gpu.node, bytes, d.style.where.submission);
  try {
    made.queue = d.driver->create_queue(d.gpu.node, choice, made.ring, bytes);
  } catch (...) {
    d.driver->free_ring(made.ring, bytes);
    throw;
  }
  if (made.queue.doorbell != nullptr && made.queue.wptr != nullptr) return made;
  unmake(d, made, bytes);
  fail(XIO_ERR_IO, "the compute driver made copy queue {} without a doorbell; dmesg may say why", made.queue.id);
}

// A queue that kernels can ring. Those that they cannot are held meanwhile, so that the next one is another.
ring_and_queue make_ringable(const device& d, const engine_choice& choice, std::size_t bytes) {
  const bool may_be_lost = d.style.generation == wire::sdma::gen_9_4;
  std::vector<ring_and_queue> lost;
  const auto end = [&] {
    for (const ring_and_queue& one : lost) unmake(d, one, bytes);
  };
  try {
    for (;;) {
      const ring_and_queue made = make(d, choice, bytes);
      if (!may_be_lost || !is_lost_doorbell(reinterpret_cast<std::uintptr_t>(made.queue.doorbell))) {
        end();
        return made;
      }
      lost.push_back(made);
    }
  } catch (const error& e) {
    const std::size_t n = lost.size();
    end();
    if (n == 0) throw;
    fail(XIO_ERR_NO_MEMORY,
         "kernels cannot ring the {} queues that a copy engine of GPU {} still has: on this kernel the doorbells of "
         "odd engines are lost (cured in Linux 6.12.113, 7.2.11 and 7.3); name even ones in XIO_SDMA_ENGINES ({})",
         n, d.gpu.identity, e.what());
  }
}

// An engine chosen, a ring and a queue on it; given back in reverse, however far it came.
class user_queue {
 public:
  // Others may have taken the queues of an engine, so the next choice is tried where there is one.
  user_queue(std::shared_ptr<device> d, const link_facts& link, std::uint32_t which, std::size_t ring_bytes)
      : device_(std::move(d)), bytes_(ring_bytes) {
    std::optional<error> first;
    for (std::uint32_t tried = 0;; ++tried) {
      choose(link, which, tried, first);
      try {
        made_ = make_ringable(*device_, choice_, bytes_);
        return;
      } catch (const error& e) {
        give_back();
        if (e.status() != XIO_ERR_NO_MEMORY) throw;
        if (!first) first = e;
      }
    }
  }
  ~user_queue() {
    stop();
    device_->driver->free_ring(made_.ring, bytes_);
  }
  user_queue& operator=(user_queue&&) = delete;

  // The engine does nothing of it any more.
  void stop() noexcept {
    if (stopped_) return;
    stopped_ = true;
    device_->driver->destroy_queue(made_.queue.id);
    give_back();
  }

  queue_parts parts() const {
    return {static_cast<unsigned char*>(made_.ring), made_.queue.wptr, made_.queue.doorbell};
  }
  std::uint32_t id() const { return static_cast<std::uint32_t>(made_.queue.id); }
  const queue_style& style() const { return device_->style; }

 private:
  // Where no engine is left, the first refusal says more than that.
  void choose(const link_facts& link, std::uint32_t which, std::uint32_t tried, const std::optional<error>& first) {
    const std::lock_guard hold(device_->lock);
    try {
      choice_ = device_->chooser.take(link, which, tried);
    } catch (const error&) {
      if (first) throw error(*first);
      throw;
    }
  }
  void give_back() noexcept {
    const std::lock_guard hold(device_->lock);
    device_->chooser.give_back(choice_);
  }

  const std::shared_ptr<device> device_;
  const std::size_t bytes_;
  engine_choice choice_{};
  ring_and_queue made_;
  bool stopped_ = false;
};

class kfd_copy_queue final : public queue {
 public:
  kfd_copy_queue(const std::shared_ptr<device>& d, const link_facts& link, const queue_request& request)
      : user_(d, link, request.which, std::size_t{request.depth} * dev::k_sdma_slot_bytes),
        buffers_(request, user_.style(), user_.parts()) {}
  // Before what the engine writes to goes: a kernel may have left ops under way.
  ~kfd_copy_queue() override { user_.stop(); }

  void stop() noexcept override { user_.stop(); }

  dev::ring_view view() const override {
    dev::ring_view v = buffers_.view();
    v.id = user_.id();
    return v;
  }

 private:
  user_queue user_;
  queue_buffers buffers_;
};

class kfd_engine final : public engine {
 public:
  kfd_engine(const sdma_options& o, std::unique_ptr<kfd_driver> driver, std::vector<kfd_gpu> gpus, const kfd_gpu& mine,
             const kfd_place& place, const queue_style& style)
      : gpus_(std::move(gpus)),
        device_(std::make_shared<device>(o, std::move(driver), mine, style)),
        name_("KFD " + place.arch + " at " + place.identity + ", queues by " + device_->driver->name()) {}

  const char* backend() const override { return name_.c_str(); }

  // A packet that stores a number, rung as kernels ring. A doorbell that does not arrive is found here, and not by the
  // first copy's deadline.
  void try_doorbell(std::chrono::milliseconds longest) {
    constexpr std::uint32_t k_number = 0x5d3a17;
    gpu::buffer word(sizeof(std::uint64_t), device_->style.where.completion, 256, gpu::purpose::completions);
    const user_queue q(device_, {}, 0, gpu::page_size());
    const queue_parts parts = q.parts();
    std::uint32_t packet[wire::sdma::k_fence_dwords];
    wire::sdma::encode_fence(packet, device_->style.generation, reinterpret_cast<std::uint64_t>(word.data()), k_number);
    std::memset(parts.ring, 0, gpu::page_size());  // empty packets, as many as an engine wants at once
    std::memcpy(parts.ring, packet, sizeof packet);
    __atomic_store_n(parts.wptr, 4 * dev::k_sdma_slot_bytes, __ATOMIC_RELEASE);
    gpu::ring_by_kernel({{parts.doorbell, 4 * dev::k_sdma_slot_bytes}});
    const auto until = run_clock::now() + longest;
    while (__atomic_load_n(word.as<std::uint32_t>(), __ATOMIC_ACQUIRE) != k_number) {
      if (run_clock::now() > until)
        fail(XIO_ERR_UNSUPPORTED,
             "a copy engine of GPU {} has not done within {} ms what a kernel rang it for ({}); dmesg may say why, and "
             "XIO_SDMA_ENGINES may name others",
             device_->gpu.identity, longest.count(), name_);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // Memory that this process has mapped for the GPU is in the engine's address space, too: they have one page table. A
  // packet that names any other memory would fault, and the fault would end the process.
  void map(void* base, std::size_t bytes) override {
    const gpu::location at = gpu::locate(base);
    if (at.where == gpu::residence::unknown && !at.registered)
      fail(XIO_ERR_UNSUPPORTED,
           "the {} bytes at {} are not mapped for the GPU, so its copy engines cannot reach them; allocate them by "
           "xio_mem_alloc or the HIP runtime, or call hipHostRegister first",
           bytes, base);
  }
  void unmap(void*) override {}

  void set_peers(const std::vector<std::string>& identities) override {
    peers_.clear();
    for (const std::string& id : identities) peers_.push_back(link_to(id));
  }

  std::unique_ptr<queue> create_queue(const queue_request& request) override {
    const auto peer = static_cast<std::size_t>(request.peer);
    const link_facts link = request.peer >= 0 && peer < peers_.size() ? peers_[peer] : link_facts{};
    if (request.ticket_start != 0)
      fail(XIO_ERR_UNSUPPORTED,
           "XIO_TICKET_START={} is for software engines: a queue of the GPU's own begins at 0; leave it unset",
           request.ticket_start);
    const std::size_t bytes = std::size_t{request.depth} * dev::k_sdma_slot_bytes;
    // The driver maps rings in whole pages, and the length passed to it must be exact.
    if (bytes % gpu::page_size() != 0)
      fail(XIO_ERR_CONFIG,
           "an SDMA ring of {} entries is {} bytes, no whole page of {}; set XIO_RING_DEPTH (or ring_bytes) to {} "
           "entries or more",
           request.depth, bytes, gpu::page_size(), gpu::page_size() / dev::k_sdma_slot_bytes);
    return std::make_unique<kfd_copy_queue>(device_, link, request);
  }

 private:
  // Of a peer that is no GPU of this machine, or this one: what engines for PCIe do.
  link_facts link_to(const std::string& identity) const {
    for (const kfd_gpu& g : gpus_) {
      if (g.identity != identity || g.node == device_->gpu.node) continue;
      for (const auto& l : device_->gpu.links)
        if (l.to_node == g.node) return l.facts;
    }
    return {};
  }

  const std::vector<kfd_gpu> gpus_;
  const std::shared_ptr<device> device_;
  const std::string name_;
  std::vector<link_facts> peers_;
};

queue_style style_of(const sdma_options& o, const std::string& arch) {
  if (o.sdma_granule != 1 && o.sdma_granule != 4)
    fail(XIO_ERR_CONFIG, "XIO_SDMA_GRANULE={} cannot be; use 1 or 4", o.sdma_granule);
  queue_style style{};
  style.generation = generation_of(arch);
  style.chunk = chunk_of(style.generation);
  style.granule = static_cast<std::uint16_t>(o.sdma_granule);
  style.where = memory::place_rings(
      o.memory_mode, "copy engines", {gpu::place::shared, nullptr}, {gpu::place::shared, nullptr},
      {gpu::place::shared, "the doorbell is a register, and the driver takes the write pointer from host memory"});
  return style;
}

}  // namespace

std::unique_ptr<engine> open_kfd_engine(const sdma_options& o, std::unique_ptr<kfd_driver> driver,
                                        const kfd_place& place, std::chrono::milliseconds tries) {
  const queue_style style = style_of(o, place.arch);
  std::vector<kfd_gpu> gpus = driver->gpus();
  for (const kfd_gpu& g : gpus)
    if (g.identity == place.identity) {
      const kfd_gpu mine = g;
      auto made = std::make_unique<kfd_engine>(o, std::move(driver), std::move(gpus), mine, place, style);
      if (tries.count() != 0) made->try_doorbell(tries);
      return made;
    }
  fail(XIO_ERR_UNSUPPORTED,
       "the GPU at {} is none of the {} that the compute driver knows; is it hidden from this process (cgroup, "
       "container)?",
       place.identity, gpus.size());
}

}  // namespace xio::sdma
