// SPDX-License-Identifier: MIT
#include "gpu/foreign_registers.hpp"

#include <fcntl.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "gpu/kfd_uapi.hpp"
#include "topology/kfd_node.hpp"

namespace xio::gpu {
namespace {

// By GEM an object of the runtime's own DRM file is mapped, uncached. amdgpu reports nothing where it fails to fill
// that page table, and a store of a kernel is a fault then. Exporters with a pin operation are asked at GEM's import,
// which reports; others go by KFD alone, whose import reports, too, and whose mapping is cached as others' memory is.
class foreign_registers {
 public:
  foreign_registers(kfd_kernel& kernel, std::uint32_t gpu_id, unique_fd file, std::size_t bytes, bool pins)
      : kernel_(kernel), gpu_id_(gpu_id), file_(std::move(file)), range_(bytes) {
    if (const off_t end = lseek(file_.get(), 0, SEEK_END); end != static_cast<off_t>(bytes))
      fail(XIO_ERR_UNSUPPORTED, "it has {} bytes where {} are wanted; please report it", end, bytes);
    // Only where HIP's runtime has an address space, ACQUIRE_VM distinguishes files; elsewhere it would take the first.
    if (const int err = map_by_kfd(-1); err != EBADF)
      fail(XIO_ERR_UNSUPPORTED, "HIP's runtime has not opened that GPU in this process ({})", errno_text(err));
    const int by_gem = pins ? map_by_gem() : EOPNOTSUPP;
    if (by_gem != 0) drm_.reset();
    if (const int by_kfd = by_gem == 0 ? 0 : map_by_kfd(file_.get()); by_kfd != 0)
      fail(
          XIO_ERR_UNSUPPORTED,
          "amdgpu maps no dma-buf of registers (GEM: {}, KFD: {}); put GPU and device below one PCI switch, and take a "
          "kernel with CONFIG_PCI_P2PDMA",
          pins ? errno_text(by_gem) : "not tried", errno_text(by_kfd));
    log::info("kernels reach registers of another device as a dma-buf, by {}", drm_ ? "GEM" : "KFD");
  }
  ~foreign_registers() {
    const int unmapped = change(false), freed = give_back();
    if (unmapped == 0 && freed == 0) return;
    range_.keep();
    log::warn("amdgpu did not take back a page of registers: {}", errno_text(unmapped != 0 ? unmapped : freed));
  }
  foreign_registers& operator=(foreign_registers&&) = delete;
  void* at() const { return range_.at(); }

 private:
  // A GEM object in another file than the runtime's is in an address space that no kernel uses.
  int map_by_gem() {
    std::error_code ec, gone;
    for (std::filesystem::directory_iterator it("/proc/self/fd", ec), end; !ec && it != end && !drm_;
         it.increment(ec)) {
      if (read_symlink(it->path(), gone).native().find("dri/renderD") == std::string::npos) continue;
      unique_fd mine(fcntl(std::atoi(it->path().filename().c_str()), F_DUPFD_CLOEXEC, 3));
      kfd::acquire_vm a{static_cast<std::uint32_t>(mine.get()), gpu_id_};
      if (mine && kernel_.control(kfd::k_acquire_vm, &a) == 0) drm_ = std::move(mine);
    }
    kfd::prime_import a{0, 0, file_.get()};
    const int err = drm_ ? kernel_.control(kfd::k_prime_import, &a, drm_.get()) : ENOENT;
    return err != 0 ? err : map(a.handle);
  }
  int map_by_kfd(int file) {
    kfd::import_dmabuf a{reinterpret_cast<std::uint64_t>(at()), 0, gpu_id_, static_cast<std::uint32_t>(file)};
    const int err = kernel_.control(kfd::k_import_dmabuf, &a);
    return err != 0 ? err : map(a.handle);
  }
  int map(std::uint64_t object) {
    object_ = object;
    const int err = change(true);
    if (err != 0) give_back();
    return err;
  }
  int change(bool on) noexcept {
    kfd::map_memory m{object_, reinterpret_cast<std::uint64_t>(&gpu_id_), 1, 0};
    kfd::gem_va a{object_, on ? 1u : 2u,  kfd::k_gem_registers, reinterpret_cast<std::uint64_t>(at()),
                  0,       range_.bytes()};
    return drm_ ? kernel_.control(kfd::k_gem_va, &a, drm_.get())
                : kernel_.control(on ? kfd::k_map_memory : kfd::k_unmap_memory, &m);
  }
  int give_back() noexcept {
    kfd::free_memory f{object_};
    return drm_ ? kernel_.control(kfd::k_gem_close, &f, drm_.get()) : kernel_.control(kfd::k_free_memory, &f);
  }

  kfd_kernel& kernel_;
  std::uint32_t gpu_id_;
  unique_fd file_, drm_;  // with drm_ the object is GEM's, else KFD's
  address_range range_;
  std::uint64_t object_ = 0;
};

std::mutex exported_lock;
// By page. Never destroyed: at exit the kernel ends what is still mapped.
auto& exported_pages = *new std::map<void*, std::shared_ptr<void>>;

}  // namespace

std::shared_ptr<void> import_registers(kfd_kernel& kernel, std::uint32_t gpu_id, unique_fd file, std::size_t bytes,
                                       bool pins) {
  const auto made = std::make_shared<foreign_registers>(kernel, gpu_id, std::move(file), bytes, pins);
  return {made, made->at()};
}

void* map_exported(void* page, std::size_t bytes, const register_export& as, std::string& why) {
  try {
    const exported_memory made = as.make();
    unique_fd file(made.fd);
    if (!file) fail(XIO_ERR_UNSUPPORTED, "{}", made.why_not);
    static kfd_kernel& kernel = *open_kfd_kernel().release();  // for the process's life
    for (const topology::kfd_gpu_node& n : topology::kfd_gpu_nodes("")) {
      if (n.identity != identity()) continue;
      const auto there = import_registers(kernel, n.gpu_id, std::move(file), bytes, as.pins);
      const std::lock_guard hold(exported_lock);
      return (exported_pages[page] = there).get();
    }
    fail(XIO_ERR_UNSUPPORTED, "the compute driver has no node for GPU {}", identity());
  } catch (const std::exception& e) {
    why += fmt::format("; as a dma-buf: {}", e.what());
    return nullptr;
  }
}

bool unmap_exported(void* page) {
  const std::lock_guard hold(exported_lock);
  return exported_pages.erase(page) != 0;
}

}  // namespace xio::gpu
