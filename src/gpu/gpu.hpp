// SPDX-License-Identifier: MIT
// Host side of the platform: memory that device code and engines see, sharing it between processes, and the
// device's clock. One implementation is linked: host/host.cpp, hip.cpp or cuda.cu.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/payload.hpp"
#include "gpu/memory_choice.hpp"

namespace xio::gpu {

// Where memory lives.
enum class place {
  device,  // the GPU's memory; the host reaches it through copy() only
  shared,  // host memory that GPU, host threads and devices see coherently (pinned, uncached or coherent)
};

// Owns one allocation. The pointer is valid on host and device alike for place::shared.
class buffer {
 public:
  buffer() = default;
  // Zeroed; throws XIO_ERR_NO_MEMORY. what chooses the kind by the GPU at hand, see memory_choice.hpp: of own, device
  // memory is the kernels' alone, and host memory is as for flags.
  buffer(std::size_t bytes, place where, std::size_t alignment = 256, purpose what = purpose::own);
  buffer(buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        where_(other.where_),
        raw_(std::exchange(other.raw_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(where_, other.where_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~buffer();
  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  place where_ = place::shared;
  void* raw_ = nullptr;
};

// Copies between any two places, finished on return, and never blocked by running kernels.
void copy(void* to, const void* from, std::size_t bytes);
void fill_zero(void* to, std::size_t bytes);

template <class T>
void put_value(T* to, const T& value) {
  copy(to, &value, sizeof value);  // NOLINT(bugprone-sizeof-expression): a pointer is a value, too
}

// The memory of the symmetric heap (XIO_HEAP_KIND). On the host platform all are the same memory.
enum class heap_kind {
  device,    // the GPU's memory, uncached or fine-grained by memory_choice.hpp; the host reaches it through copy() only
  uncached,  // the GPU's memory, uncached or an error
  fine,      // the GPU's memory, fine-grained
  host,      // host memory that the GPUs of all PEs of this machine have registered
  managed,   // memory that moves between host and GPU; no other process can map it
};
inline bool in_device_memory(heap_kind kind) { return kind != heap_kind::host && kind != heap_kind::managed; }

// A symmetric heap: memory that peers on this machine can map.
class heap {
 public:
  virtual ~heap() = default;
  virtual unsigned char* data() const = 0;
  virtual std::size_t size() const = 0;
  // A blob (the same size on every PE, at most 256 bytes) that lets a peer process map this heap.
  virtual std::vector<std::byte> handle() const = 0;
};
// Zeroed. Throws XIO_ERR_NO_MEMORY with the cure, and XIO_ERR_UNSUPPORTED where the device has no such memory.
// shared: other processes of this machine will map it; else the driver is not asked for a handle.
std::unique_ptr<heap> make_heap(std::size_t bytes, heap_kind kind = heap_kind::device, bool shared = true);

// A peer's heap in this address space.
class mapping {
 public:
  virtual ~mapping() = default;
  virtual unsigned char* data() const = 0;
};
// kind: of both PEs' heaps. Throws XIO_ERR_UNSUPPORTED where this PE's device cannot reach such a heap.
std::unique_ptr<mapping> map_heap(const std::vector<std::byte>& handle, std::size_t bytes,
                                  heap_kind kind = heap_kind::device);

// Why what kernels change by atomics in heaps of that kind is lost on others, "" where it is not. one_gpu: the kernels
// of all PEs run on this process's device.
std::string heap_atomics_obstacle(heap_kind kind, bool one_gpu);

// True when this process can map heaps of a peer with that identity (same machine, device reachable).
std::string machine_identity();  // equal on PEs that share a machine
std::string boot_identity();     // of the kernel: equal on PEs that share its devices, in any containers; "" if unknown

const char* name();            // "host", "hip", "cuda"
std::uint64_t ticks_per_ms();  // of dev::wall_clock()
std::uint32_t wave_size();
std::size_t page_size();  // of the system
// "uncached host memory" and the reason, for people: what a buffer or the heap of that purpose is made of.
struct memory_report {
  std::string kind, why;
};
memory_report report_memory(purpose what, place where);
// Up to here a message is stored faster as packets, a word by each thread, than copied with a flag behind it.
std::uint32_t most_packet_bytes();
bool host_reads_device_memory();         // host threads may load and store place::device
bool in_device_memory(const void* p);    // what host threads reach through copy() only
bool stream_is_elsewhere(void* stream);  // of another GPU, as far as the runtime says. Legal in captures
bool kernels_reach(const void* p);  // else a kernel that loads from it is a fault. Legal while streams are captured

// The device's processor, as "gfx90a:sramecc+:xnack-" or "sm_90"; "host" on the host.
std::string arch();

// --- For NICs: all of it may be missing ---
// "0000:3b:00.0", the PCI function of this process's device; empty on the host.
std::string bus_id();
// The device among all of this machine, in every process alike: the bus id, and for a partition of an AMD GPU which,
// see topology/kfd_node.hpp; empty on the host.
std::string identity();
// The dma-buf that memory lies in: its descriptor, which is the caller's to close, and the place in it. fd -1: there is
// none, and why_not is the reason, or "" where it is no device memory.
struct exported_memory {
  int fd = -1;
  std::uint64_t offset = 0;
  std::string why_not = {};
};
exported_memory export_memory(void* base, std::size_t bytes);
// The same registers as a dma-buf, made where the runtime refuses their pages, as it does on Linux's own amdgpu.
struct register_export {
  std::function<exported_memory()> make = [] { return exported_memory{-1, 0, "its driver exports none"}; };
  bool pins = false;  // its driver has a pin operation, as mlx5's has and vfio's has not (foreign_registers.hpp)
};
// A page of a NIC's registers, mapped in this process, as kernels may store to it; null if they cannot.
void* map_registers(void* page, std::size_t bytes, const register_export& as = {});
// Ends a mapping of map_registers. False: kernels that run kept it from being done within a second; it is done when
// they have ended, so the page must stay.
bool unmap_registers(void* page);
// Memory of the host that a driver mapped into this process, in whole pages: where kernels reach it, which on AMD GPUs
// is another address than the host's. Null: they cannot.
void* show_pages(void* base, std::size_t bytes);
bool hide_pages(void* base);  // as unmap_registers
// A register of a device as kernels see it, of 4 or 8 bytes, and what it is rung with.
struct doorbell {
  void* at;
  std::uint64_t value;
  std::uint32_t bytes = 8;
};
// By a kernel, on whose end it waits: two lanes of each of two waves of two workgroups ring at once.
void ring_by_kernel(const std::vector<doorbell>& all);

// --- For the HDP, see memory/hdp.hpp ---
struct hdp_hardware {
  bool amd = false;                // a GPU of the kind that has one
  bool integrated = false;         // an APU
  bool large_bar = false;          // the CPU reads and writes all of its memory
  std::uint32_t* flush = nullptr;  // the flush register, the same address for this process and for kernels
  bool kernels_flush = true;       // false: kernels are compiled without, see device/platform/platform.hpp
};
hdp_hardware hdp();

int device_count();     // 0: none can be used
int selected_device();  // by init(); -1: not yet
// Lets kernels and engines of the selected device reach another one's memory. Throws if they cannot.
void reach_peer(int device);

// The device for the PE of that local rank: the one that the program chose, see device_choice.hpp; 0 where none can be
// used.
int device_for(int local_rank, bool keep_current);

// Checks that the device (modulo devices) is usable and selects it for this process and the calling thread.
void init(int device);

// Waits until no kernel of this process runs on its device, on any stream, timeout_ms at most (0: for ever); false
// if one still does.
bool wait_for_kernels(std::uint64_t timeout_ms);

// Software devices use this to touch payload; it is safe from any host thread while kernels run.
const payload_agent& payload();

}  // namespace xio::gpu
