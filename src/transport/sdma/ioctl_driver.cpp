// SPDX-License-Identifier: MIT
// kfd_driver.hpp by the calls of /dev/kfd alone: any ROCm, and no library of a vendor. Every open of a process has the
// same GPU address spaces, which HIP's runtime has made, so memory of HIP is there for these queues. For that reason
// ACQUIRE_VM is not called here: it is for one DRM file of the process, and that is HIP's.
//
// | what | made of | goes, in this order |
// |---|---|---|
// | ring, pointers, doorbells | a reserved range, an object there, its mapping for the GPU, its pages for the host |
// pages, mapping, object, range | | queue | a ring, a page with both pointers | queue, page |
#include <fcntl.h>

#include <cstring>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "gpu/kfd_uapi.hpp"
#include "topology/kfd_node.hpp"
#include "transport/sdma/kfd_driver.hpp"

namespace xio::sdma {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

[[noreturn]] void refuse(int err, const char* what, std::uint32_t node) {
  const bool full = err == ENOMEM || err == ENOSPC || err == EPERM;
  fail(full ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "{} on KFD node {}: {}; {}", what, node, errno_text(err),
       full ? "nothing is free, in this process or in others that use the GPU; use fewer queues"
       : err == ENODEV || err == ESRCH ? "HIP's runtime has not opened that GPU in this process"
                                       : "dmesg may say more");
}

// Memory of one GPU, mapped for it, that the process sees at the same place.
class object {
 public:
  // doorbells_at: where /dev/kfd has those of the process on that GPU; 0: memory, which begins as zeros.
  object(kfd_kernel& kernel, const topology::kfd_gpu_node& gpu, std::size_t bytes, kfd::u32 flags, const char* what,
         kfd::u64 doorbells_at = 0)
      : kernel_(kernel), gpu_id_(gpu.gpu_id), range_(bytes) {
    kfd::alloc_memory a{reinterpret_cast<kfd::u64>(range_.at()), bytes, 0, 0, gpu_id_, flags | kfd::writable};
    if (const int err = kernel_.control(kfd::k_alloc_memory, &a); err != 0) refuse(err, what, gpu.number);
    handle_ = a.handle;
    try {
      map(what, gpu.number);
      show(doorbells_at, what, gpu.number);
    } catch (...) {
      end();
      throw;
    }
  }
  ~object() { end(); }
  object& operator=(object&&) = delete;

  unsigned char* at() const { return static_cast<unsigned char*>(range_.at()); }
  std::size_t bytes() const { return range_.bytes(); }

 private:
  void map(const char* what, std::uint32_t node) {
    kfd::map_memory m{handle_, reinterpret_cast<kfd::u64>(&gpu_id_), 1, 0};
    if (const int err = kernel_.control(kfd::k_map_memory, &m); err != 0) refuse(err, what, node);
    mapped_ = true;
  }

  void show(kfd::u64 doorbells_at, const char* what, std::uint32_t node) {
    int err = 0;
    if (doorbells_at != 0) {
      err = kernel_.show(range_.at(), range_.bytes(), -1, doorbells_at);
    } else {
      kfd::export_dmabuf e{handle_, O_RDWR | O_CLOEXEC, 0};
      err = kernel_.control(kfd::k_export_dmabuf, &e);
      if (err == 0) err = kernel_.show(range_.at(), range_.bytes(), unique_fd(static_cast<int>(e.fd)).get(), 0);
    }
    if (err != 0) refuse(err, what, node);
    if (doorbells_at == 0) std::memset(range_.at(), 0, range_.bytes());
  }

  void end() noexcept {
    range_.hide();
    kfd::map_memory m{handle_, reinterpret_cast<kfd::u64>(&gpu_id_), 1, 0};
    int err = mapped_ ? kernel_.control(kfd::k_unmap_memory, &m) : 0;
    kfd::free_memory f{handle_};
    if (err == 0) err = kernel_.control(kfd::k_free_memory, &f);
    if (err == 0) return;
    range_.keep();
    log::warn("SDMA: the compute driver did not take back {} bytes: {}", range_.bytes(), errno_text(err));
  }

  kfd_kernel& kernel_;
  kfd::u32 gpu_id_;
  address_range range_;
  kfd::u64 handle_ = 0;
  bool mapped_ = false;
};

class ioctl_driver final : public kfd_driver {
 public:
  ioctl_driver(std::unique_ptr<kfd_kernel> kernel, std::string root)
      : kernel_(std::move(kernel)), root_(std::move(root)) {
    if (const int err = kernel_->control(kfd::k_get_version, &version_); err != 0)
      fail(XIO_ERR_UNSUPPORTED, "/dev/kfd does not say its version: {}", errno_text(err));
    if (version_.major != 1 || version_.minor < kfd::k_minor_dmabuf)
      fail(
          XIO_ERR_UNSUPPORTED,
          "the kernel's KFD is {}.{}, and 1.{} is the first that shows a process memory for rings without a library of "
          "ROCm; take a newer kernel",
          version_.major, version_.minor, kfd::k_minor_dmabuf);
  }

  const char* name() const override { return "the kernel's own calls"; }

