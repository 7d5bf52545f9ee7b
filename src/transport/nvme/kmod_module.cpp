// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_module.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::nvme {
namespace {

constexpr std::size_t k_whole_page = 4096;

// The cure for each errno of the module (kernel/xio/xio_uapi.h).
const char* cure_of(int why) {
  switch (why) {
    case ENODEV: return "the device has no driver or is gone; bind it to xio and open it again";
    case EBUSY: return "its IOMMU belongs to vfio; bind it to xio";
    case EPERM: return "it needs CAP_SYS_RAWIO and a kernel that is not locked down; give the program that capability";
    case EOPNOTSUPP: return "another driver has the controller, or its DMA may be copied (swiotlb); bind it to xio";
    case ENOMEM: return "RLIMIT_MEMLOCK or the machine's memory stands against it; raise ulimit -l";
    case ENOSPC: return "the controller has no queue left, or this process holds all it may; ask for less";
    case EIO: return "the controller does not complete commands; look at the kernel's log and bind it again";
    case EREMOTEIO:
      return "the exporter puts this memory of the GPU into system memory; use a GPU and a root port between which the "
             "kernel allows peer-to-peer DMA, with a large BAR";
    case E2BIG: return "it lies in more pieces than a pin may have; use larger pages";
    case ESTALE: return "the exporter has moved the buffer against its word; register it again";
    default: return "see docs/kernel-module.md";
  }
}

std::uint32_t hex(const std::string& text, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  std::from_chars(text.data() + at, text.data() + at + count, value, 16);
  return value;
}

}  // namespace

int kmod_calls::open(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }
int kmod_calls::control(int fd, unsigned long request, void* argument) { return ioctl(fd, request, argument); }
void* kmod_calls::map(int fd, std::uint64_t offset, std::size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  return base == MAP_FAILED ? nullptr : base;
}
void kmod_calls::unmap(void* base, std::size_t bytes) { munmap(base, bytes); }

kmod_calls& kernel_module_calls() {
  static kmod_calls calls;
  return calls;
}

xio_kmod_pci kmod_device(const std::string& bdf) {
  // DOMAIN:BUS:SLOT.FUNCTION, whose domain has four to eight digits.
  const std::size_t colon = bdf.find(':');
  xio_kmod_pci d{};
  if (colon == std::string::npos || bdf.size() < colon + 8) return d;
  d.domain = hex(bdf, 0, colon);
  d.bus = static_cast<__u8>(hex(bdf, colon + 1, 2));
  d.slot = static_cast<__u8>(hex(bdf, colon + 4, 2));
  d.function = static_cast<__u8>(hex(bdf, colon + 7, 1));
  return d;
}

kmod_module::kmod_module(std::string name, const std::string& bdf, kmod_calls& calls, const std::string& path)
    : name_(std::move(name)), bdf_(bdf), device_(kmod_device(bdf)), calls_(calls), fd_(calls.open(path)) {
  if (!fd_) {
    const int why = errno;
    fail(why == EACCES || why == EPERM ? XIO_ERR_STATE : XIO_ERR_UNSUPPORTED,
         "cannot open {}: {}: {}; load the kernel module xio and give this user the right to open it", name_, path,
         errno_text(why));
  }
  if (const int why = call(XIO_KMOD_INFO, &info_); why != 0 || info_.version != XIO_KMOD_VERSION)
    fail(XIO_ERR_UNSUPPORTED,
         "cannot open {}: {} is of version {} of the kernel module xio, and this is for version {}; "
         "load the module that comes with this version of XIO",
         name_, path, info_.version, XIO_KMOD_VERSION);
  constexpr std::uint32_t needed = XIO_KMOD_HAS_PIN | XIO_KMOD_HAS_MEMORY | XIO_KMOD_HAS_QUEUE_PAIR;
  if ((info_.features & needed) != needed)
    fail(XIO_ERR_UNSUPPORTED,
         "cannot open {}: the kernel module xio lacks calls (features {:#x}); load the module that "
         "comes with this version of XIO",
         name_, info_.features);
}

int kmod_module::call(unsigned long request, void* argument) const {
  int status;
  do {
    status = calls_.control(fd_.get(), request, argument);
  } while (status != 0 && errno == EINTR);
  return status == 0 ? 0 : errno;
}

void kmod_module::refuse(const char* what, int why) const {
  fail(why == ENOMEM || why == ENOSPC ? XIO_ERR_NO_MEMORY
       : why == ENODEV || why == EIO  ? XIO_ERR_IO
                                      : XIO_ERR_UNSUPPORTED,
       "{}: the kernel module gives no {} of {}: {}; {}", name_, what, bdf_, errno_text(why), cure_of(why));
}

kmod_module::memory kmod_module::take_memory(std::size_t bytes) const {
  xio_kmod_memory a{};
  a.device = device_;
  a.bytes = (bytes + k_whole_page - 1) / k_whole_page * k_whole_page;
  if (const int why = call(XIO_KMOD_MEMORY, &a); why != 0) refuse("queue memory", why);
  translated_ = (a.state & XIO_KMOD_PINNED_TRANSLATED) != 0;
  void* base = calls_.map(fd_.get(), a.offset, a.bytes);
  if (base == nullptr) {
    const int why = errno;
    release(a.handle);
    fail(XIO_ERR_NO_MEMORY, "{}: {} bytes of queue memory cannot be mapped: {}; ask for shallower queues", name_,
         a.bytes, errno_text(why));
  }
  return {a.handle, a.address, base, a.bytes};
}

