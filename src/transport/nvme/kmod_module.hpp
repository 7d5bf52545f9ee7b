// SPDX-License-Identifier: MIT
// The kernel module xio as a program sees it: one open of /dev/xio for one PCI device. Each call throws one sentence.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../../../kernel/xio/xio_uapi.h"
#include "base/unique_fd.hpp"

namespace xio::nvme {

// The system calls by which the module is asked, so that a test can be the module.
class kmod_calls {
 public:
  virtual ~kmod_calls() = default;
  // As open(2) for reading and writing, ioctl(2), mmap(2) shared and munmap(2).
  virtual int open(const std::string& path);
  virtual int control(int fd, unsigned long request, void* argument);
  virtual void* map(int fd, std::uint64_t offset, std::size_t bytes);
  virtual void unmap(void* base, std::size_t bytes);
};
kmod_calls& kernel_module_calls();

// "0000:01:00.0", taken apart; the form is checked before.
xio_kmod_pci kmod_device(const std::string& bdf);

class kmod_module {
 public:
  // name: of the storage, for sentences.
  kmod_module(std::string name, const std::string& bdf, kmod_calls& calls, const std::string& path = "/dev/xio");
  kmod_module& operator=(kmod_module&&) = delete;

  kmod_calls& calls() const { return calls_; }
  const xio_kmod_info& info() const { return info_; }

  struct memory {
    std::uint32_t handle;
    std::uint64_t address;  // on the bus, contiguous
    void* base;
    std::size_t bytes;
  };
  // Zeroed memory of the module, whole pages, mapped.
  memory take_memory(std::size_t bytes) const;
  void give_memory_back(const memory& m) const noexcept;

  // A piece of a pinned buffer that is contiguous on the bus.
  struct run {
    std::uint64_t offset;  // from the buffer's begin
    std::uint64_t address, bytes;
  };
  struct pin {
    std::uint32_t handle;
    std::vector<run> runs;  // by offset, without gaps; neighbours on the bus are one run
  };
  // on_device: refused where the exporter puts the buffer into system memory.
  pin pin_dmabuf(int dmabuf, bool on_device) const;
  void release(std::uint32_t handle) const noexcept;
  // "" or what happened to a pinned buffer. A reset leaves a controller that is well, and takes what was had of it.
  std::string trouble_of(std::uint32_t handle) const;

  // Where a queue lies: a piece of take_memory, or a pinned buffer, in which the offset counts.
  struct queue_place {
    std::uint32_t handle;
    std::uint64_t offset;
  };
  // Whether addresses go through an IOMMU; once there is a queue.
  bool translated() const { return translated_; }
  bool pins_queues() const { return (info_.features & XIO_KMOD_HAS_PINNED_QUEUES) != 0; }
  xio_kmod_queue_pair make_queue_pair(const queue_place& sq, std::uint32_t sq_entries, const queue_place& cq,
                                      std::uint32_t cq_entries) const;
  // Fills 4096 bytes; returns register CAP.
  std::uint64_t identify(std::uint32_t cns, std::uint32_t nsid, unsigned char* page) const;
  // Asks the controller, by Identify: "" or what happened to it.
  std::string trouble() const;
  // The page with the doorbells of a queue pair.
  unsigned char* map_doorbells(const xio_kmod_queue_pair& pair) const;

 private:
  // Repeats a call that a signal ended; 0 or errno.
  int call(unsigned long request, void* argument) const;
  [[noreturn]] void refuse(const char* what, int why) const;
  std::vector<run> runs_of(std::uint32_t handle, std::uint32_t segments) const;

  std::string name_, bdf_;
  xio_kmod_pci device_;
  kmod_calls& calls_;
  unique_fd fd_;
  xio_kmod_info info_{};
  mutable std::atomic<bool> translated_{false};
};

}  // namespace xio::nvme
