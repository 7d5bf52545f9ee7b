// SPDX-License-Identifier: MIT
// hip.hip over a HIP runtime of this file: which flags buffers and heaps are taken with on which GPU and version, what
// is said where the runtime refuses, and that a heap without an IPC handle is mapped by its dma-buf in another process.
// GPU memory is memfds.
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "refusal.hpp"

#pragma GCC visibility push(default)

namespace {

struct allocation {
  std::size_t bytes;
  bool on_host;
  unsigned flags;
  int fd;
  bool mapped;  // by the program, over a handle of its own
};

struct fake {
  std::string arch = "gfx942:sramecc+:xnack-";
  int version = 70051831;
  std::set<unsigned> refuses;  // flags of device memory
  bool ipc_refuses_uncached = false;
  bool ipc_refuses_all = false;
  hipError_t import_fails_with = hipSuccess;
  int exports = 0;
  bool register_refuses = false, lock_refuses = false;
  std::size_t host_memory_moves_by = 0;  // registered pages, for the GPU
  std::vector<std::string> pages;        // calls that map and unmap pages of registers
  bool dmabufs = true;
  int retained = 0;                    // handles
  std::atomic<bool> capturing{false};  // some stream, in global mode
  std::atomic<bool> disturbed{false};  // and a call has ended that
  bool streams_refuse = false;         // to be waited for meanwhile, and events, as HIP 5.7's
  std::atomic<int> looks{0};           // at events, of which every second one finds it done
  std::map<void*, allocation> live;    // under `lock`: XIO frees in a thread of its own
  std::vector<allocation> taken;       // all that ever was, but for 4096 and 8 bytes of the start and of waiting
  std::mutex lock;
} g;

thread_local hipStreamCaptureMode t_mode = hipStreamCaptureModeGlobal;

// As clr has it (hip_internal.hpp): what is refused beside a capture ends the capture, too.
bool disturbs_capture(bool even_relaxed) {
  if (!g.capturing || (!even_relaxed && t_mode == hipStreamCaptureModeRelaxed)) return false;
  return g.disturbed = true;
}

hipError_t take(void** out, std::size_t bytes, bool on_host, unsigned flags) {
  if (disturbs_capture(false)) return hipErrorStreamCaptureUnsupported;
  if (!on_host && g.refuses.count(flags) != 0) return hipErrorInvalidValue;
  const int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
  const std::size_t whole = (bytes + 4095) / 4096 * 4096;
  if (ftruncate(fd, static_cast<off_t>(whole)) != 0) return hipErrorOutOfMemory;
  *out = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const std::lock_guard hold(g.lock);
  g.live[*out] = {whole, on_host, flags, fd, false};
  if (bytes != sizeof(std::uint64_t)) g.taken.push_back(g.live[*out]);
  return hipSuccess;
}

hipError_t give_back(void* p) {
  if (disturbs_capture(false)) return hipErrorStreamCaptureUnsupported;
  const std::lock_guard hold(g.lock);
  const auto at = g.live.find(p);
  if (at == g.live.end()) return hipErrorInvalidValue;
  munmap(p, at->second.bytes);
  close(at->second.fd);
  g.live.erase(at);
  return hipSuccess;
}

struct found {
  const char* base;
  allocation is;
};

std::optional<found> around(const void* p) {
  const std::lock_guard hold(g.lock);
  for (const auto& [base, a] : g.live) {
    const auto offset = static_cast<const char*>(p) - static_cast<const char*>(base);
    if (offset >= 0 && static_cast<std::size_t>(offset) < a.bytes) return found{static_cast<const char*>(base), a};
  }
  return {};
}

// The allocation that begins at p.
allocation allocation_at(void* p) {
  const std::lock_guard hold(g.lock);
  return g.live.at(p);
}

}  // namespace

