// SPDX-License-Identifier: MIT
// The symmetric heap on a real GPU, of every kind, written once in HIP's names. Included by hip.hip and cuda.cu only,
// behind accelerator.hpp.
#pragma once
#include <sys/stat.h>

#include "gpu/accelerator.hpp"
#include "gpu/heap_attempt.hpp"
#include "gpu/heap_file.hpp"
#include "gpu/heap_handle.hpp"
#include "gpu/lent_file.hpp"

namespace xio::gpu {

namespace {

struct heap_handle {
  std::uint64_t magic;
  std::uint64_t pid;                     // of the owner, for people
  std::array<std::uint64_t, 2> process;  // process::tag() of the owner
  std::uint64_t address;                 // in the owner's process
  std::uint64_t bytes;
  char gpu[24];  // the owner's, as identity()
  hw::ipc_handle ipc;
  heap_sharing sharing;  // which of ipc and the dma-buf's loan holds
  std::uint32_t zero;
  char why_not[80];  // it can be mapped by nobody, if so
  loan_name loan;
  std::uint64_t offset, whole;  // of the heap in its dma-buf, and the dma-buf's bytes
};
static_assert(sizeof(heap_handle) == 64 + 64 + 40 + 80 + 8);
constexpr std::uint64_t k_magic = 0x36706165486f6958;  // "XioHeap6"
constexpr int k_borrow_ms = 10000;

heap_handle own_handle(const void* data, std::size_t bytes) {
  heap_handle h{};
  h.magic = k_magic;
  h.pid = static_cast<std::uint64_t>(getpid());
  h.process = process::tag();
  h.address = reinterpret_cast<std::uintptr_t>(data);
  h.bytes = bytes;
  const std::string id = identity();
  std::memcpy(h.gpu, id.data(), std::min(id.size(), sizeof h.gpu - 1));
  return h;
}

std::vector<std::byte> as_blob(const heap_handle& h) {
  std::vector<std::byte> out(sizeof h);
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

// An IPC handle stands for a whole allocation of the driver, and small ones share one: take whole granules.
constexpr std::size_t k_granule = std::size_t{2} << 20;

std::string free_memory() {
  std::size_t free = 0, total = 0;
  if (hw::memory_left(&free, &total) == hipSuccess) return fmt::format("{} of {} bytes are free", free, total);
  (void)hipGetLastError();
  return "nobody says how much is free";
}

heap_wish wish_for(std::size_t bytes, heap_kind kind, bool shared) {
  const memory_plan plan = hw::plan(purpose::heap, false, g_device);
  if (kind == heap_kind::device && plan.use != plan.wanted) log::warn("the heap is fine-grained: {}", plan.why);
  heap_wish w{(bytes + k_granule - 1) / k_granule * k_granule, plan.use, kind != heap_kind::device, shared, plan.why};
  if (kind == heap_kind::fine) w.kind = caching::fine;
  if (kind == heap_kind::uncached) {
    w.kind = caching::uncached;
    if (const std::string why = hw::uncached_heap_obstacle(); !why.empty())
      fail(XIO_ERR_UNSUPPORTED, "XIO_HEAP_KIND=uncached: {}; set XIO_HEAP_KIND=device", why);
  }
  return w;
}

class device_heap final : public heap {
 public:
  device_heap(std::size_t bytes, heap_kind kind, bool shared) : bytes_(bytes) {
    const on_device here;
    const heap_wish wish = wish_for(bytes, kind, shared);
    const taken_heap t = take_heap(
        *this, wish,
        fmt::format(
            "a heap of {} bytes in the memory of device {}, of which {}; lower XIO_HEAP_SIZE or free some of it", bytes,
            g_device.load(), free_memory()));
    data_ = t.data;
    sharing_ = t.sharing;
    why_not_ = t.why_not_shared;
    if (whole_ == 0) whole_ = wish.bytes;
    if (!t.lost.empty()) log::warn("{}", t.lost);
    log::info("the heap is {} memory: {}", name_of(t.kind), wish.why);
    try {
      fill_zero(data_, bytes);
    } catch (...) {
      release(data_);
      throw;
    }
  }
  ~device_heap() override {
    lent_.reset();
    free_after_kernels([data = data_] { release(data); });
  }

  // Allocates one kind for take_heap.
  static int allocate(void** out, std::size_t bytes, caching kind) {
    const auto e = hw::alloc_heap(out, bytes, kind);
    if (e != hipSuccess) (void)hipGetLastError();
    return static_cast<int>(e);
  }
  static bool out_of_memory(int e) { return e == static_cast<int>(hipErrorOutOfMemory); }
  static std::string text(int e) { return hipGetErrorString(static_cast<hipError_t>(e)); }
  static void release(void* p) { (void)hipFree(p); }
  std::string share_ipc(void* p) {
    const auto e = hw::ipc_export(&ipc_, p);
    if (e == hipSuccess) return "";
    (void)hipGetLastError();
    return hipGetErrorString(e);
  }
  std::string share_dmabuf(void* p) {
    return sentence_from([&] {
      unique_fd file(hw::export_dmabuf(nullptr, p, bytes_, false, &offset_));
      if (const off_t all = lseek(file.get(), 0, SEEK_END); all > 0) whole_ = static_cast<std::uint64_t>(all);
      lent_.emplace(std::move(file));
      return "";
    });
  }

  unsigned char* data() const override { return static_cast<unsigned char*>(data_); }
  std::size_t size() const override { return bytes_; }

  std::vector<std::byte> handle() const override {
    heap_handle h = own_handle(data_, bytes_);
    h.sharing = sharing_;
    h.ipc = ipc_;
    if (lent_) h.loan = lent_->name();
    h.offset = offset_;
    h.whole = whole_;
    why_not_.copy(h.why_not, sizeof h.why_not - 1);
    return as_blob(h);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_, whole_ = 0;
  heap_sharing sharing_ = heap_sharing::none;
  std::string why_not_;
  hw::ipc_handle ipc_{};
  std::uint64_t offset_ = 0;
  std::optional<lent_file> lent_;  // the dma-buf
};

// -1: this process does not see that GPU.
int device_of(const std::string& gpu) {
  for (int device = 0; device < device_count(); ++device)
    if (bus_id_of(device) == topology::pci_part(gpu) && identity_of(device) == gpu) return device;
  return -1;
}

class peer_heap final : public mapping {
 public:
  explicit peer_heap(const heap_handle& h) {
    // A process cannot import what it exported itself, and need not.
    if (h.process == process::tag()) {
      data_ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(h.address));
      return;
    }
    const on_device here;
    // A device that this process does not see cannot be asked about; then the mapping itself tells.
    const int owner = device_of(std::string(h.gpu, strnlen(h.gpu, sizeof h.gpu)));
    if (owner >= 0 && owner != g_device) check_peer_access(owner);
    hipError_t e = hipSuccess;
    switch (h.sharing) {
      case heap_sharing::ipc: e = hw::ipc_import(&data_, h.ipc); break;
      case heap_sharing::dmabuf: e = borrow(h); break;
      default:
        fail(XIO_ERR_UNSUPPORTED,
             "the driver of process {} lets nobody map its memory ({}); on Linux's own amdgpu set "
             "HSA_ENABLE_IPC_MODE_LEGACY=0, or install amdgpu-dkms, or set XIO_HEAP_KIND=fine",
             h.pid, std::string_view(h.why_not, strnlen(h.why_not, sizeof h.why_not)));
    }
    sharing_ = h.sharing;
    if (hw::means_out_of_reach(e)) {
      (void)hipGetLastError();
      fail(XIO_ERR_UNSUPPORTED, "device {} cannot map the memory of the device at {} ({})", g_device.load(),
           std::string_view(h.gpu, strnlen(h.gpu, sizeof h.gpu)), hipGetErrorString(e));
    }
    check(e, "mapping the heap of process {}", h.pid);
    imported_ = true;
  }
  peer_heap& operator=(peer_heap&&) = delete;
  ~peer_heap() override {
    if (!imported_) return;
    free_after_kernels([sharing = sharing_, data = data_, file = file_] {
      const on_device here;
      if (sharing == heap_sharing::ipc)
        (void)hw::ipc_release(data);
      else
        hw::release_dmabuf(file);
    });
  }
  unsigned char* data() const override { return static_cast<unsigned char*>(data_); }

 private:
  hipError_t borrow(const heap_handle& h) {
    if (h.offset > h.whole || h.bytes > h.whole - h.offset)
      fail(XIO_ERR_PEER, "the heap of process {} leaves its dma-buf of {} bytes; is it the same XIO?", h.pid, h.whole);
    const unique_fd fd = borrow_file(h.loan, k_borrow_ms);
    void* start = nullptr;
    // Some runtimes close what they are given, as CUDA says, and some do not.
    const int given = dup(fd.get());
    const hipError_t e = hw::import_dmabuf(&file_, &start, given, h.whole);
    struct stat mine {};
    struct stat theirs {};
    if (fstat(fd.get(), &mine) == 0 && fstat(given, &theirs) == 0 && mine.st_dev == theirs.st_dev &&
        mine.st_ino == theirs.st_ino)
      close(given);
    data_ = static_cast<unsigned char*>(start) + h.offset;
    return e;
  }

  void* data_ = nullptr;
  bool imported_ = false;
  heap_sharing sharing_ = heap_sharing::none;
  hw::imported file_{};
};

// Host memory, registered with this PE's device for as long as it lives.
class pinned {
 public:
  pinned(void* at, std::size_t bytes) : at_(at) {
    const on_device here;
    check(hw::pin(at, bytes), "registering {} bytes of host memory for the heap with device {}; lower XIO_HEAP_SIZE",
          bytes, g_device.load());
    void* seen = nullptr;
    if (hw::device_address(&seen, at) == hipSuccess && seen == at) return;
    (void)hipGetLastError();
    (void)hw::unpin(at);
    fail(XIO_ERR_UNSUPPORTED,
         "device {} sees registered host memory at other addresses than the host does; set XIO_HEAP_KIND=device",
         g_device.load());
  }
  pinned& operator=(pinned&&) = delete;
  ~pinned() {
    const relaxed_capture beside_captures;
    if (hw::unpin(at_) != hipSuccess) (void)hipGetLastError();
  }

 private:
  void* at_;
};

// Memory of a file and its registration, which ends first. Both go when no kernel runs any more.
template <class Memory>
class registered {
 public:
  registered(std::unique_ptr<Memory> memory, std::size_t bytes)
      : held_(std::make_shared<held>(std::move(memory), bytes)) {}
  registered& operator=(registered&&) = delete;
  ~registered() {
    free_after_kernels([last = std::move(held_)] {});
  }
  const Memory& operator*() const { return *held_->memory; }
  const Memory* operator->() const { return held_->memory.get(); }

 private:
  struct held {
    held(std::unique_ptr<Memory> given, std::size_t bytes) : memory(std::move(given)), pin(memory->data(), bytes) {}
    std::unique_ptr<Memory> memory;
    pinned pin;
  };
  std::shared_ptr<held> held_;
};

class host_heap final : public heap {
 public:
  explicit host_heap(std::size_t bytes) : file_(make_file_heap(bytes), bytes) {}
  unsigned char* data() const override { return file_->data(); }
  std::size_t size() const override { return file_->size(); }
  std::vector<std::byte> handle() const override { return file_->handle(); }

 private:
  registered<heap> file_;
};

class peer_host_heap final : public mapping {
 public:
  peer_host_heap(const std::vector<std::byte>& handle, std::size_t bytes)
      : file_(map_file_heap(handle, bytes), bytes) {}
  unsigned char* data() const override { return file_->data(); }

 private:
  registered<mapping> file_;
};

class managed_heap final : public heap {
 public:
  explicit managed_heap(std::size_t bytes) : bytes_(bytes) {
    const on_device here;
    if (!hw::shares_managed_memory(g_device))
      fail(XIO_ERR_UNSUPPORTED,
           "device {} does not let the host touch managed memory while kernels run; set XIO_HEAP_KIND=host or device",
           g_device.load());
    check(hw::alloc_managed(&data_, (bytes + k_granule - 1) / k_granule * k_granule),
          "a heap of {} bytes of managed memory; lower XIO_HEAP_SIZE", bytes);
    std::memset(data_, 0, bytes);
  }
  managed_heap& operator=(managed_heap&&) = delete;
  ~managed_heap() override {
    free_after_kernels([data = data_] { (void)hipFree(data); });
  }
  unsigned char* data() const override { return static_cast<unsigned char*>(data_); }
  std::size_t size() const override { return bytes_; }

  std::vector<std::byte> handle() const override { return as_blob(own_handle(data_, bytes_)); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

class neighbour final : public mapping {
 public:
  explicit neighbour(const heap_handle& h) : data_(reinterpret_cast<unsigned char*>(h.address)) {
    if (h.process != process::tag())
      fail(XIO_ERR_UNSUPPORTED, "managed memory cannot be mapped by another process; set XIO_HEAP_KIND=host or device");
  }
  unsigned char* data() const override { return data_; }

 private:
  unsigned char* data_;
};

}  // namespace

std::unique_ptr<heap> make_heap(std::size_t bytes, heap_kind kind, bool shared) {
  if (bytes == 0) fail(XIO_ERR_CONFIG, "a heap of 0 bytes; set XIO_HEAP_SIZE to what the program allocates");
  switch (kind) {
    case heap_kind::host: return std::make_unique<host_heap>(bytes);
    case heap_kind::managed: return std::make_unique<managed_heap>(bytes);
    case heap_kind::device:
    case heap_kind::uncached:
    case heap_kind::fine: break;
  }
  return std::make_unique<device_heap>(bytes, kind, shared);
}

std::unique_ptr<mapping> map_heap(const std::vector<std::byte>& handle, std::size_t bytes, heap_kind kind) {
  if (kind == heap_kind::host) return std::make_unique<peer_host_heap>(handle, bytes);
  const auto h = checked_handle<heap_handle>(handle, k_magic, bytes);
  if (kind == heap_kind::managed) return std::make_unique<neighbour>(h);
  return std::make_unique<peer_heap>(h);
}

std::string heap_atomics_obstacle(heap_kind kind, bool one_gpu) {
  if (in_device_memory(kind) || hw::atomics_hold_in_host_memory(g_device, one_gpu)) return "";
  return fmt::format(
      "atomics of device {} on a heap of host memory are none for others that change the same word; set "
      "XIO_HEAP_KIND=device",
      g_device.load());
}

}  // namespace xio::gpu
