// SPDX-License-Identifier: MIT
// Before a drive is opened: the ways to it, the trial of its memory, and pages that are lost.
#include "played_vfio.hpp"
#include "refusal.hpp"
#include "says.hpp"
#include "sysfs_tree.hpp"
#include "transport/nvme/lost_pages.hpp"
#include "transport/nvme/memory_trial.hpp"
#include "transport/nvme/vfio_device.hpp"

namespace xio::nvme {
namespace {

using namespace played_vfio;
namespace w = wire::nvme;
using test::refusal;
using test::says;
using test::sysfs_tree;

// --- Ways -------------------------------------------------------------------------------------------
// The address space that the drives of a process share, and which of the two ways leads to it.

// --- One domain for a process ------------------------------------------------------------------------

std::unique_ptr<vfio_iommu> made(vfio_way way, played& k) { return make_iommu(way, k, k_name); }

struct space : testing::TestWithParam<vfio_way> {
  space() : s(made(GetParam(), k)), handles(s.admit(k_place)) {}
  unsigned long map_request() const { return GetParam() == vfio_way::type1 ? type1_map_dma : ioas_map; }
  unsigned long unmap_request() const { return GetParam() == vfio_way::type1 ? type1_unmap_dma : ioas_unmap; }
  long count(unsigned long request) const {
    const std::string end = " " + std::to_string(request);
    return std::count_if(k.asked.begin(), k.asked.end(), [&](const auto& line) { return line.ends_with(end); });
  }
  played k;
  vfio_space s;
  vfio_handles handles;
  alignas(4096) char memory[4 * 4096] = {};
};

TEST_P(space, maps_what_is_the_same_once) {
  const std::uint64_t first = s.map(memory + 100, 5000);
  EXPECT_PAIRS((first % 4096, 100u), (s.map(memory + 100, 5000), first), (count(map_request()), 1));
  EXPECT_NE(s.map(memory + 100, 200), first);
  // The longer one, by one of its two users and then by the other: the shorter one stays.
  s.unmap(memory + 100, 5000);
  EXPECT_EQ(count(unmap_request()), 0);
  s.unmap(memory + 100, 5000);
  EXPECT_EQ(count(unmap_request()), 1);
  s.unmap(memory + 100, 5000);  // once more than mapped
  EXPECT_EQ(count(unmap_request()), 1);
  EXPECT_EQ(s.map(memory + 100, 5000), first);
  EXPECT_EQ(count(map_request()), 3);
  s.unmap(memory + 100, 200);
  EXPECT_EQ(count(unmap_request()), 2);
}

TEST_P(space, gives_addresses_back_and_keeps_those_that_the_kernel_holds) {
  const std::uint64_t address = s.map(memory, 4096);
  s.unmap(memory, 4096);
  const auto map = k.replies[map_request()];
  k.refuse(map_request(), EFAULT);
  refusal(XIO_ERR_IO, [&] { s.map(memory, 4096); });
  k.replies[map_request()] = map;
  EXPECT_EQ(s.map(memory, 4096), address);
  k.refuse(unmap_request(), EIO);
  s.unmap(memory, 4096);
  EXPECT_NE(s.map(memory, 4096), address);
}

// Memory has one address for all drives of a process, so there is one way at a time.
TEST(one_space, is_shared_until_nobody_holds_it) {
  played k;
  auto first = vfio_space::get({vfio_way::type1, "", true}, k_name, k);
  EXPECT_EQ(vfio_space::get({vfio_way::iommufd, ""}, k_name, k), first);
  EXPECT_EQ(vfio_space::get({vfio_way::type1, "", true}, k_name, k), first);
  const std::string why = refusal(XIO_ERR_STATE, [&] { vfio_space::get({vfio_way::iommufd, "", true}, k_name, k); });
  EXPECT_TRUE(has(why, "other drives are open by type 1") && has(why, "asks for iommufd")) << why;
  EXPECT_EQ(k.still_open(), 1u);
  first.reset();
  EXPECT_EQ(k.still_open(), 0u);
  first = vfio_space::get({vfio_way::iommufd, "", true}, k_name, k);
  EXPECT_EQ(first->way(), vfio_way::iommufd);
}

INSTANTIATE_TEST_SUITE_P(both_ways, space, testing::Values(vfio_way::type1, vfio_way::iommufd),
                         [](const auto& p) { return p.param == vfio_way::type1 ? "type1" : "iommufd"; });

// --- Which way ---------------------------------------------------------------------------------------

struct way : testing::Test {
  way() {
    for (const char* file : {k_iommu, k_cdev, k_group}) t.file(file, "");
  }
  vfio_choice choose(const std::string& wanted, const std::string& cdev = k_cdev) {
    o.vfio_iommu = option::parse_word<option::vfio_iommu>(wanted, "a test");
    return choose_vfio_way(o, t.root, {k_name, "0000:3b:00.0", 17, cdev});
  }
  void remove(const char* path) const { std::filesystem::remove_all(t.root + path); }
  sysfs_tree t;
  options o = options::defaults();
};

TEST_F(way, auto_is_iommufd_where_it_is_whole) {
  EXPECT_PAIRS((options::defaults().vfio_iommu, option::vfio_iommu::automatic), (choose("auto").way, vfio_way::iommufd),
               (choose("auto").why, ""), (choose("auto", "").way, vfio_way::type1));
  EXPECT_TRUE(has(choose("auto", "").why, "no file in /dev/vfio/devices"));
  remove(k_iommu);
  EXPECT_PAIRS((choose("auto").way, vfio_way::type1), (choose("auto").why, "there is no /dev/iommu"));
  EXPECT_FALSE(choose("auto").forced);
}

// Memory of a PCI device is nothing that iommufd pins.
TEST_F(way, auto_is_type_1_for_queues_in_a_device) {
  o.nvme_queue_bar = "0000:0a:00.0/2";
  EXPECT_EQ(choose("auto").way, vfio_way::type1);
  EXPECT_TRUE(has(choose("auto").why, "XIO_NVME_QUEUE_BAR"));
}

TEST_F(way, auto_is_what_may_be_opened) {
  if (geteuid() == 0) GTEST_SKIP() << "root may open everything";
  std::filesystem::permissions(t.root + k_cdev, std::filesystem::perms::none);
  EXPECT_EQ(choose("auto").way, vfio_way::type1);
  EXPECT_TRUE(has(choose("auto").why, "may not open /dev/vfio/devices/vfio3"));
}

TEST_F(way, auto_is_iommufd_where_there_are_no_groups) {
  remove(k_iommu);
  remove(k_group);
  EXPECT_PAIRS((choose("auto").way, vfio_way::iommufd), (choose("auto", "").way, vfio_way::type1));
}

TEST_F(way, is_forced) {
  EXPECT_EQ(choose("type1").way, vfio_way::type1);
  remove(k_iommu);
  EXPECT_EQ(choose("iommufd").way, vfio_way::iommufd);
  EXPECT_TRUE(choose("iommufd").forced && choose("type1").forced);
}

// Layout: Linux 7.3.4, include/uapi/linux/vfio.h.
TEST(vfio_export, asks_for_whole_pages_of_bar_0) {
  const std::uint64_t page = gpu::page_size();
  played k;
  k.replies[0x3b75] = [&](int, unsigned long a) {
    const std::uint64_t asked[] = {std::uint64_t{1u << 16 | 11} << 32 | 40, std::uint64_t{O_RDWR | O_CLOEXEC} << 32,
                                   std::uint64_t{1} << 32, page, page};
    return std::memcmp(reinterpret_cast<void*>(a), asked, sizeof asked) == 0 ? 44 : -EINVAL;
  };
  EXPECT_EQ(export_registers(k, 3, page, page).fd, 44);
  EXPECT_TRUE(has(export_registers(k, 3, page, 2 * page).why_not, "(Invalid argument); Linux 7.2"));
  EXPECT_TRUE(has(export_registers(k, 3, 0x200, page).why_not, "share a page"));
}

TEST_F(way, finds_the_file_of_a_device) {
  const std::string folder = "/sys/bus/pci/devices/0000:3b:00.0/vfio-dev/";
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), "");
  t.folder(folder + "vfio3");
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), "");  // a kernel with groups only
  t.file(folder + "vfio3/dev", "244:3\n");
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), k_cdev);
  remove((folder + "vfio3").c_str());
  for (const char* odd : {"vfio", "vfio-1", "vfio3x", "other3", "vfio99999999999"})
    t.file(folder + odd + "/dev", "1:1\n");
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), "");
}