extern "C" {

hipError_t hipRuntimeGetVersion(int* out) { return *out = g.version, hipSuccess; }
hipError_t hipGetDeviceCount(int* out) { return *out = 1, hipSuccess; }
hipError_t hipSetDevice(int) { return hipSuccess; }
hipError_t hipGetDevice(int* out) { return *out = 0, hipSuccess; }
hipError_t hipGetLastError(void) { return hipSuccess; }
const char* hipGetErrorString(hipError_t) { return "refused on purpose"; }
hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int) {
  *out = {};
  std::strncpy(out->gcnArchName, g.arch.c_str(), sizeof out->gcnArchName - 1);
  return hipSuccess;
}
hipError_t hipDeviceGetAttribute(int* out, hipDeviceAttribute_t, int) { return *out = 0, hipSuccess; }
hipError_t hipDeviceGetPCIBusId(char* out, int bytes, int) {
  return std::snprintf(out, static_cast<std::size_t>(bytes), "0000:c1:00.0"), hipSuccess;
}
hipError_t hipDeviceGetByPCIBusId(int* out, const char*) { return *out = 0, hipSuccess; }
hipError_t hipDeviceGetStreamPriorityRange(int* a, int* b) { return *a = *b = 0, hipSuccess; }
hipError_t hipStreamCreateWithPriority(hipStream_t* out, unsigned, int) { return *out = nullptr, hipSuccess; }
hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
hipError_t hipStreamSynchronize(hipStream_t) {
  return g.capturing && g.streams_refuse ? hipErrorStreamCaptureUnsupported : hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t, hipStream_t) { return hipSuccess; }
