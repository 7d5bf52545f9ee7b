// SPDX-License-Identifier: MIT
// gpu.hpp on a real GPU, written once in HIP's names. Included by hip.hip and cuda.cu only, after they have defined
// namespace xio::gpu::hw: the few calls that differ by more than their name.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/run_clock.hpp"
#include "gpu/after_kernels.hpp"
#include "gpu/chore.hpp"
#include "gpu/device_choice.hpp"
#include "gpu/gpu.hpp"
#include "gpu/in_kernel.hpp"
#include "gpu/polled_device.hpp"
#include "gpu/relaxed_capture.hpp"
#include "topology/kfd_node.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::gpu {

namespace {

std::atomic<int> g_device{0};  // chosen by init()
std::atomic<bool> g_selected{false};

template <class... Args>
void check(hipError_t e, fmt::format_string<Args...> what, Args&&... args) {
  if (e == hipSuccess) return;
  (void)hipGetLastError();
  fail(e == hipErrorOutOfMemory ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "{}: {} ({})",
       fmt::format(what, std::forward<Args>(args)...), hipGetErrorString(e), hipGetErrorName(e));
}

// Our device for the calling thread, and its calls beside captures; the thread's own choices come back at the end.
class on_device {
 public:
  on_device() {
    check(hipGetDevice(&before_), "the current device");
    if (before_ != g_device) check(hipSetDevice(g_device), "selecting device {}", g_device.load());
  }
  on_device& operator=(on_device&&) = delete;
  ~on_device() {
    if (before_ != g_device) (void)hipSetDevice(before_);
  }

 private:
  const relaxed_capture beside_captures_;
  int before_ = 0;
};

// Calls that free something behind all kernels. They wait for the device first: not every call that frees waits, and
// CUDA lets other calls of the process in while one waits for the device, but not while one frees.
template <class Call>
void free_after_kernels(Call&& call) {
  after_kernels([call = std::forward<Call>(call)]() mutable {
    const relaxed_capture beside_captures;
    if (hipSetDevice(g_device) != hipSuccess || hw::wait_for_device() != hipSuccess) (void)hipGetLastError();
    call();
  });
}

__global__ void change_word(void* address, unsigned width, atomic_op op, std::uint64_t operand, std::uint64_t compare,
                            std::uint64_t* old);
constexpr std::uint32_t k_lanes_ring = 2;  // of a wave
__global__ void ring_words(const doorbell* all, std::uint32_t n) {
  const std::uint32_t wave = (blockIdx.x * blockDim.x + threadIdx.x) / dev::wave_size();
  const std::uint32_t waves = gridDim.x * blockDim.x / dev::wave_size();
  if (dev::lane_id() >= k_lanes_ring) return;
  for (std::uint32_t i = wave * k_lanes_ring + dev::lane_id(); i < n; i += waves * k_lanes_ring) {
    if (all[i].bytes == 4)
      dev::ring_doorbell(static_cast<std::uint32_t*>(all[i].at), static_cast<std::uint32_t>(all[i].value));
    else
      dev::ring_doorbell(static_cast<std::uint64_t*>(all[i].at), all[i].value);
  }
}

// One host thread copies and changes payload with this: a stream that no kernel is on and that waits for no other.
class lane_of_thread {
 public:
  lane_of_thread() {
    const on_device here;
    check(hw::make_stream(&stream_), "a stream for copies");
    void* p = nullptr;
    check(hw::alloc_polled(&p, sizeof(std::uint64_t), true, purpose::flags, device_),
          "memory for the result of an atomic");
    result_ = static_cast<std::uint64_t*>(p);
    for (hipEvent_t& e : marks_) check(hipEventCreateWithFlags(&e, hipEventDisableTiming), "an event behind copies");
    check(hipEventCreateWithFlags(&end_, hipEventDisableTiming), "an event behind copies");
  }
  lane_of_thread& operator=(lane_of_thread&&) = delete;
  // Of our device as it is now: memory may have been asked for before init() chose it.
  static lane_of_thread& mine() {
    // A bare pointer: an exit handler may call after the thread_local objects of its thread have ended.
    static thread_local lane_of_thread* lane = nullptr;
    struct ending {
      ~ending() { give_back(std::exchange(lane, nullptr)); }
    };
    if (lane == nullptr || lane->device_ != g_device) {
      static thread_local const ending ends;
      (void)&ends;
      give_back(std::exchange(lane, nullptr));
      lane = take();
    }
    return *lane;
  }