// --- The trial of memory ----------------------------------------------------------------------------
// A drive that was given memory and reaches another one is found before any op goes there, and what is on it stays.

constexpr std::uint64_t k_known = 0x10000, k_tried = 0x20000;
constexpr std::uint32_t k_block = 512;

alignas(4096) unsigned char g_known[k_trial_bytes], g_tried[k_trial_bytes], g_elsewhere[k_trial_bytes];

// A drive of which each direction is set.
struct drive_plan {
  unsigned char* reads_from = g_tried;  // where it finds the memory that is tried, when it reads it and when it writes
  unsigned char* writes_to = g_tried;
  bool compares = true, ends = true;
  std::uint32_t status = w::k_ok;
  int writers = 0;  // commands between which somebody else writes the block
  unsigned char block[k_block] = {7, 7, 7};
  std::vector<w::opcode> seen;

  std::uint32_t run(const w::sqe& command) {
    if (!ends) fail(XIO_ERR_TIMEOUT, "has not completed a command within 10 ms");
    const auto what = static_cast<w::opcode>(w::opcode_of(command));
    seen.push_back(what);
    EXPECT_PAIRS((w::nsid_of(command), 3u), (w::slba_of(command), 0u), (w::blocks_of(command), 1u));
    if (status != w::k_ok) return status;
    if (writers > 0 && --writers >= 0) ++block[0];
    const bool known = w::prp1_of(command) == k_known;
    EXPECT_TRUE(known || w::prp1_of(command) == k_tried);
    if (what == w::opcode::compare)
      return std::memcmp(known ? g_known : reads_from, block, k_block) == 0 ? w::k_ok : w::k_compare_failure;
    EXPECT_EQ(what, w::opcode::read) << "nothing is written to the drive";
    std::memcpy(known ? g_known : writes_to, block, k_block);
    return w::k_ok;
  }
};