hipError_t hipEventSynchronize(hipEvent_t) {
  return g.capturing && g.streams_refuse ? hipErrorStreamCaptureUnsupported : hipSuccess;
}
hipError_t hipEventQuery(hipEvent_t) { return ++g.looks % 2 == 1 ? hipErrorNotReady : hipSuccess; }
hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned) { return *out = nullptr, hipSuccess; }
hipError_t hipEventDestroy(hipEvent_t) { return hipSuccess; }
hipError_t hipDeviceSynchronize(void) { return disturbs_capture(true) ? hipErrorStreamCaptureUnsupported : hipSuccess; }
hipError_t hipHostRegister(void*, std::size_t, unsigned) {
  g.pages.emplace_back("register");
  if (disturbs_capture(false)) return hipErrorStreamCaptureUnsupported;
  return g.register_refuses ? hipErrorInvalidValue : hipSuccess;
}
hipError_t hipHostUnregister(void*) {
  g.pages.emplace_back("unregister");
  return disturbs_capture(false) ? hipErrorStreamCaptureUnsupported : hipSuccess;
}
hipError_t hipHostGetDevicePointer(void** out, void* p, unsigned) {
  return *out = static_cast<char*>(p) + g.host_memory_moves_by, hipSuccess;
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return std::swap(*mode, t_mode), hipSuccess;
}
hipError_t hipMalloc(void** out, std::size_t bytes) { return take(out, bytes, false, 0); }
hipError_t hipExtMallocWithFlags(void** out, std::size_t bytes, unsigned flags) {
  return take(out, bytes, false, flags);
}
hipError_t hipHostMalloc(void** out, std::size_t bytes, unsigned flags) { return take(out, bytes, true, flags); }
hipError_t hipFree(void* p) { return give_back(p); }
hipError_t hipHostFree(void* p) { return give_back(p); }
hipError_t hipMemGetInfo(std::size_t* free, std::size_t* total) { return *free = *total = 1 << 30, hipSuccess; }
hipError_t hipMemsetAsync(void* p, int value, std::size_t bytes, hipStream_t) {
  return std::memset(p, value, bytes), hipSuccess;
}
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind, hipStream_t) {
  return std::memcpy(to, from, bytes), hipSuccess;
}
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* out, const void* p) {
  const auto a = around(p);
  if (!a) return hipErrorInvalidValue;
  *out = {};
  const auto type = a->is.on_host ? hipMemoryTypeHost : hipMemoryTypeDevice;
#if HIP_VERSION_MAJOR >= 6
  out->type = type;
#else
  out->memoryType = type;
#endif
  return hipSuccess;
}
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* out, void* p) {
  ++g.exports;
  if (g.ipc_refuses_all) return hipErrorInvalidValue;
  if (g.ipc_refuses_uncached && allocation_at(p).flags == 0x3) return hipErrorInvalidValue;
  std::memset(out, 0, sizeof *out);
  const allocation a = allocation_at(p);
  std::memcpy(out, &a, sizeof a);
  return hipSuccess;
}
hipError_t hipIpcOpenMemHandle(void** out, hipIpcMemHandle_t h, unsigned) {
  if (g.import_fails_with != hipSuccess) return g.import_fails_with;
  allocation a{};
  std::memcpy(&a, &h, sizeof a);
  *out = mmap(nullptr, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
  return *out == MAP_FAILED ? hipErrorInvalidValue : hipSuccess;
}
hipError_t hipIpcCloseMemHandle(void*) { return hipSuccess; }
// The only kernel that is started here adds or reads a word: see change_word in accelerator.hpp.
hipError_t __hipPushCallConfiguration(dim3, dim3, std::size_t, hipStream_t) { return hipSuccess; }
hipError_t __hipPopCallConfiguration(dim3*, dim3*, std::size_t*, hipStream_t*) { return hipSuccess; }
hipError_t hipLaunchKernel(const void*, dim3, dim3, void** args, std::size_t, hipStream_t) {
  auto* word = *static_cast<std::uint64_t**>(args[0]);
  **static_cast<std::uint64_t**>(args[5]) = *word;
  *word += *static_cast<std::uint64_t*>(args[3]);
  return hipSuccess;
}

// libhsa-runtime64's, which hip_memory.hpp looks up. Agent 1 is the host with pools 10 (coarse) and 11 (fine), 2 the
// GPU.
struct fake_handle {
  std::uint64_t value;
};
int hsa_iterate_agents(int (*each)(fake_handle, void*), void* data) {
  for (const std::uint64_t agent : {2, 1})
    if (const int stop = each({agent}, data); stop != 0) return stop;
  return 0;
}
int hsa_agent_get_info(fake_handle agent, int what, void* out) {
  if (what != 17) return 1;  // HSA_AGENT_INFO_DEVICE
  *static_cast<std::uint32_t*>(out) = agent.value == 1 ? 0 : 1;
  return 0;
}
int hsa_amd_agent_iterate_memory_pools(fake_handle agent, int (*each)(fake_handle, void*), void* data) {
  for (const std::uint64_t pool : {10, 11})
    if (const int stop = each({agent.value == 1 ? pool : 20}, data); stop != 0) return stop;
  return 0;
}
int hsa_amd_memory_pool_get_info(fake_handle pool, int what, void* out) {
  // HSA_AMD_MEMORY_POOL_INFO_SEGMENT: global; _GLOBAL_FLAGS: 2 is fine-grained, 4 coarse.
  *static_cast<std::uint32_t*>(out) = what == 0 ? 0 : pool.value == 11 ? 2 : 4;
  return 0;
}
int hsa_amd_pointer_info(const void*, void* info, void*, void*, void*) {
  const std::uint64_t gpu = 2;
  std::memcpy(static_cast<char*>(info) + 40, &gpu, sizeof gpu);  // agentOwner
  return 0;
}
int hsa_amd_memory_lock_to_pool(void* page, std::size_t, fake_handle* agents, int count, fake_handle pool,
                                std::uint32_t flags, void** seen) {
  g.pages.push_back("lock for " + std::to_string(agents->value) + " in " + std::to_string(pool.value));
  if (count != 1 || flags != 0 || g.lock_refuses) return 0x1008;
  *seen = static_cast<char*>(page) + 0x1000000;
  return 0;
}
int hsa_amd_memory_unlock(void*) { return g.pages.emplace_back("unlock"), 0; }
int hsa_amd_portable_export_dmabuf_v2(const void* p, std::size_t, int* fd, std::uint64_t* offset, std::uint64_t) {
  const auto a = around(p);
  if (!g.dmabufs || !a) return 1;
  if (a->is.mapped) return 0x1003;  // it looks among allocations alone (ROCR runtime.cpp, DmaBufExport)
  *fd = dup(a->is.fd);
  *offset = static_cast<std::uint64_t>(static_cast<const char*>(p) - a->base);
  return 0;
}
// Of a mapping's first address alone (ROCR runtime.cpp, VMemoryRetainAllocHandle).
int hsa_amd_vmem_retain_alloc_handle(std::uint64_t* out, void* va) {
  const auto at = g.live.find(va);
  if (at == g.live.end() || !at->second.mapped) return 0x1003;
  ++g.retained;
  *out = static_cast<std::uint64_t>(at->second.fd) + 1000;
  return 0;
}
int hsa_amd_vmem_export_shareable_handle(int* fd, std::uint64_t handle, std::uint64_t) {
  if (!g.dmabufs) return 0x1008;
  *fd = dup(static_cast<int>(handle - 1000));
  return 0;
}
int hsa_amd_vmem_handle_release(std::uint64_t) { return --g.retained, 0; }
hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes, hipDeviceptr_t p) {
  const auto a = around(p);
  if (!a) return hipErrorNotFound;
  return *base = const_cast<char*>(a->base), *bytes = a->is.bytes, hipSuccess;
}
hipError_t hipImportExternalMemory(hipExternalMemory_t* out, const hipExternalMemoryHandleDesc* wish) {
  void* p = mmap(nullptr, wish->size, PROT_READ | PROT_WRITE, MAP_SHARED, wish->handle.fd, 0);
  if (p == MAP_FAILED) return hipErrorInvalidValue;
  *out = reinterpret_cast<hipExternalMemory_t>(p);
  return hipSuccess;
}
hipError_t hipExternalMemoryGetMappedBuffer(void** out, hipExternalMemory_t memory,
                                            const hipExternalMemoryBufferDesc*) {
  return *out = reinterpret_cast<void*>(memory), hipSuccess;
}
hipError_t hipDestroyExternalMemory(hipExternalMemory_t) { return hipSuccess; }

}  // extern "C"