  void copy(void* to, const void* from, std::size_t bytes) {
    begin(to, from, bytes);
    finish("a copy");
  }
  void begin(void* to, const void* from, std::size_t bytes) {
    const relaxed_capture beside_captures;
    under_way_ = true;
    check(hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream_), "a copy of {} bytes", bytes);
  }
  void finish_all() {
    if (under_way_) finish("copies");
  }
  // Events of the stream, used round and round.
  std::uint64_t mark() {
    const on_device here;
    check(hipEventRecord(marks_[marked_ % payload_agent::k_marks], stream_), "marking copies");
    return marked_++;
  }
  bool reached(std::uint64_t mark) {
    const relaxed_capture beside_captures;
    const hipError_t e = hipEventQuery(marks_[mark % payload_agent::k_marks]);
    if (e == hipErrorNotReady) return false;
    check(e, "copies on device {}", g_device.load());
    return true;
  }
  // Kernels may wait for what is made in this memory and leave no room for another kernel, by which AMD's runtime
  // clears any. The heap is larger, and no kernel waits for it.
  void zero(void* to, std::size_t bytes) {
    constexpr std::size_t k_most_copied = std::size_t{4} << 20;
    static unsigned char zeros[1 << 16];
    const relaxed_capture beside_captures;
    for (std::size_t at = 0; bytes <= k_most_copied && at < bytes; at += sizeof zeros)
      begin(static_cast<unsigned char*>(to) + at, zeros, std::min(sizeof zeros, bytes - at));
    if (bytes > k_most_copied) check(hipMemsetAsync(to, 0, bytes, stream_), "clearing {} bytes", bytes);
    finish("clearing memory");
  }
  void ring(const doorbell* all, std::uint32_t n) {
    const on_device here;
    hipLaunchKernelGGL(ring_words, dim3(2), dim3(2 * wave_size()), 0, stream_, all, n);
    check(hipGetLastError(), "starting a kernel that rings");
    finish("a kernel that rings");
  }
  std::uint64_t change(void* address, unsigned width, atomic_op op, std::uint64_t operand, std::uint64_t compare) {
    const on_device here;
    hipLaunchKernelGGL(change_word, dim3(1), dim3(1), 0, stream_, address, width, op, operand, compare, result_);
    check(hipGetLastError(), "starting an atomic");
    finish("an atomic");
    return *static_cast<volatile std::uint64_t*>(result_);
  }

 private:
  // The next thread takes the lane of one that has ended. It is never freed: CUDA frees behind all kernels, those that
  // start meanwhile too, and keeps every thread out so long, also the one for which such a kernel waits.
  struct kept {
    std::mutex lock;
    std::vector<lane_of_thread*> free;
  };
  static kept& all() {
    static auto* one = new kept;
    return *one;
  }
  static lane_of_thread* take() {
    kept& k = all();
    {
      const std::lock_guard hold(k.lock);
      const auto found = std::ranges::find_if(k.free, [](auto* l) { return l->device_ == g_device; });
      if (found != k.free.end()) {
        lane_of_thread* const lane = *found;
        k.free.erase(found);
        return lane;
      }
    }
    return new lane_of_thread;
  }
  static void give_back(lane_of_thread* lane) {
    // A child of fork has no part in its parent's.
    if (lane == nullptr || process::is_forked()) return;
    const std::lock_guard hold(all().lock);
    all().free.push_back(lane);
  }

  void finish(const char* what) {
    const relaxed_capture beside_captures;
    check(hw::wait_for_stream(stream_, end_), "{} on device {}", what, g_device.load());
    under_way_ = false;
  }

  const int device_ = g_device;
  hipStream_t stream_ = nullptr;
  std::uint64_t* result_ = nullptr;
  hipEvent_t marks_[payload_agent::k_marks] = {};
  hipEvent_t end_ = nullptr;
  std::uint64_t marked_ = 0;
  bool under_way_ = false;
};

template <class T>
XIO_HOST_DEVICE T changed(atomic_op op, T old, T operand, T compare) {
  switch (op) {
    case atomic_op::fetch: return old;
    case atomic_op::swap: return operand;
    case atomic_op::add: return old + operand;
    case atomic_op::compare_swap: return old == compare ? operand : old;
    case atomic_op::bit_and: return old & operand;
    case atomic_op::bit_or: return old | operand;
    case atomic_op::bit_xor: return old ^ operand;
  }
  return old;
}

