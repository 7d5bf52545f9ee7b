// SPDX-License-Identifier: MIT
// xio_mem_where against what the kernel says by other calls, and against memory that was moved, unlocked or unmapped
// behind its back. Cases that this machine does not have are simulated: the runtime and the kernel are replaced.
#include "memory/where.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include "gpu/gpu.hpp"
#include "local_world.hpp"
#include "says.hpp"

namespace {

using xio::gpu::block;
using xio::gpu::residence;
using namespace xio::memory;
using xio::test::says;

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

xio_mem_place_t look(const void* p) {
  xio_mem_place_t place = XIO_MEM_PLACE_INIT;
  EXPECT_EQ(xio_mem_where(p, &place), XIO_OK) << xio_last_error();
  return place;
}

// --- Real memory -------------------------------------------------------------------------------------

TEST(where, an_address_where_nothing_is) {
  for (const std::uintptr_t at : {std::uintptr_t{0}, std::uintptr_t{8}, UINTPTR_MAX, UINTPTR_MAX - 5}) {
    const auto place = look(reinterpret_cast<void*>(at));
    EXPECT_PAIRS((place.side, XIO_MEM_ON_UNKNOWN), (place.kind, XIO_MEM_NONE), (place.base, nullptr),
                 (place.placed_as_requested, -1), (place.resident, -1), (place.numa_node, -1));
  }
}

TEST(where, memory_of_others) {
  int on_stack = 0;
  const auto place = look(&on_stack);
  EXPECT_PAIRS((place.side, XIO_MEM_ON_HOST), (place.kind, XIO_MEM_NONE), (place.placed_as_requested, -1),
               (place.resident, 1), (place.device, -1));
  EXPECT_STREQ(place.bus_id, "");
  EXPECT_EQ(place.page_bytes, page());
  EXPECT_LE(static_cast<void*>(place.base), static_cast<void*>(&on_stack));
  EXPECT_GT(static_cast<char*>(place.base) + place.bytes, reinterpret_cast<char*>(&on_stack));
}

TEST(where, pages_come_when_they_are_touched) {
  void* p = xio::test::take(XIO_MEM_HOST_PLAIN, 4 * page());
  auto* bytes = static_cast<volatile unsigned char*>(p);
  EXPECT_EQ(look(p).resident, 0) << "nobody has touched it";
  bytes[2 * page()] = 1;
  EXPECT_EQ(look(p).resident, 0);
  const auto place = look(static_cast<char*>(p) + 2 * page() + 77);
  EXPECT_PAIRS((place.resident, 1), (place.base, p), (place.bytes, 4 * page()), (place.kind, XIO_MEM_HOST_PLAIN));
  EXPECT_EQ(place.placed_as_requested, 1) << place.reason;
  EXPECT_EQ(place.locked, xio::gpu::has_device_memory() ? place.locked : 0);
  // The node is one that this machine has; containers may forbid the question.
  if (place.numa_node >= 0) {
    EXPECT_EQ(access(("/sys/devices/system/node/node" + std::to_string(place.numa_node)).c_str(), F_OK), 0);
  }
  EXPECT_EQ(xio_mem_free(p), XIO_OK);
}

// Pages that are bound to a node before they are touched lie there, on every node that this machine has. Where a
// container forbids to ask or to bind, the node is not known, and xio_mem_where says that.
TEST(where, pages_lie_on_the_numa_node_that_they_are_bound_to) {
  unsigned nodes = 0;
  for (unsigned node = 0; node < 64; ++node) {
    std::ifstream list("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
    if (!list) continue;
    void* p = xio::test::take(XIO_MEM_HOST_PLAIN, 2 * page());
    const unsigned long mask = 1ul << node;
    const bool bound = syscall(SYS_mbind, p, 2 * page(), MPOL_BIND, &mask, sizeof mask * 8, 0) == 0;
    static_cast<volatile unsigned char*>(p)[0] = 1;
    const int numa_node = look(p).numa_node;
    int status = 0;
    if (syscall(SYS_move_pages, 0, 1ul, &p, nullptr, &status, 0) == 0) {
      EXPECT_EQ(numa_node, status) << "the kernel knows the node";
    }
    EXPECT_TRUE(numa_node == static_cast<int>(node) || (!bound && numa_node >= 0) || numa_node == -1) << numa_node;
    if (bound && numa_node >= 0) {
      EXPECT_EQ(numa_node, static_cast<int>(node));
      ++nodes;
    }
    EXPECT_EQ(look(static_cast<char*>(p) + page()).numa_node, -1) << "a page that is not there is on no node";
    EXPECT_EQ(xio_mem_free(p), XIO_OK);
  }
  std::cout << nodes << " NUMA nodes\n";
}

#if defined(XIO_PLATFORM_HOST)
struct expectation {
  xio_mem_kind_t kind;
  int resident, locked;
};

TEST(where, kinds_differ_in_what_the_kernel_does) {
  for (const auto& want : {expectation{XIO_MEM_HOST_MAPPED, 1, 0},
                           {XIO_MEM_HOST_COHERENT, 1, 0},
                           {XIO_MEM_HOST_PINNED, 1, 1},
                           {XIO_MEM_HOST_PLAIN, 0, 0},
                           {XIO_MEM_HOST_DEFAULT, 1, 0},
                           {XIO_MEM_DEVICE_FINE_GRAINED, 0, 0},
                           {XIO_MEM_DEVICE_COARSE_GRAINED, 0, 0},
                           {XIO_MEM_DEVICE_VMEM, 0, 0},
                           {XIO_MEM_DEVICE_HIP, 0, 0}}) {
    void* p = xio::test::take(want.kind, 10 * page());
    for (const std::size_t at : {std::size_t{0}, 5 * page(), 10 * page() - 1}) {
      const auto place = look(static_cast<char*>(p) + at);
      EXPECT_PAIRS((place.side, XIO_MEM_ON_HOST), (place.kind, want.kind), (place.base, p));
      EXPECT_EQ(place.resident, want.resident) << xio_mem_kind_name(want.kind);
      EXPECT_EQ(place.locked, want.locked) << xio_mem_kind_name(want.kind);
      EXPECT_EQ(place.placed_as_requested, 1) << xio_mem_kind_name(want.kind) << ": " << place.reason;
      EXPECT_EQ(place.page_bytes, page());
    }
    EXPECT_EQ(xio_mem_free(p), XIO_OK);
    EXPECT_EQ(look(p).kind, XIO_MEM_NONE);
  }
}

TEST(where, notices_what_happens_behind_its_back) {
  void *pinned = nullptr, *plain = nullptr, *virt = nullptr;
  ASSERT_EQ(xio_mem_alloc(XIO_MEM_HOST_PINNED, 4 * page(), nullptr, &pinned), XIO_OK) << xio_last_error();
  ASSERT_EQ(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 4 * page(), nullptr, &plain), XIO_OK);
  ASSERT_EQ(xio_mem_alloc(XIO_MEM_DEVICE_VMEM, 4 * page(), nullptr, &virt), XIO_OK);

  // Not munlock(), which does nothing under sanitizers.
  ASSERT_EQ(syscall(SYS_munlock, static_cast<char*>(pinned) + 2 * page(), page()), 0);
  EXPECT_PAIRS((look(pinned).placed_as_requested, 0), (look(pinned).locked, 0));
  EXPECT_PRED2(says, look(pinned).reason, "not locked in memory, or not all of it");
  ASSERT_EQ(syscall(SYS_mlock, pinned, 4 * page()), 0);
  EXPECT_EQ(look(pinned).placed_as_requested, 1) << look(pinned).reason;

  ASSERT_EQ(munmap(static_cast<char*>(plain) + page(), page()), 0);
  EXPECT_EQ(look(plain).placed_as_requested, 0);
  EXPECT_PRED2(says, look(plain).reason, "no longer mapped");
  EXPECT_EQ(look(static_cast<char*>(plain) + page()).side, XIO_MEM_ON_UNKNOWN);
  EXPECT_EQ(look(static_cast<char*>(plain) + page()).kind, XIO_MEM_HOST_PLAIN) << "it was asked for as that";

  ASSERT_NE(mmap(virt, page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
  EXPECT_EQ(look(virt).placed_as_requested, 0);
  EXPECT_PRED2(says, look(virt).reason, "something else is mapped over it");

  for (void* p : {pinned, plain, virt}) EXPECT_EQ(xio_mem_free(p), XIO_OK);
}

TEST(where, guards_of_virtual_memory_hold_nothing) {
  void* p = xio::test::take(XIO_MEM_DEVICE_VMEM, page());
  EXPECT_PAIRS((look(static_cast<char*>(p) - 1).side, XIO_MEM_ON_UNKNOWN),
               (look(static_cast<char*>(p) + page()).side, XIO_MEM_ON_UNKNOWN), (xio_mem_free(p), XIO_OK));
}
#endif

#if !defined(XIO_PLATFORM_HOST)
TEST(where, kinds_are_where_the_runtime_says) {
  for (int k = XIO_MEM_HOST_MAPPED; k <= XIO_MEM_DEVICE_HIP; ++k) {
    const auto kind = static_cast<xio_mem_kind_t>(k);
    if (xio_mem_supports(kind) != XIO_OK) continue;
    void* p = xio::test::take(kind, 10 * page());
    const auto place = look(static_cast<char*>(p) + 5 * page());
    const bool on_host = kind <= XIO_MEM_HOST_DEFAULT;
    EXPECT_EQ(place.side, on_host ? XIO_MEM_ON_HOST : XIO_MEM_ON_DEVICE) << xio_mem_kind_name(kind);
    EXPECT_EQ(place.placed_as_requested, 1) << xio_mem_kind_name(kind) << ": " << place.reason;
    EXPECT_PAIRS((place.base, p), (place.bytes, 10 * page()),
                 (place.bus_id, on_host ? std::string() : xio::gpu::bus_id()) << xio_mem_kind_name(kind),
                 (place.device >= 0, !on_host));
    if (on_host && kind != XIO_MEM_HOST_PLAIN) {
      EXPECT_EQ(place.locked, 1) << xio_mem_kind_name(kind);
    }
    EXPECT_EQ(xio_mem_free(p), XIO_OK);
  }
}
#endif

TEST(where, callers_of_other_versions) {
  int there = 0;
  xio_mem_place_t place = XIO_MEM_PLACE_INIT;
  place.size = 0;
  EXPECT_EQ(xio_mem_where(&there, &place), XIO_ERR_CONFIG);
  EXPECT_PRED2(says, xio_last_error(), "xio_mem_place_t.size is 0");
  EXPECT_EQ(xio_mem_where(&there, nullptr), XIO_ERR_ARG);
  // One that ends behind `bytes`: what follows is not written.
  place = XIO_MEM_PLACE_INIT;
  place.size = offsetof(xio_mem_place_t, page_bytes);
  place.device = 12345;
  place.page_bytes = 777;
  EXPECT_EQ(xio_mem_where(&there, &place), XIO_OK);
  EXPECT_PAIRS((place.side, XIO_MEM_ON_HOST), (place.page_bytes, 777u), (place.device, 12345),
               (place.size, offsetof(xio_mem_place_t, page_bytes)));
}

// --- The kernel's text -------------------------------------------------------------------------------

// As Linux 6.1 writes it (fs/proc/task_mmu.c), shortened.
constexpr const char* k_smaps =
    "55d0c0000000-55d0c0002000 r--p 00000000 fe:00 1234                       /usr/bin/a name with spaces\n"
    "Size:                  8 kB\n"
    "KernelPageSize:        4 kB\n"
    "MMUPageSize:           4 kB\n"
    "Locked:                0 kB\n"
    "VmFlags: rd mr mw me \n"
    "7f0000000000-7f0000200000 rw-p 00000000 00:10 99                         /anon_hugepage (deleted)\n"
    "KernelPageSize:     2048 kB\n"
    "VmFlags: rd wr mr mw me ht lo \n"
    "7f0000200000-7f0000201000 ---p 00000000 00:00 0 \n"
    "KernelPageSize:       64 kB\n"
    "VmFlags: mr mw me nr \n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    "VmFlags: ex \n";

std::vector<mapping> read(const std::string& text, std::uint64_t first, std::uint64_t last) {
  std::istringstream in(text);
  return xio::memory::read_mappings(in, first, last);
}

TEST(where_text, reads_what_the_kernel_writes) {
  const auto all = read(k_smaps, 0, ~std::uint64_t{0});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_PAIRS((all[0].begin, 0x55d0c0000000u), (all[0].end, 0x55d0c0002000u),
               (all[0].name, "/usr/bin/a name with spaces"), (all[0].page_bytes, 4096u));
  EXPECT_TRUE(all[0].readable);
  EXPECT_FALSE(all[0].locked);
  EXPECT_EQ(all[1].page_bytes, 2u << 20);
  EXPECT_TRUE(all[1].locked);
  EXPECT_FALSE(all[2].readable);
  EXPECT_PAIRS((all[2].page_bytes, 65536u), (all[2].name, ""), (all[3].name, "[vsyscall]"));

  ASSERT_EQ(read(k_smaps, 0x7f00001fffff, 0x7f0000200001).size(), 2u);
  ASSERT_EQ(read(k_smaps, 0x7f0000200000, 0x7f0000200001).size(), 1u);
  EXPECT_EQ(read(k_smaps, 0x55d0c0002000, 0x7f0000000000).size(), 0u);
}

TEST(where_text, holes_are_seen) {
  const auto all = read(k_smaps, 0x7f0000000000, 0x7f0000201000);
  EXPECT_TRUE(xio::memory::cover(all, 0x7f0000000000, 0x7f0000201000));
  EXPECT_TRUE(xio::memory::cover(all, 0x7f0000000001, 0x7f0000200002));
  EXPECT_FALSE(xio::memory::cover(all, 0x7effffffffff, 0x7f0000201000));
  EXPECT_FALSE(xio::memory::cover(all, 0x7f0000000000, 0x7f0000201001));
  EXPECT_FALSE(xio::memory::cover(read(k_smaps, 0, ~std::uint64_t{0}), 0x55d0c0000000, 0x7f0000000001));
  EXPECT_FALSE(xio::memory::cover({}, 1, 2));
}

TEST(where_text, nonsense_is_not_believed) {
  for (const char* text : {"", "\n\n", "7f-", "7f0000000000-7f0000000000 rw-p 0 0 0\n", "9-1 rw-p 0 0:0 0\n",
                           "zz-zz rw-p 0 0:0 0\n", "VmFlags: lo\nKernelPageSize: 4 kB\n", "-\0-", "1-2\n"})
    EXPECT_EQ(read(text, 0, ~std::uint64_t{0}).size(), 0u) << text;
  const auto cut = read("1000-2000 rw-p 0 0:0 0\nKernelPageSize: x kB\nVmFlags", 0, 0x3000);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].page_bytes, 0u);
  EXPECT_FALSE(cut[0].locked);
}

// --- What other machines would say -------------------------------------------------------------------

block fake(xio_mem_kind_t kind) {
  block b;
  b.kind = kind;
  b.base = reinterpret_cast<void*>(0x10000);
  b.bytes = 0x2000;
  b.device = 1;
  return b;
}

evidence on_gpu_machine(residence where, int device = 1) {
  evidence e;
  e.has_device_memory = true;
  e.runtime.where = where;
  e.runtime.device = device;
  e.runtime.registered = where == residence::host;
  e.mapped = {mapping{0x10000, 0x12000, true, false, 4096, ""}};
  return e;
}

TEST(where_judges, device_memory_that_is_elsewhere) {
  for (const auto kind : {XIO_MEM_DEVICE_FINE_GRAINED, XIO_MEM_DEVICE_COARSE_GRAINED, XIO_MEM_DEVICE_UNCACHED,
                          XIO_MEM_DEVICE_VMEM, XIO_MEM_DEVICE_HIP}) {
    EXPECT_EQ(not_as_asked(fake(kind), on_gpu_machine(residence::device)), "");
    EXPECT_EQ(not_as_asked(fake(kind), on_gpu_machine(residence::host)), "it is in host memory");
    EXPECT_EQ(not_as_asked(fake(kind), on_gpu_machine(residence::device, 3)), "it is in the memory of device 3, not 1");
    EXPECT_PRED2(says, not_as_asked(fake(kind), on_gpu_machine(residence::both)), "managed");
    EXPECT_PRED2(says, not_as_asked(fake(kind), on_gpu_machine(residence::unknown)), "does not know");
  }
}

TEST(where_judges, host_memory_that_is_elsewhere) {
  for (const auto kind : {XIO_MEM_HOST_MAPPED, XIO_MEM_HOST_COHERENT, XIO_MEM_HOST_PINNED, XIO_MEM_HOST_DEFAULT}) {
    EXPECT_EQ(not_as_asked(fake(kind), on_gpu_machine(residence::host)), "");
    EXPECT_EQ(not_as_asked(fake(kind), on_gpu_machine(residence::device)), "it is in the memory of device 1");
    EXPECT_PRED2(says, not_as_asked(fake(kind), on_gpu_machine(residence::both)), "managed");
    EXPECT_EQ(not_as_asked(fake(kind), on_gpu_machine(residence::unknown)), "the GPU's runtime does not hold it");
    auto hole = on_gpu_machine(residence::host);
    hole.mapped[0].end -= 0x1000;
    EXPECT_EQ(not_as_asked(fake(kind), hole), "part of it is no longer mapped");
  }
  EXPECT_EQ(not_as_asked(fake(XIO_MEM_HOST_PLAIN), on_gpu_machine(residence::unknown)), "");
  EXPECT_NE(not_as_asked(fake(XIO_MEM_HOST_PLAIN), on_gpu_machine(residence::device)), "");
}

}  // namespace
