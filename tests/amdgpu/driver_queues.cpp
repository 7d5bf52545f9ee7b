// SPDX-License-Identifier: MIT
// Queues of copy engines by the simulated driver's calls: what linux refuses, in its order and with its errno (amdkfd
// kfd_chardev.c, kfd_queue.c, kfd_process_queue_manager.c, kfd_device_queue_manager.c of 7.3.4), and doorbells.
#include "amdgpu/driver_rig.hpp"

namespace amdgpu {
namespace {

settings machine(std::uint64_t minor, const char* target = "gfx90a", const char* doorbells = "aligned") {
  settings s = two_gpus();
  s.kfd_minor = minor;
  s.target = target;
  s.doorbells = doorbells;
  return s;
}

// A ring of a page at 0, pointers in the page behind it, mapped as the kernel wants them.
struct with_buffers : amdgpu_driver {
  explicit with_buffers(const settings& s = machine(23)) : amdgpu_driver(s) {
    ring = allocate(at(0), 4096, in_gtt | writable | executable | uncached).handle;
    pointers = allocate(at(4096), 4096, in_gtt | writable | executable | uncached).handle;
    for (const u64 handle : {ring, pointers}) EXPECT_EQ(map(handle, {gpu_id_of(0)}), 0);
  }
  void TestBody() override {}
  create_queue_args good(u32 type = sdma, u32 engine = 0) const {
    create_queue_args a{};
    a.ring_base = at(0);
    a.ring_bytes = 4096;
    a.write_pointer = at(4096);
    a.read_pointer = at(4096 + 128);
    a.gpu_id = gpu_id_of(0);
    a.type = type;
    a.engine = engine;
    a.percentage = 100;
    return a;
  }
  u64 ring = 0, pointers = 0;
};

TEST(amdgpu_queues, are_refused_as_linux_refuses_them) {
  const struct {
    const char* what;
    std::uint64_t minor;
    std::function<void(create_queue_args&, with_buffers&)> change;
    int wanted;
  } rows[] = {
      {"as it should be", 23, [](auto&, auto&) {}, 0},
      {"more than all of the time", 23, [](auto& a, auto&) { a.percentage = 101; }, EINVAL},
      {"a priority that is none", 23, [](auto& a, auto&) { a.priority = 16; }, EINVAL},
      {"no power of two", 23, [](auto& a, auto&) { a.ring_bytes = 4096 + 1024; }, EINVAL},
      {"no pointers", 23, [](auto& a, auto&) { a.write_pointer = 0; }, EFAULT},
      {"no such type", 23, [](auto& a, auto&) { a.type = 5; }, k_not_supported},
      {"by engine", 23, [](auto& a, auto&) { a.type = sdma_by_engine; }, 0},
      {"by engine, an older kernel", 16, [](auto& a, auto&) { a.type = sdma_by_engine; }, k_not_supported},
      {"no such engine", 23, [](auto& a, auto&) { a.type = sdma_by_engine, a.engine = 5; }, EINVAL},
      {"no such GPU", 23, [](auto& a, auto&) { a.gpu_id = 1; }, EINVAL},
      {"a ring that is less than its mapping", 23, [](auto& a, auto&) { a.ring_bytes = 2048, a.ring_base += 2048; },
       EINVAL},
      {"the same on an older kernel", 16, [](auto& a, auto&) { a.ring_bytes = 2048, a.ring_base += 2048; }, 0},
      {"a ring of no bytes is one of 1,024, and a page of it is mapped", 23, [](auto& a, auto&) { a.ring_bytes = 0; },
       0},
      {"pointers that are not mapped", 23, [](auto& a, auto& t) { a.read_pointer = t.at(8192); }, EINVAL},
      {"a ring that the other GPU has", 23, [](auto& a, auto&) { a.gpu_id = gpu_id_of(1); }, EINVAL},
  };
  for (const auto& row : rows) {
    with_buffers t(machine(row.minor));
    create_queue_args a = t.good();
    row.change(a, t);
    EXPECT_EQ(ask(t.p, create_queue, a), row.wanted) << row.what;
  }
  process fresh(machine(23));
  create_queue_args a = with_buffers().good();
  EXPECT_EQ(ask(fresh, create_queue, a), ESRCH) << "no address space";
  alloc_memory_args m{0, 4096, 0, 0, gpu_id_of(0), in_gtt | writable};
  EXPECT_EQ(ask(fresh, alloc_memory, m), ENODEV);
}

TEST(amdgpu_queues, keep_their_memory_and_give_it_back) {
  with_buffers t;
  create_queue_args a = t.good();
  ASSERT_EQ(ask(t.p, create_queue, a), 0);
  for (const u64 handle : {t.ring, t.pointers}) EXPECT_EQ(t.map(handle, {gpu_id_of(0)}, unmap_memory), EBUSY);
  destroy_queue_args d{a.queue_id, 0};
  EXPECT_EQ(ask(t.p, destroy_queue, d), 0);
  for (const u64 handle : {t.ring, t.pointers}) EXPECT_EQ(t.map(handle, {gpu_id_of(0)}, unmap_memory), 0);
}

// Two engines for PCIe and three for xGMI, eight queues each.
TEST(amdgpu_queues, are_as_many_as_engines_have_and_ring_where_linux_says) {
  for (const char* doorbells : {"aligned", "lost"}) {
    with_buffers t(machine(23, "gfx942", doorbells));
    const bool is_aligned = std::string(doorbells) == "aligned";
    for (u32 queue = 0; queue < 8; ++queue) {
      create_queue_args a = t.good(sdma_by_engine, 3);
      ASSERT_EQ(ask(t.p, create_queue, a), 0);
      EXPECT_EQ(a.doorbell_offset % k_doorbell_bytes / 8,
                0x100 + 30 + (is_aligned ? 2 : 0) + queue / 2 + queue % 2 * 512);
    }
    create_queue_args full = t.good(sdma_by_engine, 3);
    EXPECT_EQ(ask(t.p, create_queue, full), ENOMEM);
    std::vector<u64> pcie;
    for (create_queue_args a = t.good(sdma); ask(t.p, create_queue, a) == 0; a = t.good(sdma))
      pcie.push_back(a.doorbell_offset % k_doorbell_bytes / 8);
    EXPECT_PAIRS((pcie.size(), 16u), (pcie[0], 0x100u));
    EXPECT_EQ(pcie[1], is_aligned ? 0x10cu : 0x10au) << "the engines take turns";
    std::size_t xgmi = 0;
    for (create_queue_args a = t.good(sdma_xgmi); ask(t.p, create_queue, a) == 0; a = t.good(sdma_xgmi)) ++xgmi;
    EXPECT_EQ(xgmi, 16u) << "one of three engines is full";
  }
}

// Where they may be lost lanes store to words of their own, and those of the lost ones reach nobody.
TEST(amdgpu_queues, doorbells_of_lanes_are_lost_where_the_block_is_another_engines) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    with_buffers t(machine(16, target, "lost"));
    EXPECT_EQ(t.p.lane_doorbells_of(0), 0u);
    const auto bells = t.allocate(t.at(16384), k_doorbell_bytes, doorbell | writable | coherent);
    ASSERT_EQ(t.map(bells.handle, {gpu_id_of(0)}), 0);
    EXPECT_EQ(t.p.tables[0].find(t.at(16384))->host != t.at(16384), std::string(target) == "gfx942");
  }
  with_buffers t;
  t.allocate(t.at(16384), 4096, doorbell | writable, 0, EINVAL);
}

}  // namespace
}  // namespace amdgpu
