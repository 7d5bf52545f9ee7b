// SPDX-License-Identifier: MIT
// hip.hip over the HIP runtime of fake_hip.cpp: which flags buffers and heaps are taken with on which GPU and version,
// what is said where the runtime refuses, and that a heap without an IPC handle is mapped by its dma-buf in another
// process.
#include "fake_hip.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "refusal.hpp"

namespace xio::gpu {
namespace {

using namespace test::fake_hip;
using test::refusal;

constexpr std::size_t k_bytes = std::size_t{2} << 20;
constexpr unsigned k_coherent = 0x40000003, k_uncached_host = 0x10000003;

struct hip_kinds : testing::Test {
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

// Kernels that wait for it may leave no room for one.
TEST_F(hip_kinds, memory_of_queues_is_cleared_by_no_kernel) {
  start("gfx942");
  const int before = g.kernels;
  const buffer b(1 << 20, place::device);
  EXPECT_EQ(g.kernels, before);
}

TEST_F(hip_kinds, heaps_are_as_the_table_or_the_variable_says) {
  const auto flags = [](heap_kind kind) {
    g.taken.clear();
    const auto h = make_heap(k_bytes, kind);
    EXPECT_FALSE(h->handle().empty());
    return g.taken.at(0).flags;
  };
  start("gfx942");
  EXPECT_PAIRS((flags(heap_kind::device), 0x3u), (flags(heap_kind::fine), 0x1u));
  start("gfx90a");
  EXPECT_PAIRS((flags(heap_kind::device), 0x1u), (flags(heap_kind::uncached), 0x3u));
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
    for (const std::size_t first : {std::size_t{0}, k_piece}) (void)test::fake_hip::give_back(at_ + first);
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
  EXPECT_PAIRS((map_registers(&page, 4096), nullptr), (map_registers(&page, 4096), nullptr));
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