template <class T>
__device__ T change_in_gpu(T* at, atomic_op op, T operand, T compare) {
  using namespace xio::dev;
  T old = load<scope::system, order::seq_cst>(at);
  if (op == atomic_op::fetch) return old;
  while (!compare_exchange<scope::system, order::seq_cst>(at, old, changed(op, old, operand, compare))) {
  }
  return old;
}

__global__ void change_word(void* address, unsigned width, atomic_op op, std::uint64_t operand, std::uint64_t compare,
                            std::uint64_t* old) {
  if (width == 4)
    *old = change_in_gpu(static_cast<std::uint32_t*>(address), op, static_cast<std::uint32_t>(operand),
                         static_cast<std::uint32_t>(compare));
  else
    *old = change_in_gpu(static_cast<std::uint64_t*>(address), op, operand, compare);
  xio::dev::fence<xio::dev::scope::system, xio::dev::order::seq_cst>();
}

template <class T>
T change_in_host(T* at, atomic_op op, T operand, T compare) {
  T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  if (op == atomic_op::fetch) return old;
  while (!__atomic_compare_exchange_n(at, &old, changed(op, old, operand, compare), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

std::uint64_t payload_atomic(void* address, unsigned width, atomic_op op, std::uint64_t operand,
                             std::uint64_t compare) {
  if (hw::in_device_memory(address)) return lane_of_thread::mine().change(address, width, op, operand, compare);
  if (width == 4)
    return change_in_host(static_cast<std::uint32_t*>(address), op, static_cast<std::uint32_t>(operand),
                          static_cast<std::uint32_t>(compare));
  return change_in_host(static_cast<std::uint64_t*>(address), op, operand, compare);
}

// Copies are finished when copy() returns; this orders the thread's own stores, too.
void payload_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

void payload_copy_later(void* to, const void* from, std::size_t bytes) {
  if (hw::in_device_memory(to) || hw::in_device_memory(from)) return lane_of_thread::mine().begin(to, from, bytes);
  // Copies arrive in the order in which they were begun.
  lane_of_thread::mine().finish_all();
  std::memcpy(to, from, bytes);
}

void payload_finish() { lane_of_thread::mine().finish_all(); }

std::uint64_t payload_mark() { return lane_of_thread::mine().mark(); }
bool payload_reached(std::uint64_t mark) { return lane_of_thread::mine().reached(mark); }

void payload_use_device() { (void)hipSetDevice(g_device); }

constexpr payload_agent k_payload{
    &copy,           &payload_atomic, &payload_fence,   false,          &payload_copy_later,
    &payload_finish, &payload_mark,   &payload_reached, hw::k_files_by, &payload_use_device};

}  // namespace

const payload_agent& payload() { return k_payload; }

void add_chore(chore&) {}
void remove_chore(chore&) {}
polled_device::polled_device() = default;
polled_device::~polled_device() = default;

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (!hw::in_device_memory(to) && !hw::in_device_memory(from))
    std::memmove(to, from, bytes);
  else
    lane_of_thread::mine().copy(to, from, bytes);
}

void fill_zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (hw::in_device_memory(to))
    lane_of_thread::mine().zero(to, bytes);
  else
    std::memset(to, 0, bytes);
}

// --- buffer ------------------------------------------------------------------------------------------

buffer::buffer(std::size_t bytes, place where, std::size_t alignment, purpose what) : bytes_(bytes), where_(where) {
  if (bytes == 0) return;
  const on_device here;
  // Both allocators align to 256 at least.
  const std::size_t spare = alignment <= 256 ? 0 : alignment;
  if (where == place::shared)
    check(hw::alloc_polled(&raw_, bytes + spare, true, what, g_device), "{} bytes of pinned host memory", bytes);
  else if (what == purpose::own)
    check(hipMalloc(&raw_, bytes + spare), "{} bytes of device memory", bytes);
  else if (what == purpose::tables)
    check(hw::alloc_tables(&raw_, bytes + spare, g_device), "{} bytes of device memory for tables", bytes);
  else
    check(hw::alloc_polled(&raw_, bytes + spare, false, what, g_device), "{} bytes of device memory for {}", bytes,
          name_of(what));
  auto at = reinterpret_cast<std::uintptr_t>(raw_);
  if (spare != 0) at = (at + alignment - 1) / alignment * alignment;
  data_ = reinterpret_cast<void*>(at);
  try {
    fill_zero(data_, bytes);
  } catch (...) {
    buffer thrown_away(std::move(*this));
    throw;
  }
}

buffer::~buffer() {
  if (raw_ == nullptr) return;
  free_after_kernels(
      [raw = raw_, where = where_] { (void)(where == place::device ? hw::free_device(raw) : hw::free_pinned(raw)); });
}

