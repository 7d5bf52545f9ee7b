// SPDX-License-Identifier: MIT
// The simulated driver by its calls, as libhsakmt makes them: without a runtime, and without a kernel to run.
#include <filesystem>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver_rig.hpp"

namespace amdgpu {
namespace {

TEST(amdgpu_settings, are_checked_against_their_table) {
  const auto read = [](std::map<std::string, std::string> given, settings& s) {
    return read_settings(s, [&](const char* name) {
      const auto found = given.find(name);
      return found == given.end() ? nullptr : found->second.c_str();
    });
  };
  settings s;
  EXPECT_FALSE(read({}, s));
  EXPECT_EQ(s.gpus, 1u);
  EXPECT_FALSE(read({{"XIO_AMDGPU_GPUS", "8"}, {"XIO_AMDGPU_LINKS", "pcie"}}, s));
  EXPECT_PAIRS((s.gpus, 8u), (s.links, "pcie"));
  for (const auto& [name, value] : std::map<std::string, std::string>{{"XIO_AMDGPU_GPUS", "9"},
                                                                      {"XIO_AMDGPU_THREADS", "0"},
                                                                      {"XIO_AMDGPU_CUS", "12"},
                                                                      {"XIO_AMDGPU_SLICE", "1x"},
                                                                      {"XIO_AMDGPU_LOG", "-1"},
                                                                      {"XIO_AMDGPU_COUNTS", "counts"},
                                                                      {"XIO_AMDGPU_TIMES", "times"},
                                                                      {"XIO_AMDGPU_TARGET", "gfx90"},
                                                                      {"XIO_AMDGPU_LINKS", "xgmi|"}}) {
    const auto wrong = read({{name, value}}, s);
    ASSERT_TRUE(wrong) << name;
    EXPECT_NE(wrong->find(name + "='" + value + "'"), std::string::npos) << *wrong;
  }
}

struct amdgpu_topology : testing::Test {
  amdgpu_topology() { EXPECT_NE(mkdtemp(folder.data()), nullptr); }
  ~amdgpu_topology() override { std::filesystem::remove_all(folder); }
  // A number in a file of a node, or -1.
  long long property(const std::string& file, const std::string& name) const {
    std::ifstream in(folder + "/kfd/kfd/topology/nodes/" + file);
    std::string word;
    for (long long value = 0; in >> word >> value;)
      if (word == name) return value;
    return -1;
  }

