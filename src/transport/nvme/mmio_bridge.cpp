// SPDX-License-Identifier: MIT
#include "transport/nvme/mmio_bridge.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "gpu/gpu.hpp"
#include "transport/software.hpp"
#include "xio/wire/mmio_bridge.hpp"

namespace xio::nvme {

namespace bridge = wire::mmio_bridge;

namespace {

constexpr std::size_t k_mapped = 4096;

// One client of a bridge. At most a ring of its commands is outstanding, whether or not the bridge reports its
// progress: a slot is free when its own command has a reply.
class bridge_writer : public register_writer {
 public:
  bridge_writer(std::byte* ring, std::size_t bytes, std::uint32_t bdf, std::string name)
      : ring_(ring), bdf_(bdf), name_(std::move(name)) {
    const std::uint32_t most = bridge::depth_of(bytes);
    depth_ = __atomic_load_n(&meta()->depth, __ATOMIC_ACQUIRE);
    if (depth_ == 0 || depth_ > most)
      fail(XIO_ERR_UNSUPPORTED,
           "{}: the bridge's ring says {} commands and {} fit it; point XIO_NVME_BRIDGE at a bridge", name_, depth_,
           most);
    next_ = __atomic_load_n(&meta()->producer, __ATOMIC_ACQUIRE);
    used_.resize(depth_);
  }

  bool write(std::uint32_t offset, std::uint32_t value) override {
    auto* c = reinterpret_cast<bridge::command*>(ring_ + bridge::slot_of(next_, depth_));
    const std::uint32_t slot = next_ % depth_;
    if (used_[slot] && __atomic_load_n(&c->status, __ATOMIC_ACQUIRE) == bridge::k_pending) return false;
    if (used_[slot] && c->status == bridge::k_error && !warned_) {
      warned_ = true;
      log::error("{}: the PCI MMIO bridge could not write the drive's registers; is it behind the same bridge?", name_);
    }
    used_[slot] = true;
    c->bdf = static_cast<std::uint16_t>(bdf_);
    c->bar = 0;
    c->offset = offset;
    c->value = value;
    c->what = bridge::k_write;
    c->size = 4;
    c->sequence = next_;
    __atomic_store_n(&c->status, bridge::k_pending, __ATOMIC_RELEASE);
    __atomic_store_n(&meta()->producer, ++next_, __ATOMIC_RELEASE);
    return true;
  }

 private:
  bridge::meta* meta() const { return reinterpret_cast<bridge::meta*>(ring_); }

  std::byte* ring_;
  std::uint32_t bdf_;
  std::string name_;
  std::uint32_t depth_ = 0, next_ = 0;
  std::vector<bool> used_;
  bool warned_ = false;
};

// Pages of a file beyond its end can be mapped, and to touch one ends the program. Device nodes tell no size.
void check_length(int fd, const std::string& path, const std::string& name) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size >= static_cast<off_t>(k_mapped)) return;
  fail(XIO_ERR_UNSUPPORTED, "{}: {} has {} bytes and a bridge's ring {}; point XIO_NVME_BRIDGE at a bridge", name, path,
       info.st_size, k_mapped);
}

class mapped_bridge : public register_writer {
 public:
  mapped_bridge(const std::string& path, std::uint32_t bdf, const std::string& name) {
    const unique_fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) fail(XIO_ERR_IO, "{}: cannot open the bridge {}: {}; see XIO_NVME_BRIDGE", name, path, errno_text(errno));
    check_length(fd.get(), path, name);
    ring_ = mmap(nullptr, k_mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (ring_ == MAP_FAILED)
      fail(XIO_ERR_IO, "{}: cannot map the bridge {}: {}; see XIO_NVME_BRIDGE", name, path, errno_text(errno));
    try {
      writer_ = std::make_unique<bridge_writer>(static_cast<std::byte*>(ring_), k_mapped, bdf, name);
    } catch (...) {
      munmap(ring_, k_mapped);
      throw;
    }
  }
  ~mapped_bridge() override { munmap(ring_, k_mapped); }
  mapped_bridge& operator=(mapped_bridge&&) = delete;
  bool write(std::uint32_t offset, std::uint32_t value) override { return writer_->write(offset, value); }

 private:
  void* ring_ = nullptr;
  std::unique_ptr<bridge_writer> writer_;
};

class software_bridge : public register_writer {
 public:
  software_bridge(const software::devices& devices, progress::machine& m, const doorbell_reach& can,
                  const std::string& name)
      : machine_(m),
        ring_(k_mapped),
        bridge_(devices.make_bridge(ring_.data(), ring_.size(), can.bdf, can.host_registers)) {
    writer_ = std::make_unique<bridge_writer>(ring_.data(), ring_.size(), can.bdf, name);
    machine_.add(bridge_.get());
  }
  ~software_bridge() override { machine_.remove(bridge_.get()); }
  software_bridge& operator=(software_bridge&&) = delete;
  bool write(std::uint32_t offset, std::uint32_t value) override { return writer_->write(offset, value); }

 private:
  progress::machine& machine_;
  std::vector<std::byte> ring_;
  std::unique_ptr<progress::device> bridge_;
  std::unique_ptr<bridge_writer> writer_;
};

}  // namespace

std::unique_ptr<register_writer> open_bridge(const std::string& path, progress::machine& m, const doorbell_reach& can,
                                             const std::string& name) {
  if (!path.empty()) return std::make_unique<mapped_bridge>(path, can.bdf, name);
  const software::devices* devices = software::built_in();
  if (can.software && devices != nullptr) return std::make_unique<software_bridge>(*devices, m, can, name);
  fail(XIO_ERR_CONFIG,
       "{}: XIO_NVME_DOORBELL=bridge needs to know where the bridge's ring is; set XIO_NVME_BRIDGE, or use host", name);
}

}  // namespace xio::nvme
