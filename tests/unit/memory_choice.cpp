// SPDX-License-Identifier: MIT
// The kind of memory for what others write while a kernel looks, per GPU and purpose: the table, what each HIP has of
// it, and what is taken where a runtime refuses. The runtime is a fake; flags are the numbers of hip_runtime_api.h of
// HIP 7.
#include "gpu/memory_choice.hpp"
#include "gpu/heap_attempt.hpp"
#include "refusal.hpp"
#include "says.hpp"

namespace xio::gpu {
namespace {

using test::refusal;
using xio::test::says;

constexpr hip_version k_52{50221153}, k_57{50731921}, k_64{60443482}, k_70{70051831};
constexpr purpose k_polled[] = {purpose::rings, purpose::completions, purpose::flags, purpose::heap};

// --- The table ---------------------------------------------------------------------------------------

TEST(memory_choice, is_uncached_where_caches_keep_fine_grained_memory) {
  for (const char* arch : {"gfx940", "gfx942:sramecc+:xnack-", "gfx950", "gfx1200", "gfx1201", "gfx1250"})
    for (const purpose what : k_polled)
      for (const bool on_host : {false, true}) {
        const memory_plan p = plan_memory(arch, what, on_host, k_70);
        EXPECT_EQ(p.wanted, caching::uncached) << arch << ' ' << name_of(what);
        EXPECT_EQ(p.use, caching::uncached) << arch << ' ' << name_of(what);
        EXPECT_FALSE(says(p.why, "sramecc")) << p.why;
      }
}

TEST(memory_choice, is_fine_grained_where_that_is_coherent) {
  for (const char* arch : {"gfx906", "gfx908", "gfx90a:sramecc+:xnack-", "gfx1010", "gfx1030", "gfx1100", "gfx1151"})
    for (const purpose what : k_polled)
      for (const bool on_host : {false, true}) {
        const memory_plan p = plan_memory(arch, what, on_host, k_70);
        EXPECT_PAIRS((p.wanted, caching::fine) << arch << ' ' << name_of(what), (p.use, caching::fine));
      }
}

// Linux amdgpu maps coarse-grained memory of the GPU's own RW on these, and NC on all others (gmc_v9_0.c, gmc_v10_0.c,
// gmc_v11_0.c, gmc_v12_0.c).
TEST(memory_choice, ordinary_memory_of_few_gpus_is_fresh) {
  for (const char* arch : {"gfx908", "gfx90a:sramecc+:xnack-", "gfx942", "gfx950"})
    EXPECT_TRUE(own_memory_is_fresh(arch)) << arch;
  for (const char* arch : {"gfx906", "gfx1030", "gfx1100", "gfx1201", "gfx1310", ""})
    EXPECT_FALSE(own_memory_is_fresh(arch)) << arch;
}

TEST(memory_choice, of_an_unknown_gpu_is_uncached) {
  for (const char* arch : {"gfx1310", "", "gfx", "sm_90"})
    EXPECT_EQ(plan_memory(arch, purpose::heap, false, k_70).use, caching::uncached) << arch;
}

// hipDeviceMallocUncached came with ROCm 5.7, hipHostMallocUncached with HIP 7.0; before, hipHostMalloc takes its bit
// without a word and gives coherent memory.
TEST(memory_choice, takes_what_the_runtime_has) {
  EXPECT_EQ(plan_memory("gfx942", purpose::heap, false, k_52).use, caching::fine);
  EXPECT_EQ(plan_memory("gfx942", purpose::heap, false, k_57).use, caching::uncached);
  EXPECT_EQ(plan_memory("gfx942", purpose::rings, true, k_57).use, caching::fine);
  EXPECT_EQ(plan_memory("gfx942", purpose::rings, true, k_64).use, caching::fine);
  EXPECT_EQ(plan_memory("gfx942", purpose::rings, true, k_70).use, caching::uncached);
  EXPECT_EQ(plan_memory("gfx90a", purpose::rings, true, k_52).use, caching::fine);
}

TEST(memory_choice, says_what_is_lost_with_an_old_runtime) {
  const memory_plan host = plan_memory("gfx942", purpose::rings, true, k_64);
  EXPECT_TRUE(host.harmless) << "the driver maps a discrete GPU's host memory uncached on gfx942";
  EXPECT_TRUE(says(host.why, "HIP 6.4 has no uncached host memory (7.0 and newer have)")) << host.why;
  EXPECT_FALSE(plan_memory("gfx950", purpose::rings, true, k_64).harmless) << "and not on gfx950";
  const memory_plan device = plan_memory("gfx942", purpose::heap, false, k_52);
  EXPECT_FALSE(device.harmless);
  EXPECT_TRUE(says(device.why, "HIP 5.2 has no uncached device memory (5.7 and newer have)")) << device.why;
  EXPECT_FALSE(says(plan_memory("gfx942", purpose::heap, false, k_70).why, "has no"));
}

// --- Buffers -----------------------------------------------------------------------------------------

// A runtime that refuses some flags.
struct fake_runtime {
  std::map<unsigned, int> refuses;  // flags and their error
  std::vector<unsigned> asked;
  int said = 0;