  std::string folder = "/tmp/amdgpu-topology.XXXXXX";
  settings s;
};

TEST_F(amdgpu_topology, names_gpus_and_their_links) {
  s.gpus = 2;
  write_topology(s, folder);
  EXPECT_PAIRS((property("0/properties", "io_links_count"), 2), (property("2/properties", "gfx_target_version"), 90010),
               (family_of(s), 141u), (property("2/properties", "simd_count"), 64),
               (property("2/properties", "location_id"), 4 << 8), (property("1/io_links/1/properties", "type"), 11),
               (property("1/io_links/1/properties", "node_to"), 2),
               (property("1/mem_banks/0/properties", "size_in_bytes"), 4ll << 30));
  const std::string moved = redirected(folder.c_str(), "/sys/class/kfd/kfd/topology/nodes/1/gpu_id");
  EXPECT_EQ(moved, folder + "/kfd/kfd/topology/nodes/1/gpu_id");
  EXPECT_EQ(redirected(folder.c_str(), "/sys/bus/pci/devices/0000:04:00.0/vendor"),
            folder + "/pci/0000:04:00.0/vendor");
  for (const char* path : {"/sys/class/kfdx", "/sys/class/net", "/sys/bus/pci/devices/0000:05:00.0/vendor", "sys", ""})
    EXPECT_EQ(redirected(folder.c_str(), path), "") << path;
  EXPECT_EQ(redirected(nullptr, "/sys/class/kfd"), "");
  // Programs that list all PCI functions find the GPUs beside the machine's own, whose files are where they were.
  const std::filesystem::path all = redirected(folder.c_str(), "/sys/bus/pci/devices");
  EXPECT_PAIRS((all, folder + "/pci"), (redirected(folder.c_str(), "/sys/bus/pci/devices/"), all),
               (redirected(folder.c_str(), "/sys/bus/pci/devices_of"), ""));
  std::set<std::string> wanted{"0000:03:00.0", "0000:04:00.0"}, listed;
  std::error_code none;
  for (const auto& own : std::filesystem::directory_iterator("/sys/bus/pci/devices", none))
    wanted.insert(own.path().filename());
  for (const auto& one : std::filesystem::directory_iterator(all)) listed.insert(one.path().filename());
  EXPECT_EQ(listed, wanted);
}

TEST_F(amdgpu_topology, the_host_is_the_same_on_every_machine) {
  write_topology(s, folder);
  const std::filesystem::path node = folder + "/kfd/kfd/topology/nodes/0";
  const auto text = [&](const char* file) {
    std::ifstream in(node / file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_NE(text("mem_banks/0/properties").find("\nsize_in_bytes 68719476736\n"), std::string::npos);
  const std::string is = text("properties");
  EXPECT_EQ(is.rfind("cpu_cores_count 4\n", 0), 0u) << is;
  // Where this is 0 libhsakmt reads the machine's caches, and finds no GPU where there are none.
  EXPECT_NE(is.find("\ncaches_count 13\n"), std::string::npos) << is;
  const std::filesystem::directory_iterator caches(node / "caches");
  EXPECT_EQ(std::distance(begin(caches), end(caches)), 13);
  EXPECT_NE(text("caches/0/properties").find("\nlevel 3\nsize 16384\n"), std::string::npos);
  // An IOMMU's counters would be the machine's.
  EXPECT_FALSE(std::filesystem::exists(redirected(folder.c_str(), "/sys/bus/event_source/devices/amd_iommu_0/events")));
  EXPECT_NE(redirected(folder.c_str(), "/sys/bus/event_source/devices/amd_iommu_0/events"), "");
}

TEST_F(amdgpu_topology, a_navi_31_has_waves_of_32_lanes_and_no_xgmi) {
  s.gpus = 2;
  s.target = "gfx1100";
  write_topology(s, folder);
  EXPECT_PAIRS((property("1/properties", "gfx_target_version"), 110000), (family_of(s), 145u),
               (property("1/properties", "wave_front_size"), 32),
               (property("1/properties", "simd_count"), 2 * static_cast<long long>(s.compute_units)),
               (property("1/properties", "simd_per_cu"), 2), (property("1/properties", "hive_id"), 0),
               (property("1/properties", "num_sdma_xgmi_engines"), 0),
               (property("1/io_links/1/properties", "type"), 2));
}

TEST_F(amdgpu_topology, partitions_are_nodes_behind_one_pci_function) {
  s.gpus = s.partitions = 8;
  write_topology(s, folder);
  const auto location = [&](int node) { return property(std::to_string(node) + "/properties", "location_id"); };
  EXPECT_PAIRS((location(1), 0x300), (location(8), 0x307), (location(64), 0xa07), (gpu_of_id(s, gpu_id_of(63)), 63),
               (gpu_of_id(s, gpu_id_of(64)), -1));
  int functions = 0;
  for (const auto& at : std::filesystem::directory_iterator(folder + "/pci")) {
    if (at.is_symlink()) continue;  // the machine's own
    EXPECT_EQ(at.path().extension(), ".0");
    ++functions;
  }
  EXPECT_EQ(functions, 8);
  s.partition_names = "alike";
  s.gpus = 1;  // one shows it, and eight are thousands of files
  write_topology(s, folder);
  EXPECT_EQ(location(8), 0x70000300);
}

TEST_F(amdgpu_driver, refuses_what_the_kernel_refuses) {
  version_args version{};
  EXPECT_EQ(ask(p, get_version, version), 0);
  EXPECT_EQ(version.major, 1u);
  // No such number, and one of another type.
  EXPECT_PAIRS((ask(p, 0x7f, version), ENOTTY), (kfd_ioctl(p, 0xc008'6401u, &version), ENOTTY),
               (kfd_ioctl(p, 0x8008'4b01u, nullptr), EFAULT));

  EXPECT_EQ(allocate(at(0), 4096, in_vram | writable, 7, EINVAL).handle, 0u);
  allocate(at(0), 4096, writable, 0, EINVAL);
  allocate(at(0), 4096, in_vram | in_gtt, 0, EINVAL);
  allocate(at(1), 4096, in_vram, 0, EINVAL);
  allocate(at(0), 0, in_vram, 0, EINVAL);
  allocate(at(0), 1ull << 46, in_vram, 0, ENOMEM);
  allocate(u64{1} << 47, 4096, in_vram, 0, EINVAL);
  allocate(at(0), 4096, userptr, 0, EINVAL);

  free_memory_args gone{99};
  EXPECT_EQ(ask(p, free_memory, gone), EINVAL);
  EXPECT_EQ(map(99, {gpu_id_of(0)}), EINVAL);

  create_queue_args queue{};
  queue.gpu_id = gpu_id_of(0);
  queue.type = compute_aql;
  EXPECT_EQ(ask(p, create_queue, queue), EFAULT);
  destroy_queue_args none{12, 0};
  EXPECT_EQ(ask(p, destroy_queue, none), EINVAL);
  xnack_args xnack{1};
  EXPECT_EQ(ask(p, set_xnack_mode, xnack), EPERM);
  event_args event{4095, 0};
  EXPECT_EQ(ask(p, set_event, event), EINVAL);
}

TEST_F(amdgpu_driver, reads_and_writes_no_more_than_a_caller_gives) {
  // A caller of an older kernel knows 4 bytes of these 8.
  u32 words[2] = {0xaaaaaaaau, 0xbbbbbbbbu};
  EXPECT_PAIRS((kfd_ioctl(p, 2u << 30 | 4u << 16 | 'K' << 8 | get_version, words), 0), (words[0], 1u),
               (words[1], 0xbbbbbbbbu));
}

TEST_F(amdgpu_driver, maps_memory_until_it_is_freed) {
  const auto a = allocate(at(0), 8192, in_vram | writable);
  EXPECT_EQ(p.tables[0].find(at(0)), nullptr);
  ASSERT_EQ(map(a.handle, {gpu_id_of(0), gpu_id_of(1)}), 0);
  const mapping* local = p.tables[0].find(at(8191));
  const mapping* peer = p.tables[1].find(at(0));
  ASSERT_TRUE(local != nullptr && peer != nullptr);
  EXPECT_PAIRS((local->where, mapping::place::local), (peer->where, mapping::place::peer),
               (local->how, mapping::caching::coarse), (p.tables[0].find(at(8192)), nullptr));
  std::memset(room, 0x3c, 8192);
  const u64 before = p.tables[0].generation();
  EXPECT_EQ(map(a.handle, {gpu_id_of(0)}, unmap_memory), 0);
  EXPECT_EQ(p.tables[0].find(at(0)), nullptr);
  EXPECT_NE(p.tables[0].generation(), before);
  EXPECT_NE(p.tables[1].find(at(0)), nullptr);
  free_memory_args gone{a.handle};
  EXPECT_EQ(ask(p, free_memory, gone), EBUSY) << "the other GPU has it";
  EXPECT_PAIRS((map(a.handle, {gpu_id_of(1)}, unmap_memory), 0), (ask(p, free_memory, gone), 0),
               (p.tables[1].find(at(0)), nullptr), (ask(p, free_memory, gone), EINVAL));
}

TEST_F(amdgpu_driver, counts_a_gpus_memory) {
  available_memory_args left{0, gpu_id_of(0), 0};
  EXPECT_EQ(ask(p, available_memory, left), 0);
  EXPECT_EQ(left.available, 64u << 20);
  const auto a = allocate(at(0), 48 << 20, in_vram);
  allocate(at(0), 17 << 20, in_vram, 0, ENOMEM);
  EXPECT_EQ(ask(p, available_memory, left), 0);
  EXPECT_EQ(left.available, 16u << 20);
  allocate(0, 17 << 20, in_vram, 1);
  free_memory_args gone{a.handle};
  EXPECT_EQ(ask(p, free_memory, gone), 0);
  allocate(0, 64 << 20, in_vram);
}

TEST_F(amdgpu_driver, sees_registered_memory_where_the_process_has_it) {
  auto* mine = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::strcpy(mine, "mine");
  alloc_memory_args a{at(0), 4096, 0, reinterpret_cast<u64>(mine), gpu_id_of(0), userptr | writable};
  ASSERT_EQ(ask(p, alloc_memory, a), 0);
  ASSERT_EQ(map(a.handle, {gpu_id_of(0)}), 0);
  EXPECT_PAIRS((p.tables[0].host(at(2), 2), mine + 2), (p.tables[0].host(at(4095), 2), nullptr));
  munmap(mine, 4096);
}

TEST_F(amdgpu_driver, takes_registered_memory_from_the_gpus_when_the_process_unmaps_it) {
  const u64 user = 0x7000'0000;  // nothing of it is accessed
  alloc_memory_args a{at(0), 8192, 0, user, gpu_id_of(0), userptr | writable};
  ASSERT_EQ(ask(p, alloc_memory, a), 0);
  ASSERT_EQ(map(a.handle, {gpu_id_of(0), gpu_id_of(1)}), 0);
  const auto vram = allocate(at(8192), 4096, in_vram | writable);
  ASSERT_EQ(map(vram.handle, {gpu_id_of(0)}), 0);
  // Beside it, and what is no registered memory.
  p.memory.lose(user - 4096, 4096);
  p.memory.lose(user + 8192, 4096);
  p.memory.lose(at(8192), 4096);
  EXPECT_NE(p.tables[0].find(at(0)), nullptr);
  EXPECT_NE(p.tables[0].find(at(8192)), nullptr);
  // A part is enough.
  p.memory.lose(user + 4096, 4096);
  EXPECT_PAIRS((p.tables[0].find(at(0)), nullptr), (p.tables[1].find(at(4096)), nullptr));
  EXPECT_NE(p.tables[0].find(at(8192)), nullptr);
  // The runtime frees it later.
  EXPECT_EQ(map(a.handle, {gpu_id_of(0)}, unmap_memory), 0);
  free_memory_args gone{a.handle};
  EXPECT_EQ(ask(p, free_memory, gone), 0);
}

// A mapping that a library with a hook of mmap lets through to the kernel is found again.
TEST_F(amdgpu_driver, takes_over_what_was_written_past_it) {
  const int fd = open_device_file(device_file::render);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(device_file_of(fd), device_file::render);
  keep_device_file(fd);  // as ACQUIRE_VM does
  const auto a = allocate(at(0), 8192, in_gtt | writable);
  ASSERT_NE(mmap(room, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(a.mmap_offset)),
            MAP_FAILED);
  std::strcpy(room + 5000, "written before the mapping");
  ASSERT_EQ(map(a.handle, {gpu_id_of(0)}), 0);
  EXPECT_STREQ(room + 5000, "written before the mapping");
  // It is the object's own file now, as another mapping of it shows.
  void* again = p.memory.mmap(nullptr, 8192, PROT_READ, MAP_SHARED, a.mmap_offset);
  ASSERT_NE(again, nullptr);
  std::strcpy(room, "after it");
  EXPECT_STREQ(static_cast<char*>(again), "after it");
  munmap(again, 8192);
  ::close(fd);
}

TEST_F(amdgpu_driver, shares_memory_with_another_process) {
  const auto a = allocate(at(0), 8192, in_vram | writable | coherent);
  ASSERT_EQ(map(a.handle, {gpu_id_of(0)}), 0);
  std::strcpy(room, "from one");
  ipc_export_args e{};
  e.handle = a.handle;
  e.gpu_id = gpu_id_of(0);
  ASSERT_EQ(ask(p, ipc_export, e), 0);
  export_dmabuf_args d{a.handle, O_CLOEXEC, 0};
  ASSERT_EQ(ask(p, export_dmabuf, d), 0);
  dmabuf_info_args info{};
  info.fd = d.fd;
  ASSERT_EQ(ask(p, get_dmabuf_info, info), 0);
  EXPECT_PAIRS((info.bytes, 8192u), (info.gpu_id, gpu_id_of(0)));
  const pid_t child = fork();
  if (child == 0) {
    process other{two_gpus()};
    auto* there = static_cast<char*>(mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ipc_import_args i{};
    i.va = reinterpret_cast<u64>(there);
    std::memcpy(i.share, e.share, sizeof i.share);
    i.gpu_id = gpu_id_of(0);
    if (ask(other, ipc_import, i) != 0) _exit(1);
    const u32 ids[] = {gpu_id_of(1)};
    map_memory_args m{i.handle, reinterpret_cast<u64>(ids), 1, 0};
    if (ask(other, map_memory, m) != 0) _exit(2);
    if (std::strcmp(there, "from one") != 0) _exit(3);
    if (other.tables[1].find(i.va)->where != mapping::place::peer) _exit(4);
    std::strcpy(there, "from the other");
    i.share[2] ^= 1;  // a descriptor that is something else now
    if (ask(other, ipc_import, i) != EINVAL) _exit(5);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_STREQ(room, "from the other");
  ::close(static_cast<int>(d.fd));
}

TEST_F(amdgpu_driver, refuses_descriptors_that_are_no_gpu_memory) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  dmabuf_info_args info{};
  info.fd = static_cast<u32>(ends[0]);
  EXPECT_EQ(ask(p, get_dmabuf_info, info), EINVAL);
  import_dmabuf_args i{at(0), 0, gpu_id_of(0), static_cast<u32>(ends[0])};
  EXPECT_EQ(ask(p, import_dmabuf, i), EINVAL);
  i.fd = 100000;
  EXPECT_EQ(ask(p, import_dmabuf, i), EBADF);
  EXPECT_EQ(device_file_of(ends[0]), device_file::none);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(amdgpu_driver, wakes_who_waits_for_an_event) {
  create_event_args first{}, second{};
  first.auto_reset = 1;
  ASSERT_EQ(ask(p, create_event, first), 0);
  ASSERT_EQ(ask(p, create_event, second), 0);
  EXPECT_NE(first.page_offset, 0u);
  event_data d[2] = {};
  d[0].event_id = first.event_id;
  d[1].event_id = second.event_id;
  wait_events_args w{reinterpret_cast<u64>(d), 2, 0, 0, 9};
  EXPECT_PAIRS((ask(p, wait_events, w), 0), (w.result, wait_timeout));
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    p.happenings.interrupt(first.event_id);
  });
  w.timeout_ms = 0xffffffffu;
  EXPECT_PAIRS((ask(p, wait_events, w), 0), (w.result, wait_complete));
  setter.join();
  // It has reset itself.
  w.timeout_ms = 0;
  EXPECT_PAIRS((ask(p, wait_events, w), 0), (w.result, wait_timeout));
  event_args e{first.event_id, 0};
  EXPECT_EQ(ask(p, set_event, e), 0);
  w.all = 1;
  EXPECT_PAIRS((ask(p, wait_events, w), 0), (w.result, wait_timeout));
  e.event_id = second.event_id;
  EXPECT_PAIRS((ask(p, set_event, e), 0), (ask(p, wait_events, w), 0), (w.result, wait_complete),
               (ask(p, destroy_event, e), 0), (ask(p, wait_events, w), EINVAL));
}

TEST_F(amdgpu_driver, tells_of_a_memory_fault) {
  create_event_args a{};
  a.type = event_memory;
  ASSERT_EQ(ask(p, create_event, a), 0);
  p.happenings.memory_fault({1, 0, 0, 0, 0x123000, gpu_id_of(1), 0});
  event_data d{};
  d.event_id = a.event_id;
  wait_events_args w{reinterpret_cast<u64>(&d), 1, 1, 1000, 0};
  ASSERT_EQ(ask(p, wait_events, w), 0);
  EXPECT_PAIRS((w.result, wait_complete), (d.memory.not_present, 1u), (d.memory.va, 0x123000u),
               (d.memory.gpu_id, gpu_id_of(1)));
}

TEST(amdgpu_gate, lets_changes_pass_before_new_turns) {
  gate g;
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0}, wrong{0};
  std::thread runners[2];
  for (std::thread& r : runners)
    r = std::thread([&] {
      while (!stop) {
        const turn t(g);
        ++inside;
        --inside;
      }
    });
  for (int i = 0; i < 200; ++i) {
    const change c(g);
    if (inside != 0) ++wrong;
    std::this_thread::yield();
    if (inside != 0) ++wrong;
  }
  stop = true;
  for (std::thread& r : runners) r.join();
  EXPECT_EQ(wrong, 0);
}

TEST(amdgpu_page_table, holds_no_two_mappings_in_one_place) {
  page_table t;
  EXPECT_TRUE(t.add({.base = 0x2000, .bytes = 0x2000}));
  for (const mapping& m : {mapping{.base = 0x1000, .bytes = 0x1001},
                           {.base = 0x3fff, .bytes = 1},
                           {.base = 0x2000, .bytes = 0x1000},
                           {.base = 0x1000, .bytes = 0x9000},
                           {.base = 0x8000, .bytes = 0},
                           {.base = ~std::uint64_t{0}, .bytes = 2}})
    EXPECT_FALSE(t.add(m)) << m.base;
  EXPECT_TRUE(t.add({.base = 0x1000, .bytes = 0x1000}));
  EXPECT_TRUE(t.add({.base = 0x4000, .bytes = 1}));
  EXPECT_PAIRS((t.find(0x4001), nullptr), (t.find(0xfff), nullptr));
  EXPECT_FALSE(t.remove(0x3000));
  EXPECT_TRUE(t.remove(0x2000));
  EXPECT_EQ(t.find(0x3000), nullptr);
}

}  // namespace
}  // namespace amdgpu