trial_result tried(drive_plan& plan, std::uint32_t block_bytes = k_block) {
  std::memset(g_elsewhere, 0, sizeof g_elsewhere);
  drive_facts facts;
  facts.nsid = 3;
  facts.block_bytes = block_bytes;
  facts.compares = plan.compares;
  return try_memory(
      facts, [&](const w::sqe& command) { return plan.run(command); }, {g_known, k_known}, {g_tried, k_tried},
      gpu::payload());
}

// Memory elsewhere may hold the very block, of zeroes for one: a changed word is seen all the same.
TEST(nvme_memory_trial, sees_each_direction_by_itself) {
  constexpr auto same = trial_verdict::same, different = trial_verdict::different;
  const auto empty = [](drive_plan& p) { std::memset(p.block, 0, sizeof p.block); };
  const struct {
    const char* what;
    std::function<void(drive_plan&)> change;
    trial_verdict verdict;
  } rows[] = {{"the memory", [](auto&) {}, same},
              {"the memory, and the block is empty", empty, same},
              {"the memory, without Compare", [](auto& p) { p.compares = false; }, same},
              {"others write the block", [](auto& p) { p.writers = 3; }, same},
              {"what kernels store is not read", [](auto& p) { p.reads_from = g_elsewhere; }, different},
              {"nor if it is empty", [&](auto& p) { empty(p), p.reads_from = g_elsewhere; }, different},
              {"what the drive writes is not seen", [](auto& p) { p.writes_to = g_elsewhere; }, different},
              {"both", [](auto& p) { p.reads_from = p.writes_to = g_elsewhere; }, different},
              {"nor without Compare", [](auto& p) { p.writes_to = g_elsewhere, p.compares = false; }, different}};
  for (const auto& row : rows) {
    drive_plan plan;
    row.change(plan);
    EXPECT_EQ(tried(plan).verdict, row.verdict) << row.what;
  }
}