  int take(const memory_plan& p, bool on_host) {
    return take_planned(
        p, on_host,
        [&](unsigned flags) {
          asked.push_back(flags);
          return refuses.count(flags) != 0 ? refuses[flags] : 0;
        },
        [](int e) { return e == 2; }, [&](int e) { said = e; });
  }
};

constexpr unsigned k_host_coherent = 0x40000003, k_host_uncached = 0x10000003;  // portable, mapped

TEST(polled_buffer, is_taken_with_the_flag_of_its_kind) {
  const auto flags = [](const char* arch, bool on_host) {
    fake_runtime r;
    EXPECT_PAIRS((r.take(plan_memory(arch, purpose::completions, on_host, k_70), on_host), 0), (r.said, 0));
    return r.asked;
  };
  EXPECT_EQ(flags("gfx942", false), std::vector<unsigned>{0x3});
  EXPECT_EQ(flags("gfx942", true), std::vector<unsigned>{k_host_uncached});
  EXPECT_EQ(flags("gfx90a", false), std::vector<unsigned>{0x1});
  EXPECT_EQ(flags("gfx90a", true), std::vector<unsigned>{k_host_coherent});
}

TEST(polled_buffer, is_fine_grained_where_uncached_is_refused_and_that_is_said) {
  fake_runtime r;
  r.refuses[k_host_uncached] = 1;
  EXPECT_PAIRS((r.take(plan_memory("gfx1201", purpose::rings, true, k_70), true), 0),
               (r.asked, (std::vector<unsigned>{k_host_uncached, k_host_coherent})), (r.said, 1));
}

TEST(polled_buffer, has_no_second_kind_where_memory_is_short_or_both_are_refused) {
  fake_runtime r;
  r.refuses[0x3] = 2;
  EXPECT_EQ(r.take(plan_memory("gfx942", purpose::rings, false, k_70), false), 2);
  EXPECT_EQ(r.asked, std::vector<unsigned>{0x3});
  fake_runtime both;
  both.refuses = {{0x3, 1}, {0x1, 801}};
  EXPECT_PAIRS((both.take(plan_memory("gfx942", purpose::rings, false, k_70), false), 801), (both.said, 0));
  fake_runtime fine;
  fine.refuses[0x1] = 1;
  EXPECT_PAIRS((fine.take(plan_memory("gfx90a", purpose::rings, false, k_70), false), 1), (fine.asked.size(), 1u));
}

// --- The heap ----------------------------------------------------------------------------------------

struct fake_heaps {
  int shares = 0;
  std::map<caching, int> refuses;
  std::set<caching> no_ipc, no_dmabuf;
  std::map<void*, caching> live;
  std::vector<int> room = std::vector<int>(8);

