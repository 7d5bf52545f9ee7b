// SPDX-License-Identifier: MIT
// The symmetric heap on a real GPU, of every kind, written once in HIP's names. Included by hip.hip and cuda.cu only,
// behind accelerator.hpp.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "gpu/accelerator.hpp"
#include "gpu/heap_file.hpp"
#include "gpu/heap_handle.hpp"

namespace xio::gpu {

namespace {

struct heap_handle {
  std::uint64_t magic;
  std::uint64_t pid;
  std::uint64_t address;  // in the owner's process
  std::uint64_t bytes;
  char bus_id[16];  // of the owner's device
  hw::ipc_handle ipc;
};
static_assert(sizeof(heap_handle) == 48 + 64);
constexpr std::uint64_t k_magic = 0x33706165486f6958;  // "XioHeap3"

heap_handle own_handle(const void* data, std::size_t bytes) {
  heap_handle h{};
  h.magic = k_magic;
  h.pid = static_cast<std::uint64_t>(getpid());
  h.address = reinterpret_cast<std::uintptr_t>(data);
  h.bytes = bytes;
  const std::string id = bus_id();
  std::memcpy(h.bus_id, id.data(), std::min(id.size(), sizeof h.bus_id - 1));
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

class device_heap final : public heap {
 public:
  explicit device_heap(std::size_t bytes) : bytes_(bytes) {
    const on_device here;
    check(hw::alloc_heap(&data_, (bytes + k_granule - 1) / k_granule * k_granule),
          "a heap of {} bytes in the memory of device {}, of which {}; lower XIO_HEAP_SIZE or free some of it", bytes,
          g_device.load(), free_memory());
    try {
      fill_zero(data_, bytes);
    } catch (...) {
      (void)hipFree(data_);
      throw;
    }
  }
  ~device_heap() override { (void)hipFree(data_); }
  unsigned char* data() const override { return static_cast<unsigned char*>(data_); }
  std::size_t size() const override { return bytes_; }

  std::vector<std::byte> handle() const override {
    const on_device here;
    heap_handle h = own_handle(data_, bytes_);
    check(hw::ipc_export(&h.ipc, data_), "sharing a heap with other processes");
    return as_blob(h);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

class peer_heap final : public mapping {
 public:
  explicit peer_heap(const heap_handle& h) {
    // A process cannot import what it exported itself, and need not.
    if (h.pid == static_cast<std::uint64_t>(getpid())) {
      data_ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(h.address));
      return;
    }
    const on_device here;
    // A device that this process does not see cannot be asked about; then the mapping itself tells.
    int owner = -1;
    if (hw::device_at(&owner, h.bus_id) != hipSuccess)
      (void)hipGetLastError();
    else if (owner != g_device)
      check_peer_access(owner);
    const hipError_t e = hw::ipc_import(&data_, h.ipc);
    if (hw::means_out_of_reach(e)) {
      (void)hipGetLastError();
      fail(XIO_ERR_UNSUPPORTED, "device {} cannot map the memory of the device at {} ({})", g_device.load(), h.bus_id,
           hipGetErrorString(e));
    }
    check(e, "mapping the heap of process {}", h.pid);
    imported_ = true;
  }
  peer_heap(const peer_heap&) = delete;
  peer_heap& operator=(const peer_heap&) = delete;
  ~peer_heap() override {
    if (imported_) (void)hw::ipc_release(data_);
  }
  unsigned char* data() const override { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
  bool imported_ = false;
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
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() {
    if (hw::unpin(at_) != hipSuccess) (void)hipGetLastError();
  }

 private:
  void* at_;
};

class host_heap final : public heap {
 public:
  explicit host_heap(std::size_t bytes) : file_(make_file_heap(bytes)), pinned_(file_->data(), bytes) {}
  unsigned char* data() const override { return file_->data(); }
  std::size_t size() const override { return file_->size(); }
  std::vector<std::byte> handle() const override { return file_->handle(); }

 private:
  std::unique_ptr<heap> file_;
  pinned pinned_;
};

class peer_host_heap final : public mapping {
 public:
  peer_host_heap(const std::vector<std::byte>& handle, std::size_t bytes)
      : file_(map_file_heap(handle, bytes)), pinned_(file_->data(), bytes) {}
  unsigned char* data() const override { return file_->data(); }

 private:
  std::unique_ptr<mapping> file_;
  pinned pinned_;
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
  managed_heap(const managed_heap&) = delete;
  managed_heap& operator=(const managed_heap&) = delete;
  ~managed_heap() override { (void)hipFree(data_); }
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
    if (h.pid != static_cast<std::uint64_t>(getpid()))
      fail(XIO_ERR_UNSUPPORTED, "managed memory cannot be mapped by another process; set XIO_HEAP_KIND=host or device");
  }
  unsigned char* data() const override { return data_; }

 private:
  unsigned char* data_;
};

}  // namespace

std::unique_ptr<heap> make_heap(std::size_t bytes, heap_kind kind) {
  if (bytes == 0) fail(XIO_ERR_CONFIG, "a heap of 0 bytes; set XIO_HEAP_SIZE to what the program allocates");
  switch (kind) {
    case heap_kind::host: return std::make_unique<host_heap>(bytes);
    case heap_kind::managed: return std::make_unique<managed_heap>(bytes);
    case heap_kind::device: break;
  }
  return std::make_unique<device_heap>(bytes);
}

std::unique_ptr<mapping> map_heap(const std::vector<std::byte>& handle, std::size_t bytes, heap_kind kind) {
  if (kind == heap_kind::host) return std::make_unique<peer_host_heap>(handle, bytes);
  const auto h = checked_handle<heap_handle>(handle, k_magic, bytes);
  if (kind == heap_kind::managed) return std::make_unique<neighbour>(h);
  return std::make_unique<peer_heap>(h);
}

std::string heap_atomics_obstacle(heap_kind kind, bool one_gpu) {
  if (kind == heap_kind::device || hw::atomics_hold_in_host_memory(g_device, one_gpu)) return "";
  return fmt::format(
      "atomics of device {} on a heap of host memory are none for others that change the same word; set "
      "XIO_HEAP_KIND=device",
      g_device.load());
}

}  // namespace xio::gpu