// --- device ------------------------------------------------------------------------------------------

namespace {

void check_peer_access(int device) {
  int can = 0;
  if (hipDeviceCanAccessPeer(&can, g_device, device) == hipSuccess && can != 0) return;
  (void)hipGetLastError();
  fail(XIO_ERR_UNSUPPORTED,
       "device {} cannot reach the memory of device {}; they are not linked, or peer access is turned off",
       g_device.load(), device);
}

}  // namespace

std::string machine_identity() {
  const std::string boot = boot_identity();
  char space[64] = {};
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = '?';
  return fmt::format("{} {} {} {}", boot, space, getuid(), name());
}

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::uint32_t wave_size() {
  int lanes = 0;
  check(hipDeviceGetAttribute(&lanes, hipDeviceAttributeWarpSize, g_device), "the wave size of device {}",
        g_device.load());
  return static_cast<std::uint32_t>(lanes);
}

std::uint32_t most_packet_bytes() { return 4096; }
// Through a large BAR it may be so, but slowly and not coherently: nobody counts on it.
bool host_reads_device_memory() { return false; }
bool in_device_memory(const void* p) { return hw::in_device_memory(p); }
void ring_by_kernel(const std::vector<doorbell>& all) {
  const buffer seen(all.size() * sizeof(doorbell), place::shared);
  std::ranges::copy(all, seen.as<doorbell>());
  lane_of_thread::mine().ring(seen.as<doorbell>(), static_cast<std::uint32_t>(all.size()));
}

// The null stream and those that CUDA numbers from 1 on are of the device that is current at a launch.
bool stream_is_elsewhere(void* stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return false;
  // A context is found while its device is current.
  static const bool first = [&] {
    const on_device here;
    return hw::stream_is_elsewhere(stream, g_device);
  }();
  static_cast<void>(first);
  return hw::stream_is_elsewhere(stream, g_device);
}

bool kernels_reach(const void* p) { return hw::kernels_reach(p, g_device); }

std::string arch() { return hw::get_arch(g_device); }

hdp_hardware hdp() { return hw::hdp(g_device); }

bool in_kernel() { return false; }

int device_count() {
  int count = 0;
  if (hipGetDeviceCount(&count) == hipSuccess) return count;
  (void)hipGetLastError();
  return 0;
}

int selected_device() { return g_selected ? g_device.load() : -1; }

void reach_peer(int device) {
  const on_device here;
  check_peer_access(device);
  const hipError_t e = hipDeviceEnablePeerAccess(device, 0);
  if (e == hipErrorPeerAccessAlreadyEnabled) {
    (void)hipGetLastError();
    return;
  }
  check(e, "access of device {} to the memory of device {}", g_device.load(), device);
}

// The whole device, for an event of the default stream does not stand behind streams that were made not to wait for it.
// The error of a kernel that died is not this call's to report.
bool wait_for_kernels(std::uint64_t timeout_ms) {
  return after_kernels_within(
      [] {
        const on_device here;
        if (hw::wait_for_device() != hipSuccess) (void)hipGetLastError();
      },
      timeout_ms);
}

int device_for(int local_rank, bool keep_current) {
  int count = 0, current = 0;
  if (hipGetDeviceCount(&count) != hipSuccess || hipGetDevice(&current) != hipSuccess) {
    (void)hipGetLastError();
    return 0;  // init() says why
  }
  return choose_device(current, keep_current, local_rank, count);
}

void init(int device) {
  int count = 0;
  if (const hipError_t e = hipGetDeviceCount(&count); e != hipSuccess || count == 0) {
    (void)hipGetLastError();
    fail(XIO_ERR_UNSUPPORTED, "{}", hw::why_no_device(e));
  }
  const relaxed_capture beside_captures;
  g_device = (device < 0 ? 0 : device) % count;
  check(hipSetDevice(g_device), "selecting device {} of {}", g_device.load(), count);
  g_selected = true;
  hw::check_device(g_device);
  // Its first use loads a kernel, which would wait for kernels that run; do that before there are any.
  buffer word(sizeof(std::uint64_t), place::device);
  if (payload_atomic(word.data(), 8, atomic_op::add, 1, 0) != 0 ||
      payload_atomic(word.data(), 4, atomic_op::fetch, 0, 0) != 1)
    fail(XIO_ERR_UNSUPPORTED, "device {} does not do 64-bit atomics in its own memory; choose another device",
         g_device.load());
}

}  // namespace xio::gpu
