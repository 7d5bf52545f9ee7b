// SPDX-License-Identifier: MIT
// gpu.hpp on the host platform: the "GPU" is this process, so device memory is ordinary memory.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/host_atomic.hpp"
#include "base/run_clock.hpp"
#include "base/sleeper.hpp"
#include "gpu/gpu.hpp"
#include "gpu/host/settings.hpp"
#include "gpu/host/stream.hpp"
#include "gpu/in_kernel.hpp"
#include "xio/device/platform/host_exec.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::gpu {

buffer::buffer(std::size_t bytes, place where, std::size_t alignment, purpose) : bytes_(bytes), where_(where) {
  if (bytes == 0) return;
  alignment = alignment < 256 ? 256 : alignment;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  raw_ = whole < bytes ? nullptr : std::aligned_alloc(alignment, whole);
  if (raw_ == nullptr) fail(XIO_ERR_NO_MEMORY, "a buffer of {} bytes: the system has no memory for it", bytes);
  std::memset(raw_, 0, whole);
  data_ = raw_;
}

buffer::~buffer() { std::free(raw_); }

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memmove(to, from, bytes);
}

void fill_zero(void* to, std::size_t bytes) {
  if (bytes != 0) std::memset(to, 0, bytes);
}

const char* name() { return "host"; }
std::uint64_t ticks_per_ms() { return 1000000; }
std::uint32_t wave_size() { return host_exec::config().wave_size; }
std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Threads take turns.
std::uint32_t most_packet_bytes() { return 64; }
bool host_reads_device_memory() { return true; }
bool in_device_memory(const void*) { return false; }
bool kernels_reach(const void*) { return true; }
bool stream_is_elsewhere(void*) { return false; }
std::string arch() { return "host"; }
std::string bus_id() { return ""; }
std::string identity() { return ""; }
exported_memory export_memory(void*, std::size_t) { return {}; }
void* map_registers(void* page, std::size_t, const register_export&) { return page; }
bool unmap_registers(void*) { return true; }
void* show_pages(void* base, std::size_t) { return base; }
bool hide_pages(void*) { return true; }
// Kernels are threads of the host.
void ring_by_kernel(const std::vector<doorbell>& all) {
  for (const doorbell& d : all) {
    if (d.bytes == 4)
      dev::ring_doorbell(static_cast<std::uint32_t*>(d.at), static_cast<std::uint32_t>(d.value));
    else
      dev::ring_doorbell(static_cast<std::uint64_t*>(d.at), d.value);
  }
}

hdp_hardware hdp() { return {}; }

bool in_kernel() { return host_exec::current != nullptr; }

int device_count() { return 1; }
int selected_device() { return 0; }
void reach_peer(int) {}

int device_for(int, bool) { return 0; }
void init(int) { host_exec::config(); }

bool wait_for_kernels(std::uint64_t timeout_ms) {
  const auto end = run_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (const auto& s : host_exec::stream::all()) {
    const host_exec::completion_ptr last = s->last();
    if (last == nullptr) continue;
    if (timeout_ms == 0) last->wait();
    while (timeout_ms != 0 && !last->wait_until(std::chrono::steady_clock::now() + run_clock::k_longest_pause))
      if (run_clock::now() >= end) return false;
  }
  return true;
}

namespace {

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
void full_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

constexpr payload_agent k_payload{&copy, &change_host_word, &full_fence, true};

}  // namespace

const payload_agent& payload() { return k_payload; }

}  // namespace xio::gpu