  int allocate(void** out, std::size_t bytes, caching kind) {
    EXPECT_EQ(bytes, 4096u);
    if (refuses.count(kind) != 0) return refuses[kind];
    *out = &room[live.size()];
    live[*out] = kind;
    return 0;
  }
  bool out_of_memory(int e) { return e == 2; }
  std::string text(int e) { return "error " + std::to_string(e); }
  void release(void* p) { EXPECT_EQ(live.erase(p), 1u); }
  std::string share_ipc(void* p) {
    ++shares;
    return no_ipc.count(live.at(p)) != 0 ? "no handle" : "";
  }
  std::string share_dmabuf(void* p) { return no_dmabuf.count(live.at(p)) != 0 ? "no file" : ""; }
};

const heap_wish k_auto{4096, caching::uncached, false, true, "gfx942: because"};
const heap_wish k_forced{4096, caching::uncached, true, true, ""};

TEST(heap_attempt, takes_what_is_wanted_by_the_first_way_that_peers_can_map) {
  fake_heaps r;
  taken_heap t = take_heap(r, k_auto, "none");
  EXPECT_PAIRS((t.kind, caching::uncached), (t.sharing, heap_sharing::ipc), (t.lost, ""));
  fake_heaps file;
  file.no_ipc = {caching::uncached};
  t = take_heap(file, k_auto, "none");
  EXPECT_PAIRS((t.kind, caching::uncached), (t.sharing, heap_sharing::dmabuf), (t.lost, ""));
}

TEST(heap_attempt, falls_back_to_fine_grained_memory_and_says_why) {
  fake_heaps refused;
  refused.refuses[caching::uncached] = 1;
  taken_heap t = take_heap(refused, k_auto, "none");
  EXPECT_PAIRS((t.kind, caching::fine), (t.sharing, heap_sharing::ipc));
  test::expect_words(t.lost, {"fine-grained instead of uncached", "error 1"});
  EXPECT_TRUE(says(t.lost, k_auto.why)) << t.lost;

  fake_heaps unmapped;
  unmapped.no_ipc = unmapped.no_dmabuf = {caching::uncached};
  t = take_heap(unmapped, k_auto, "none");
  EXPECT_EQ(t.kind, caching::fine);
  EXPECT_TRUE(says(t.lost, "by IPC handle (no handle) or by dma-buf (no file)")) << t.lost;
  EXPECT_EQ(unmapped.live.size(), 1u) << "the first went back";
}

TEST(heap_attempt, that_is_forced_is_that_kind_or_an_error) {
  fake_heaps refused;
  refused.refuses[caching::uncached] = 1;
  const std::string no = refusal(XIO_ERR_UNSUPPORTED, [&] { take_heap(refused, k_forced, "none"); });
  test::expect_words(no, {"XIO_HEAP_KIND=uncached", "set XIO_HEAP_KIND=device"});
  EXPECT_TRUE(refused.live.empty());

  // Nobody can map it: still that kind, for RDMA.
  fake_heaps unmapped;
  unmapped.no_ipc = unmapped.no_dmabuf = {caching::uncached};
  const taken_heap t = take_heap(unmapped, k_forced, "none");
  EXPECT_PAIRS((t.kind, caching::uncached), (t.sharing, heap_sharing::none));
  EXPECT_TRUE(says(t.lost, "peers cannot map this heap")) << t.lost;
  EXPECT_EQ(t.why_not_shared, "IPC handle: no handle; dma-buf: no file");
}

TEST(heap_attempt, asks_for_no_handle_where_nobody_maps_the_heap) {
  fake_heaps r;
  r.no_ipc = r.no_dmabuf = {caching::uncached, caching::fine};
  heap_wish alone = k_auto;
  alone.shared = false;
  const taken_heap t = take_heap(r, alone, "none");
  EXPECT_PAIRS((t.kind, caching::uncached), (t.sharing, heap_sharing::none), (t.lost, ""));
  EXPECT_FALSE(t.why_not_shared.empty());
  EXPECT_EQ(r.shares, 0);
}

TEST(heap_attempt, ends_where_memory_is_short) {
  fake_heaps r;
  r.refuses[caching::uncached] = 2;
  EXPECT_TRUE(says(refusal(XIO_ERR_NO_MEMORY, [&] { take_heap(r, k_auto, "lower XIO_HEAP_SIZE"); }), "lower XIO_HEAP"));
  EXPECT_TRUE(r.live.empty());
  fake_heaps neither;
  neither.refuses = {{caching::uncached, 1}, {caching::fine, 801}};
  EXPECT_TRUE(says(refusal(XIO_ERR_IO, [&] { take_heap(neither, k_auto, "a heap"); }), "error 801"));
}

}  // namespace
}  // namespace xio::gpu