TEST(nvme_memory_trial, writes_nowhere_once_the_drive_has_read_other_memory) {
  drive_plan plan;
  plan.reads_from = plan.writes_to = g_elsewhere;
  EXPECT_EQ(tried(plan).verdict, trial_verdict::different);
  EXPECT_EQ(std::count(plan.seen.begin(), plan.seen.end(), w::opcode::read), 3) << "each into known memory";
}

// Its queue takes no more commands.
TEST(nvme_memory_trial, leaves_a_command_that_does_not_end_to_the_caller) {
  drive_plan late;
  late.ends = false;
  EXPECT_THROW(tried(late), error);
}

// Nothing is known of the memory then.
TEST(nvme_memory_trial, blames_no_memory_where_a_command_does_not_end_well) {
  drive_plan failed;
  failed.status = w::k_unrecovered_read;
  const auto bad = tried(failed);
  EXPECT_EQ(bad.verdict, trial_verdict::unknown);
  EXPECT_PRED2(says, bad.why, "block 0 cannot be read");
  drive_plan large;
  EXPECT_EQ(tried(large, 8192).verdict, trial_verdict::unknown);
  EXPECT_TRUE(large.seen.empty());
}

// --- Lost pages -------------------------------------------------------------------------------------
// Pages that a drive took away with it: a file that becomes shorter has the same fault.

struct nvme_lost_pages : testing::Test {
  static constexpr std::size_t k_pages = 4;
  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

  void SetUp() override {
    file_ = unique_fd(memfd_create("drive", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(file_.get(), static_cast<off_t>(k_pages * page_)), 0);
    base_ = static_cast<volatile unsigned char*>(
        mmap(nullptr, k_pages * page_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
    ASSERT_NE(const_cast<unsigned char*>(base_), MAP_FAILED);
  }
  void TearDown() override { munmap(at(0), k_pages * page_); }
  void* at(std::size_t page) const { return const_cast<unsigned char*>(base_) + page * page_; }
  [[noreturn]] void store_and_end(std::size_t pages) {
    if (ftruncate(file_.get(), 0) != 0) _exit(1);
    for (std::size_t i = 0; i < pages; ++i) base_[i * page_] = 1;
    _exit(0);
  }
  void take_away() { ASSERT_EQ(ftruncate(file_.get(), 0), 0); }

  unique_fd file_;
  volatile unsigned char* base_ = nullptr;
};

TEST_F(nvme_lost_pages, reads_find_ones_and_stores_are_kept_from_the_bus) {
  const lost_pages watch(at(0), k_pages * page_);
  base_[0] = 7;
  take_away();
  EXPECT_EQ(base_[0], 0xff) << "and not what was there before";
  base_[page_ + 5] = 9;
  EXPECT_PAIRS((base_[page_ + 5], 9), (base_[page_ + 4], 0xff));
  EXPECT_EQ(base_[2 * page_], 0xff) << "each page is one of its own";
  EXPECT_EQ(base_[2 * page_ + 5], 0xff);
}

// A thread that touches the page meanwhile sees ones as well, and never a page that is not filled yet.
TEST_F(nvme_lost_pages, many_threads_see_ones) {
  const lost_pages watch(at(0), k_pages * page_);
  take_away();
  std::atomic<int> others{0};
  xio::test::at_once(4, [&](int) {
    for (std::size_t i = 0; i < k_pages * page_; i += 64)
      if (base_[i] != 0xff) ++others;
  });
  EXPECT_EQ(others, 0);
}

TEST_F(nvme_lost_pages, pages_that_nobody_watches_end_the_process) {
  EXPECT_EXIT(
      {
        const lost_pages watch(at(0), page_);
        store_and_end(2);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        std::optional<lost_pages> watch(std::in_place, at(0), page_);
        watch.reset();
        store_and_end(1);
      },
      testing::KilledBySignal(SIGBUS), "")
      << "and those that are watched no more";
}

// The program's own handler goes on having all that is not ours.
TEST_F(nvme_lost_pages, another_fault_is_left_to_the_handler_before) {
  EXPECT_EXIT(
      {
        struct sigaction mine {};
        mine.sa_handler = [](int) { _exit(42); };
        sigaction(SIGBUS, &mine, nullptr);
        const lost_pages watch(at(0), page_);
        store_and_end(2);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace xio::nvme