void kmod_module::give_memory_back(const memory& m) const noexcept {
  calls_.unmap(m.base, m.bytes);
  release(m.handle);
}

void kmod_module::release(std::uint32_t handle) const noexcept {
  xio_kmod_release a{handle, 0};
  // ENODEV: its device has gone, and with it what the handle stood for.
  if (const int why = call(XIO_KMOD_RELEASE, &a); why != 0 && why != ENODEV)
    log::warn("{}: the kernel module keeps object {}: {}", name_, handle, errno_text(why));
}

std::vector<kmod_module::run> kmod_module::runs_of(std::uint32_t handle, std::uint32_t segments) const {
  std::vector<xio_kmod_segment> list(segments);
  xio_kmod_segments a{};
  a.handle = handle;
  a.count = segments;
  a.array = reinterpret_cast<std::uintptr_t>(list.data());
  if (const int why = call(XIO_KMOD_SEGMENTS, &a); why != 0) refuse("addresses of a pinned buffer", why);
  if (a.count != segments)
    fail(XIO_ERR_IO, "{}: the kernel module told {} segments of a buffer and then {}; register the memory again", name_,
         segments, a.count);
  std::vector<run> runs;
  std::uint64_t offset = 0;
  for (const xio_kmod_segment& s : list) {
    if (!runs.empty() && runs.back().address + runs.back().bytes == s.address)
      runs.back().bytes += s.bytes;
    else
      runs.push_back({offset, s.address, s.bytes});
    offset += s.bytes;
  }
  return runs;
}

kmod_module::pin kmod_module::pin_dmabuf(int dmabuf, bool on_device) const {
  xio_kmod_pin a{};
  a.device = device_;
  a.dmabuf = dmabuf;
  a.flags = on_device ? XIO_KMOD_PIN_DEVICE : 0;
  if (const int why = call(XIO_KMOD_PIN, &a); why != 0) refuse("pinned memory", why);
  translated_ = (a.state & XIO_KMOD_PINNED_TRANSLATED) != 0;
  try {
    return {a.handle, runs_of(a.handle, a.segments)};
  } catch (...) {
    release(a.handle);
    throw;
  }
}

xio_kmod_queue_pair kmod_module::make_queue_pair(const queue_place& sq, std::uint32_t sq_entries, const queue_place& cq,
                                                 std::uint32_t cq_entries) const {
  xio_kmod_queue_pair a{};
  a.device = device_;
  a.sq_memory = sq.handle;
  a.cq_memory = cq.handle;
  a.sq_offset = sq.offset;
  a.cq_offset = cq.offset;
  a.sq_entries = sq_entries;
  a.cq_entries = cq_entries;
  if (const int why = call(XIO_KMOD_QUEUE_PAIR, &a); why != 0) refuse("queue pair", why);
  return a;
}

unsigned char* kmod_module::map_doorbells(const xio_kmod_queue_pair& pair) const {
  // Offsets of the kernel's are checked, too: a store outside the page would hit other memory.
  if (pair.sq_doorbell > k_whole_page - 4 || pair.cq_doorbell > k_whole_page - 4)
    fail(XIO_ERR_IO,
         "{}: the kernel module puts doorbells at {:#x} and {:#x} of a page; load the module that comes with "
         "this version of XIO",
         name_, pair.sq_doorbell, pair.cq_doorbell);
  void* page = calls_.map(fd_.get(), pair.offset, k_whole_page);
  if (page == nullptr)
    fail(XIO_ERR_IO, "{}: the page with the doorbells of queue {} cannot be mapped: {}; bind {} to xio again", name_,
         pair.queue, errno_text(errno), bdf_);
  return static_cast<unsigned char*>(page);
}

std::uint64_t kmod_module::identify(std::uint32_t cns, std::uint32_t nsid, unsigned char* page) const {
  xio_kmod_identify a{};
  a.device = device_;
  a.cns = cns;
  a.nsid = nsid;
  a.data = reinterpret_cast<std::uintptr_t>(page);
  if (const int why = call(XIO_KMOD_IDENTIFY, &a); why != 0) refuse("Identify data", why);
  return a.cap;
}

std::string kmod_module::trouble_of(std::uint32_t handle) const {
  xio_kmod_segment first{};
  xio_kmod_segments a{};
  a.handle = handle;
  a.count = 1;
  a.array = reinterpret_cast<std::uintptr_t>(&first);
  switch (call(XIO_KMOD_SEGMENTS, &a)) {
    case ENODEV: return "it was reset or bound again by somebody else, which ended its queues; open it again";
    case ESTALE: return "the exporter has moved memory that was pinned, against its word; open it again";
    default: return "";
  }
}

std::string kmod_module::trouble() const {
  alignas(8) unsigned char page[k_whole_page];
  xio_kmod_identify a{};
  a.device = device_;
  a.cns = 1;
  a.data = reinterpret_cast<std::uintptr_t>(page);
  switch (call(XIO_KMOD_IDENTIFY, &a)) {
    case ENODEV: return "it was unbound or is gone from the bus; bind it to xio and open it again";
    case EBUSY: return "vfio has it now; bind it to xio and open it again";
    case EOPNOTSUPP: return "another driver has it now; bind it to xio and open it again";
    case EIO: return "it was reset by somebody else, or does not complete commands any more; bind it to xio again";
    // Rights that this process has lost are no trouble of the drive.
    default: return "";
  }
}

}  // namespace xio::nvme