  std::vector<kfd_gpu> gpus() override {
    nodes_ = topology::kfd_gpu_nodes(root_);
    std::vector<kfd_gpu> out;
    for (const topology::kfd_gpu_node& n : nodes_) {
      kfd_gpu g{n.number, n.identity, {n.engines, n.xgmi_engines, n.queues_per_engine, has_engine_numbers()}, {}};
      for (const auto& l : n.links) g.links.push_back({l.to_node, {l.xgmi, l.recommended}});
      out.push_back(std::move(g));
    }
    return out;
  }

  void* allocate_ring(std::uint32_t node, std::size_t bytes, gpu::place where) override {
    const kfd::u32 place = where == gpu::place::device ? kfd::in_vram | kfd::host_access : kfd::u32{kfd::in_gtt};
    auto made = std::make_unique<object>(*kernel_, gpu_of(node), bytes, place | k_ring_flags, "memory for a ring");
    void* const at = made->at();
    const std::lock_guard hold(lock_);
    rings_[at] = std::move(made);
    return at;
  }

  void free_ring(void* ring, std::size_t) noexcept override {
    const std::lock_guard hold(lock_);
    rings_.erase(ring);
  }

  kfd_queue create_queue(std::uint32_t node, const engine_choice& engine, void* ring, std::size_t bytes) override {
    const topology::kfd_gpu_node& gpu = gpu_of(node);
    auto pointers = std::make_unique<object>(*kernel_, gpu, page_bytes(), kfd::in_gtt | k_ring_flags,
                                             "a page for a queue's pointers");
    kfd::create_queue a{};
    a.ring = reinterpret_cast<kfd::u64>(ring);
    a.ring_bytes = static_cast<kfd::u32>(bytes);
    a.write_pointer = reinterpret_cast<kfd::u64>(pointers->at());
    a.read_pointer = reinterpret_cast<kfd::u64>(pointers->at() + k_line);
    a.gpu_id = gpu.gpu_id;
    a.type = type_of(engine.kind);
    a.engine = engine.kind == queue_kind::by_engine ? engine.engine : 0;
    a.percentage = 100;  // of the engine's time; a queue with 0 never runs
    a.priority = 7;
    if (const int err = kernel_->control(kfd::k_create_queue, &a); err != 0)
      refuse(err, "a queue of a copy engine", node);
    {
      const std::lock_guard hold(lock_);
      pointers_[a.queue_id] = std::move(pointers);
    }
    try {
      return {a.queue_id, doorbell_at(gpu, a.doorbell_offset), reinterpret_cast<std::uint64_t*>(a.write_pointer)};
    } catch (...) {
      destroy_queue(a.queue_id);
      throw;
    }
  }

  void destroy_queue(std::uint64_t id) noexcept override {
    kfd::destroy_queue a{static_cast<kfd::u32>(id), 0};
    const int err = kernel_->control(kfd::k_destroy_queue, &a);
    if (err != 0) log::warn("SDMA: the compute driver did not destroy queue {}: {}", id, errno_text(err));
    const std::lock_guard hold(lock_);
    pointers_.erase(id);
  }

 private:
  // The engine fetches from it, and kernels and the host write it.
  static constexpr kfd::u32 k_ring_flags = kfd::executable | kfd::uncached;
  static constexpr std::size_t k_line = 128;

  bool has_engine_numbers() const { return version_.minor >= kfd::k_minor_by_engine; }

  static kfd::u32 type_of(queue_kind kind) {
    switch (kind) {
      case queue_kind::pcie: return kfd::queue_sdma;
      case queue_kind::xgmi: return kfd::queue_sdma_xgmi;
      case queue_kind::by_engine: return kfd::queue_sdma_by_engine;
    }
    return kfd::queue_sdma;
  }

  const topology::kfd_gpu_node& gpu_of(std::uint32_t node) const {
    for (const topology::kfd_gpu_node& n : nodes_)
      if (n.number == node) return n;
    fail(XIO_ERR_INTERNAL, "KFD node {} is no GPU; this is a bug of XIO, please report it", node);
  }

  // The kernel names the process's doorbells on the GPU and, in the lower bits, the byte of the queue's own there. One
  // object is for all queues of the GPU.
  std::uint64_t* doorbell_at(const topology::kfd_gpu_node& gpu, kfd::u64 offset) {
    const std::size_t bytes = whole_pages(kfd::k_doorbell_bytes);
    const std::lock_guard hold(lock_);
    auto& all = doorbells_[gpu.gpu_id];
    if (all == nullptr)
      all = std::make_unique<object>(*kernel_, gpu, bytes, kfd::doorbells | kfd::coherent, "doorbells",
                                     offset & ~(bytes - 1));
    return reinterpret_cast<std::uint64_t*>(all->at() + (offset & (bytes - 1)));
  }

  const std::unique_ptr<kfd_kernel> kernel_;
  const std::string root_;
  kfd::version version_{};
  std::vector<topology::kfd_gpu_node> nodes_;
  std::mutex lock_;
  std::map<void*, std::unique_ptr<object>> rings_;
  std::map<std::uint64_t, std::unique_ptr<object>> pointers_;  // by their queue
  std::map<kfd::u32, std::unique_ptr<object>> doorbells_;      // by gpu_id
};

}  // namespace

std::unique_ptr<kfd_driver> open_by_ioctls(std::unique_ptr<kfd_kernel> kernel, const std::string& root) {
  return std::make_unique<ioctl_driver>(std::move(kernel), root);
}

}  // namespace xio::sdma