#pragma GCC visibility pop

namespace xio::gpu {
namespace {

using test::refusal;

constexpr std::size_t k_bytes = std::size_t{2} << 20;
constexpr unsigned k_coherent = 0x40000003, k_uncached_host = 0x10000003;

class hip_kinds : public testing::Test {
 protected:
  void start(const char* arch, int version = 70051831) {
    g.arch = arch;
    g.version = version;
    init(0);
    g.taken.clear();
  }
  void TearDown() override {
    g.refuses.clear();
    g.ipc_refuses_uncached = g.ipc_refuses_all = false;
    g.dmabufs = true;
    g.import_fails_with = hipSuccess;
    g.register_refuses = g.lock_refuses = false;
    g.host_memory_moves_by = 0;
    g.pages.clear();
  }
  static unsigned flags_of(place where, purpose what) {
    g.taken.clear();
    const buffer b(100, where, 256, what);
    return g.taken.at(0).flags;
  }
};

TEST_F(hip_kinds, buffers_are_as_the_table_says) {
  start("gfx942:sramecc+:xnack-");
  EXPECT_EQ(flags_of(place::shared, purpose::own), k_uncached_host);
  EXPECT_EQ(flags_of(place::shared, purpose::completions), k_uncached_host);
  EXPECT_EQ(flags_of(place::device, purpose::rings), 0x3u);
  EXPECT_EQ(flags_of(place::device, purpose::own), 0x0u) << "what only kernels use is plain memory";
  start("gfx942:sramecc+:xnack-", 60443482);
  EXPECT_EQ(flags_of(place::shared, purpose::rings), k_coherent) << "HIP 6.4 would ignore the flag";
  EXPECT_EQ(flags_of(place::device, purpose::rings), 0x3u);
  start("gfx90a:sramecc+:xnack-");
  EXPECT_EQ(flags_of(place::shared, purpose::rings), k_coherent);
  EXPECT_EQ(flags_of(place::device, purpose::completions), 0x1u);
}

// The host changes them while kernels run.
TEST_F(hip_kinds, tables_are_in_ordinary_memory_where_kernels_see_others_writes_to_it) {
  for (const char* arch : {"gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack-"}) {
    start(arch);
    EXPECT_EQ(flags_of(place::device, purpose::tables), 0x0u) << arch;
  }
  // Without it a Radeon is refused as a whole.
  setenv("HSA_FORCE_FINE_GRAIN_PCIE", "1", 1);
  start("gfx1100");
  EXPECT_EQ(flags_of(place::device, purpose::tables), 0x1u);
  start("gfx1201");
  EXPECT_EQ(flags_of(place::device, purpose::tables), 0x3u);
  unsetenv("HSA_FORCE_FINE_GRAIN_PCIE");
}

TEST_F(hip_kinds, heaps_are_as_the_table_or_the_variable_says) {
  const auto flags = [](heap_kind kind) {
    g.taken.clear();
    const auto h = make_heap(k_bytes, kind);
    EXPECT_FALSE(h->handle().empty());
    return g.taken.at(0).flags;
  };
  start("gfx942");
  EXPECT_EQ(flags(heap_kind::device), 0x3u);
  EXPECT_EQ(flags(heap_kind::fine), 0x1u);
  start("gfx90a");
  EXPECT_EQ(flags(heap_kind::device), 0x1u);
  EXPECT_EQ(flags(heap_kind::uncached), 0x3u);
  start("gfx942", 50221153);
  EXPECT_EQ(flags(heap_kind::device), 0x1u);
  EXPECT_NE(refusal(XIO_ERR_UNSUPPORTED, [] { make_heap(k_bytes, heap_kind::uncached); }).find("HIP 5.2 has no"),
            std::string::npos);
}

TEST_F(hip_kinds, a_refused_heap_is_fine_grained_or_an_error) {
  start("gfx942");
  g.refuses = {0x3};
  const auto h = make_heap(k_bytes, heap_kind::device);
  EXPECT_EQ(allocation_at(h->data()).flags, 0x1u);
  refusal(XIO_ERR_UNSUPPORTED, [] { make_heap(k_bytes, heap_kind::uncached); });
}

TEST_F(hip_kinds, a_heap_without_an_ipc_handle_is_mapped_by_its_dma_buf) {
  start("gfx942");
  g.ipc_refuses_uncached = true;
  const auto h = make_heap(k_bytes, heap_kind::device);
  EXPECT_EQ(allocation_at(h->data()).flags, 0x3u);
  std::memcpy(h->data() + k_bytes - 8, "from me", 8);
  const auto handle = h->handle();
  const pid_t child = fork();
  if (child == 0) {
    try {
      const auto m = map_heap(handle, k_bytes, heap_kind::device);
      const bool seen = m->data() != h->data() && std::memcmp(m->data() + k_bytes - 8, "from me", 8) == 0;
      std::memcpy(m->data(), "from you", 8);
      _exit(seen ? 0 : 1);
    } catch (const error& e) {
      fprintf(stderr, "%s\n", e.what());
      _exit(2);
    }
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::memcmp(h->data(), "from you", 8), 0);
}

// Two containers number their processes alike.
TEST_F(hip_kinds, a_peer_with_the_same_process_id_is_not_this_process) {
  start("gfx90a");
  const auto h = make_heap(k_bytes, heap_kind::device);
  auto handle = h->handle();
  EXPECT_EQ(map_heap(handle, k_bytes, heap_kind::device)->data(), h->data()) << "this process";
  constexpr std::size_t k_tag = 16;  // behind the magic number and the process id
  for (std::size_t i = k_tag; i < k_tag + 16; ++i) handle[i] ^= std::byte{0x5a};
  h->data()[7] = 77;
  const auto m = map_heap(handle, k_bytes, heap_kind::device);
  EXPECT_NE(m->data(), h->data());
  EXPECT_EQ(m->data()[7], 77);
  EXPECT_NE(
      refusal(XIO_ERR_UNSUPPORTED, [&] { map_heap(handle, k_bytes, heap_kind::managed); }).find("another process"),
      std::string::npos);
}

TEST_F(hip_kinds, a_heap_of_one_pe_is_not_exported) {
  start("gfx90a");
  g.ipc_refuses_all = true;
  g.dmabufs = false;
  g.exports = 0;
  const auto h = make_heap(k_bytes, heap_kind::device, false);
  EXPECT_EQ(g.exports, 0);
  EXPECT_EQ(h->handle().size(), make_heap(k_bytes, heap_kind::device)->handle().size());
}

// Linux's own amdgpu has no IPC of the runtime's old kind.
TEST_F(hip_kinds, a_refused_export_reaches_the_peer_with_its_reason_and_cure) {
  start("gfx90a");
  g.ipc_refuses_all = true;
  g.dmabufs = false;
  const auto h = make_heap(k_bytes, heap_kind::device);
  auto handle = h->handle();
  handle[16] ^= std::byte{1};
  const std::string no = refusal(XIO_ERR_UNSUPPORTED, [&] { map_heap(handle, k_bytes, heap_kind::device); });
  EXPECT_NE(no.find("refused on purpose"), std::string::npos) << no;
  EXPECT_NE(no.find("HSA_ENABLE_IPC_MODE_LEGACY=0"), std::string::npos) << no;
}

TEST_F(hip_kinds, a_heap_that_nobody_can_map_is_fine_grained_or_for_rdma) {
  start("gfx942");
  g.ipc_refuses_uncached = true;
  g.dmabufs = false;
  const auto any = make_heap(k_bytes, heap_kind::device);
  EXPECT_EQ(allocation_at(any->data()).flags, 0x1u);
  const auto forced = make_heap(k_bytes, heap_kind::uncached);
  EXPECT_EQ(allocation_at(forced->data()).flags, 0x3u);
  const auto handle = forced->handle();
  const pid_t child = fork();
  if (child == 0) {
    try {
      map_heap(handle, k_bytes, heap_kind::uncached);
    } catch (const error& e) {
      _exit(e.status() == XIO_ERR_UNSUPPORTED ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "an obstacle of the direct route, no failure of the world";
}

// Two pieces, mapped one behind the other, as PyTorch's expandable segments are.
class pieces {
 public:
  static constexpr std::size_t k_piece = 8192;
  pieces() {
    at_ = static_cast<unsigned char*>(
        mmap(nullptr, 2 * k_piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (const std::size_t first : {std::size_t{0}, k_piece}) {
      const int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
      EXPECT_EQ(ftruncate(fd, k_piece), 0);
      EXPECT_NE(mmap(at_ + first, k_piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), MAP_FAILED);
      g.live[at_ + first] = {k_piece, false, 0, fd, true};
    }
  }
  ~pieces() {
    for (const std::size_t first : {std::size_t{0}, k_piece}) (void)::give_back(at_ + first);
  }
  unsigned char* data() const { return at_; }

 private:
  unsigned char* at_;
};

TEST_F(hip_kinds, memory_that_a_program_mapped_has_the_dma_buf_of_its_piece) {
  start("gfx942");
  const pieces two;
  unsigned char* inside = two.data() + pieces::k_piece + 4096;
  std::memcpy(inside + 5, "here", 4);
  const exported_memory e = export_memory(inside, 4096);
  ASSERT_GE(e.fd, 0) << e.why_not;
  EXPECT_EQ(e.offset, 4096u);
  char text[4];
  ASSERT_EQ(pread(e.fd, text, 4, static_cast<off_t>(e.offset) + 5), 4);
  EXPECT_EQ(std::string(text, 4), "here");
  close(e.fd);
  EXPECT_EQ(g.retained, 0) << "each handle is released";
}

TEST_F(hip_kinds, memory_of_two_pieces_is_refused_with_the_option_of_its_allocator) {
  start("gfx942");
  const pieces two;
  const exported_memory e = export_memory(two.data() + 4096, 8192);
  EXPECT_EQ(e.fd, -1);
  EXPECT_NE(e.why_not.find("8192 bytes at"), std::string::npos) << e.why_not;
  EXPECT_NE(e.why_not.find("PYTORCH_HIP_ALLOC_CONF=expandable_segments:False"), std::string::npos) << e.why_not;
  g.dmabufs = false;
  const exported_memory none = export_memory(two.data(), 4096);
  EXPECT_EQ(none.fd, -1);
  EXPECT_NE(none.why_not.find("HSA status 0x1"), std::string::npos) << none.why_not;
  EXPECT_EQ(g.retained, 0);
  std::vector<char> host(100);
  EXPECT_EQ(export_memory(host.data(), 100).why_not, "") << "host memory needs none";
}

TEST_F(hip_kinds, nothing_that_xio_calls_disturbs_the_capture_of_another_thread) {
  start("gfx90a");
  ASSERT_TRUE(wait_for_kernels(0)) << "nothing of before is still to be freed";
  g.capturing = true;
  std::vector<unsigned char> page(4096);
  const auto use_all = [&] {
    init(0);
    for (const heap_kind kind : {heap_kind::device, heap_kind::host}) {
      const auto h = make_heap(k_bytes, kind);
      fill_zero(h->data(), 4096);
      copy(h->data(), page.data(), page.size());
      EXPECT_EQ(payload().atomic(h->data(), 8, atomic_op::fetch, 0, 0), 0u);
    }
    for (const place where : {place::device, place::shared}) const buffer b(100, where, 256, purpose::rings);
    EXPECT_NE(map_registers(page.data(), page.size()), nullptr);
    EXPECT_TRUE(unmap_registers(page.data()));
    EXPECT_EQ(t_mode, hipStreamCaptureModeGlobal) << "the thread's own mode is back";
  };
  use_all();
  std::thread(use_all).join();
  // Frees are made on another thread, before this.
  EXPECT_TRUE(wait_for_kernels(0));
  EXPECT_FALSE(g.disturbed);
  g.capturing = g.disturbed = false;
}

TEST_F(hip_kinds, copies_beside_a_capture_are_looked_for_where_streams_refuse_waits) {
  start("gfx942");
  const auto h = make_heap(k_bytes, heap_kind::device);
  std::vector<unsigned char> page(4096, 1);
  g.looks = 0;
  copy(h->data(), page.data(), page.size());
  EXPECT_EQ(g.looks, 0);
  g.capturing = g.streams_refuse = true;
  copy(h->data(), page.data(), page.size());
  EXPECT_EQ(g.looks, 2);
  fill_zero(h->data(), 4096);
  EXPECT_EQ(g.looks, 4);
  EXPECT_FALSE(g.disturbed);
  g.capturing = g.streams_refuse = false;
}

using calls = std::vector<std::string>;

TEST_F(hip_kinds, a_page_of_registers_is_mapped_by_hip) {
  start("gfx942");
  int page = 0;
  EXPECT_EQ(map_registers(&page, 4096), &page);
  EXPECT_TRUE(unmap_registers(&page));
  EXPECT_EQ(g.pages, (calls{"register", "unregister"}));
}

// HIP registers for all GPUs of the process; the HSA runtime does for one, in memory that is not cached for kernels.
TEST_F(hip_kinds, a_page_that_hip_refuses_is_mapped_for_this_gpu_alone) {
  start("gfx942");
  g.register_refuses = true;
  char page = 0;
  const auto seen = reinterpret_cast<std::uintptr_t>(map_registers(&page, 4096));
  EXPECT_EQ(seen, reinterpret_cast<std::uintptr_t>(&page) + 0x1000000);
  EXPECT_TRUE(unmap_registers(&page));
  EXPECT_EQ(g.pages, (calls{"register", "lock for 2 in 11", "unlock"}));
}

TEST_F(hip_kinds, a_page_that_all_refuse_is_said_once_with_what_to_install) {
  start("gfx942");
  g.register_refuses = g.lock_refuses = true;
  int page = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(map_registers(&page, 4096), nullptr);
  EXPECT_EQ(map_registers(&page, 4096), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* words : {"warning", "doorbells", "hipHostRegister: refused on purpose",
                            "hsa_amd_memory_lock_to_pool: status 0x1008", "amdgpu-dkms"})
    EXPECT_NE(said.find(words), std::string::npos) << words << " in: " << said;
  EXPECT_EQ(said.find("amdgpu-dkms"), said.rfind("amdgpu-dkms")) << said;
}

// A kernel that names it by the host's address would fault.
TEST_F(hip_kinds, pinned_memory_that_the_gpu_sees_elsewhere_is_refused) {
  start("gfx90a");
  const block good = take(XIO_MEM_HOST_PINNED, 4096, 4096);
  give_back(good);
  ASSERT_TRUE(wait_for_kernels(0)) << "another thread unregisters it";
  g.pages.clear();
  g.host_memory_moves_by = 0x100000;
  const std::string said = refusal(XIO_ERR_UNSUPPORTED, [] { (void)take(XIO_MEM_HOST_PINNED, 4096, 4096); });
  EXPECT_NE(said.find("use HOST_COHERENT or HOST_MAPPED"), std::string::npos) << said;
  EXPECT_EQ(g.pages, (calls{"register", "unregister"})) << "and nothing of it stays registered";
}

// xio_mem_supports says beforehand what xio_mem_alloc does.
TEST_F(hip_kinds, pinned_memory_is_lacking_where_pinning_refuses_it) {
  start("gfx90a");
  EXPECT_EQ(lacks(XIO_MEM_HOST_PINNED), "");
  ASSERT_TRUE(wait_for_kernels(0)) << "another thread unregisters it";
  g.pages.clear();
  g.host_memory_moves_by = 0x100000;
  const std::string why = lacks(XIO_MEM_HOST_PINNED);
  EXPECT_NE(why.find("use HOST_COHERENT or HOST_MAPPED"), std::string::npos) << why;
  EXPECT_EQ(g.pages, (calls{"register", "unregister"})) << "and nothing of it stays registered";
  g.host_memory_moves_by = 0;
}

TEST_F(hip_kinds, xio_info_has_a_kind_and_a_reason) {
  start("gfx942");
  EXPECT_EQ(report_memory(purpose::heap, place::device).kind, "uncached device memory");
  EXPECT_NE(report_memory(purpose::heap, place::device).why.find("gfx942"), std::string::npos);
  start("gfx90a");
  EXPECT_EQ(report_memory(purpose::rings, place::shared).kind, "coherent host memory");
}

}  // namespace
}  // namespace xio::gpu
