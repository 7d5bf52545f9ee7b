// SPDX-License-Identifier: MIT
// The kernel module's ioctls, and the module as it is seen from here.
#include "config.h"

#include "gpu/memory_file.hpp"
#include "memory/dmabuf.hpp"
#include "refusal.hpp"
#include "sysfs_tree.hpp"
#include "transport/nvme/kmod_drive.hpp"
#include "transport/nvme/kmod_memory.hpp"
#include "transport/nvme/kmod_module.hpp"
#include "transport/nvme/vfio_function.hpp"
#include "xio/device/impl/bus_rows.hpp"

namespace {

using namespace xio;
using namespace xio::test;
using nvme::kmod_module;

// --- Layouts ----------------------------------------------------------------------------------------
// What programs and the kernel module agree on, and how a drive is found that the kernel has.

// Programs of 32 and of 64 bits, and of years to come, pass the same octets: no padding, no member whose place depends
// on the machine.
static_assert(sizeof(xio_kmod_pci) == 8);
static_assert(sizeof(xio_kmod_info) == 48 && offsetof(xio_kmod_info, max_memory) == 16);
static_assert(sizeof(xio_kmod_pin) == 56 && offsetof(xio_kmod_pin, handle) == 16 &&
              offsetof(xio_kmod_pin, bytes) == 32);
static_assert(sizeof(xio_kmod_segment) == 16);
static_assert(sizeof(xio_kmod_segments) == 32 && offsetof(xio_kmod_segments, array) == 16);
static_assert(sizeof(xio_kmod_memory) == 56 && offsetof(xio_kmod_memory, address) == 24);
static_assert(sizeof(xio_kmod_release) == 8);
static_assert(sizeof(xio_kmod_queue_pair) == 64 && offsetof(xio_kmod_queue_pair, offset) == 32);
static_assert(sizeof(xio_kmod_identify) == 40 && offsetof(xio_kmod_identify, data) == 16);
// Direction (read and write), size, type and number, as asm-generic/ioctl.h packs them.
static_assert(XIO_KMOD_INFO == 0xc030d800u && XIO_KMOD_PIN == 0xc038d801u && XIO_KMOD_SEGMENTS == 0xc020d802u);
static_assert(XIO_KMOD_MEMORY == 0xc038d803u && XIO_KMOD_RELEASE == 0xc008d804u);
static_assert(XIO_KMOD_QUEUE_PAIR == 0xc040d805u && XIO_KMOD_IDENTIFY == 0xc028d806u);

struct kmod : testing::Test {
  kmod() {
    where_.sysfs = tree_.root + "/sys";
    where_.module = tree_.root + "/xio";
  }
  void put(const std::string& file, const std::string& text) { tree_.file("/sys/" + file, text + "\n"); }
  void refused(const std::string& path, xio_status_t status, const std::string& words) {
    expect_words(refusal(status, [&] { nvme::find_kmod_drive("kmod:" + path, path, where_); }),
                 {words, "kmod:" + path});
  }
  const sysfs_tree tree_;
  nvme::kmod_places where_;
};

TEST_F(kmod, names_that_are_no_namespace) {
  for (const char* path : {"nvme0n1", "/dev/nvme0", "/dev/nvme0n1p1", "/dev/sda", "/dev/../dev/nvme0n1",
                           "/dev/nvme0n1/", "/dev/nvmen", "/dev/nvme0n1\n"})
    refused(path, XIO_ERR_ARG, "wants a whole namespace as /dev/nvme0n1");
}

TEST_F(kmod, drives_that_are_not_there) { refused("/dev/nvme7n1", XIO_ERR_IO, "Linux knows no drive /dev/nvme7n1"); }

TEST_F(kmod, a_drive_by_its_controller) {
  put("class/block/nvme0n3/nsid", "3");
  put("class/block/nvme0n3/device/address", "0000:3b:00.0");
  const auto d = nvme::find_kmod_drive("x", "/dev/nvme0n3", where_);
  EXPECT_PAIRS((d.bdf, "0000:3b:00.0"), (d.nsid, 3u));
}

TEST_F(kmod, a_drive_that_several_controllers_may_lead_to) {
  put("class/block/nvme1n1/nsid", "1");
  put("class/block/nvme1n1/device/subsysnqn", "nqn.x");
  put("class/block/nvme1n1/device/nvme4/address", "10000:01:00.0");
  const auto d = nvme::find_kmod_drive("x", "/dev/nvme1n1", where_);
  EXPECT_PAIRS((d.bdf, "10000:01:00.0"), (d.nsid, 1u));
}

TEST_F(kmod, drives_behind_a_network) {
  put("class/block/nvme2n1/nsid", "1");
  put("class/block/nvme2n1/device/address", "traddr=192.168.1.1,trsvcid=4420");
  refused("/dev/nvme2n1", XIO_ERR_UNSUPPORTED, "no drive on PCI Express");
  put("class/block/nvme3n1/device/address", "0000:3b:00.0");
  refused("/dev/nvme3n1", XIO_ERR_UNSUPPORTED, "no drive on PCI Express");
}

TEST_F(kmod, modules_that_are_not_there) {
  const nvme::kmod_drive drive{"0000:3b:00.0", 1};
  expect_words(nvme::why_no_queue(drive, where_),
               {"No such file or directory, and where the kernel module xio is loaded"});
  std::ofstream(where_.module) << "not a device";
  expect_words(nvme::why_no_queue(drive, where_), {"is not of the kernel module xio that this version knows"});
}

// DKMS and modinfo show the version that configure has.
TEST(kmod_version, is_that_of_the_release) {
  for (const auto& [file, line] :
       {std::pair<std::string, std::string>{"dkms.conf", "PACKAGE_VERSION=\"" PACKAGE_VERSION "\""},
        {"main.c", "MODULE_VERSION(\"" PACKAGE_VERSION "\");"}}) {
    std::ifstream in(std::filesystem::path(XIO_SOURCE) / "kernel/xio" / file);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_NE(text.find(line), std::string::npos) << file << " has no line " << line;
  }
}

// --- The module -------------------------------------------------------------------------------------
// The library's side of the kernel module, with a test in the module's place: what a refusal says, how segments become
// runs, and that memory stays pinned while a command may name it. tests/vm/kmod.sh has the module itself.

// A module that pins everything at the segments it was given.
class pretended : public nvme::kmod_calls {
 public:
  xio_kmod_info info{XIO_KMOD_VERSION, 7, 256, 1u << 18, 64u << 20, 4u << 20, {0, 0}};
  int opening = 0;  // errno
  unsigned long refused = 0;
  int why = 0, interruptions = 0;
  std::vector<xio_kmod_segment> segments;
  std::set<std::uint32_t> held;
  xio_kmod_pin last_pin{};
  std::uint32_t next = 1;

  int open(const std::string&) override {
    errno = opening;
    return opening != 0 ? -1 : ::open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  int control(int, unsigned long request, void* argument) override {
    if (interruptions > 0) return --interruptions, fail_with(EINTR);
    if (request == refused) return fail_with(why);
    switch (request) {
      case XIO_KMOD_INFO: *static_cast<xio_kmod_info*>(argument) = info; return 0;
      case XIO_KMOD_PIN: {
        auto& a = *static_cast<xio_kmod_pin*>(argument);
        last_pin = a;
        a.handle = next++;
        a.segments = static_cast<__u32>(segments.size());
        held.insert(a.handle);
        return 0;
      }
      case XIO_KMOD_SEGMENTS: {
        auto& a = *static_cast<xio_kmod_segments*>(argument);
        std::memcpy(reinterpret_cast<void*>(a.array), segments.data(), segments.size() * sizeof segments[0]);
        return 0;
      }
      case XIO_KMOD_RELEASE:
        return held.erase(static_cast<xio_kmod_release*>(argument)->handle) == 1 ? 0 : fail_with(ENOENT);
      default: return fail_with(ENOTTY);
    }
  }

 private:
  static int fail_with(int why) {
    errno = why;
    return -1;
  }
};

struct opened_module : testing::Test {
  pretended m;
  const kmod_module module{"kmod:x", "0000:01:00.0", m};
};

void expect_refusal(auto&& call, xio_status_t status, std::initializer_list<std::string_view> words) {
  expect_words(refusal(status, call), words);
}

TEST(kmod_module, a_module_that_is_not_there_or_another) {
  pretended m;
  const auto open = [&] { kmod_module("kmod:x", "0000:01:00.0", m); };
  m.opening = ENOENT;
  expect_refusal(open, XIO_ERR_UNSUPPORTED, {"kmod:x", "/dev/xio", "load"});
  m.opening = EACCES;
  expect_refusal(open, XIO_ERR_STATE, {"Permission denied", "right to open"});
  m.opening = 0;
  m.info.version = 2;
  expect_refusal(open, XIO_ERR_UNSUPPORTED, {"version 2", "version 1"});
  m.info.version = XIO_KMOD_VERSION;
  m.info.features = XIO_KMOD_HAS_PIN;
  expect_refusal(open, XIO_ERR_UNSUPPORTED, {"lacks calls"});
}

TEST_F(opened_module, what_has_happened_to_a_drive) {
  m.refused = XIO_KMOD_IDENTIFY;
  const struct {
    int why;
    const char* word;
  } cases[] = {{ENODEV, "unbound"}, {EBUSY, "vfio"}, {EOPNOTSUPP, "another driver"}, {EIO, "reset"}};
  for (const auto& c : cases) {
    m.why = c.why;
    EXPECT_NE(module.trouble().find(c.word), std::string::npos) << c.why << ": " << module.trouble();
    EXPECT_NE(module.trouble().find("bind it to xio"), std::string::npos);
  }
  // It may be well, for all that this process may ask.
  m.why = EPERM;
  EXPECT_EQ(module.trouble(), "");
}

// A controller that was reset is well, and its queues are gone.
TEST_F(opened_module, what_has_happened_to_pinned_memory) {
  m.segments = {{0x10000, 4096}};
  const std::uint32_t handle = module.pin_dmabuf(3, false).handle;
  EXPECT_EQ(module.trouble_of(handle), "");
  m.refused = XIO_KMOD_SEGMENTS;
  m.why = ENODEV;
  EXPECT_NE(module.trouble_of(handle).find("reset or bound again"), std::string::npos);
  m.why = ESTALE;
  EXPECT_NE(module.trouble_of(handle).find("has moved memory that was pinned"), std::string::npos);
  m.why = ENOMEM;
  EXPECT_EQ(module.trouble_of(handle), "") << "that says nothing of the pin";
}

TEST_F(opened_module, every_errno_has_a_cure) {
  const struct {
    int why;
    xio_status_t status;
    const char* word;
  } cases[] = {{ENODEV, XIO_ERR_IO, "bind it to xio"},
               {EBUSY, XIO_ERR_UNSUPPORTED, "belongs to vfio"},
               {EPERM, XIO_ERR_UNSUPPORTED, "CAP_SYS_RAWIO"},
               {EOPNOTSUPP, XIO_ERR_UNSUPPORTED, "swiotlb"},
               {ENOMEM, XIO_ERR_NO_MEMORY, "ulimit -l"},
               {ENOSPC, XIO_ERR_NO_MEMORY, "no queue left"},
               {EREMOTEIO, XIO_ERR_UNSUPPORTED, "peer-to-peer"},
               {E2BIG, XIO_ERR_UNSUPPORTED, "more pieces"},
               {ESTALE, XIO_ERR_UNSUPPORTED, "moved"}};
  m.refused = XIO_KMOD_PIN;
  for (const auto& c : cases) {
    m.why = c.why;
    expect_refusal([&] { (void)module.pin_dmabuf(3, false); }, c.status, {"0000:01:00.0", "pinned memory", c.word});
  }
}

TEST_F(opened_module, a_signal_does_not_end_a_call) {
  m.interruptions = 3;
  m.segments = {{0x1000, 4096}};
  EXPECT_EQ(module.pin_dmabuf(3, false).runs.size(), 1u);
  EXPECT_EQ(m.interruptions, 0);
}

TEST(kmod_module, the_device_and_the_flag_reach_the_module) {
  pretended m;
  const kmod_module module("kmod:x", "10ab:c1:1f.7", m);
  m.segments = {{0x1000, 4096}};
  (void)module.pin_dmabuf(42, true);
  EXPECT_PAIRS((m.last_pin.device.domain, 0x10abu), (m.last_pin.device.bus, 0xc1), (m.last_pin.device.slot, 0x1f),
               (m.last_pin.device.function, 7), (m.last_pin.dmabuf, 42), (m.last_pin.flags, XIO_KMOD_PIN_DEVICE));
  (void)module.pin_dmabuf(42, false);
  EXPECT_EQ(m.last_pin.flags, 0u);
}

TEST_F(opened_module, neighbours_on_the_bus_are_one_run) {
  m.segments = {{0x10000, 0x2000}, {0x12000, 0x1000}, {0x20000, 0x1000}, {0x1f000, 0x1000}, {0x20000, 0x3000}};
  const auto pin = module.pin_dmabuf(3, false);
  ASSERT_EQ(pin.runs.size(), 3u);
  EXPECT_PAIRS((pin.runs[0].offset, 0u), (pin.runs[0].address, 0x10000u), (pin.runs[0].bytes, 0x3000u),
               (pin.runs[1].offset, 0x3000u), (pin.runs[1].address, 0x20000u), (pin.runs[1].bytes, 0x1000u),
               (pin.runs[2].offset, 0x4000u), (pin.runs[2].address, 0x1f000u), (pin.runs[2].bytes, 0x4000u));
  module.release(pin.handle);
  EXPECT_TRUE(m.held.empty());
}

TEST_F(opened_module, a_list_that_cannot_be_had_leaves_nothing_pinned) {
  m.segments = {{0x10000, 0x2000}};
  m.refused = XIO_KMOD_SEGMENTS;
  m.why = ESTALE;
  expect_refusal([&] { (void)module.pin_dmabuf(3, false); }, XIO_ERR_UNSUPPORTED, {"moved the buffer"});
  EXPECT_TRUE(m.held.empty());
}

// ---- memory -----------------------------------------------------------------------------------------------------

// Pages of a sealed memory file, as the symmetric heap of the host platform is.
class file_pages {
 public:
  explicit file_pages(std::size_t bytes)
      : bytes_(bytes), file_(gpu::make_memory_file("test", bytes, "memory", "less")) {
    at_ = static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
  }
  ~file_pages() { munmap(at_, bytes_); }
  unsigned char* at() const { return at_; }
  void close_file() { file_.reset(); }

 private:
  std::size_t bytes_;
  unique_fd file_;
  unsigned char* at_;
};

TEST(memory_file, found_behind_an_address) {
  file_pages pages(8 * 4096);
  std::memset(pages.at(), 0x5a, 8 * 4096);
  const auto place = gpu::find_memory_file(pages.at() + 3 * 4096, 2 * 4096);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->offset, 3u * 4096);
  unsigned char byte = 0;
  ASSERT_EQ(pread(place->file.get(), &byte, 1, static_cast<off_t>(place->offset)), 1);
  EXPECT_EQ(byte, 0x5a);
  pages.at()[3 * 4096] = 0x77;
  ASSERT_EQ(pread(place->file.get(), &byte, 1, static_cast<off_t>(place->offset)), 1);
  EXPECT_EQ(byte, 0x77);
}

TEST(memory_file, parts_that_follow_each_other_count_as_one) {
  file_pages pages(4 * 4096);
  // Other rights in the middle split the mapping in two.
  ASSERT_EQ(mprotect(pages.at() + 4096, 4096, PROT_READ), 0);
  EXPECT_TRUE(gpu::find_memory_file(pages.at(), 4 * 4096).has_value());
}

TEST(memory_file, memory_that_is_of_no_open_file) {
  std::vector<unsigned char> plain(1 << 16);
  EXPECT_FALSE(gpu::find_memory_file(plain.data(), plain.size()).has_value());
  file_pages pages(4096);
  EXPECT_FALSE(gpu::find_memory_file(pages.at(), 1 << 20).has_value()) << "more than is mapped";
  EXPECT_FALSE(gpu::find_memory_file(pages.at(), 0).has_value());
  EXPECT_FALSE(gpu::find_memory_file(reinterpret_cast<void*>(~std::uintptr_t{0} - 10), 100).has_value());
  pages.close_file();
  EXPECT_FALSE(gpu::find_memory_file(pages.at(), 4096).has_value()) << "its file is closed";
}

TEST(kmod_memory, equal_runs_are_one_table) {
  const auto a = nvme::row_table::of({{0, 0x10000, 4096}, {4096, 0x30000, 4096}}, 8192);
  const auto b = nvme::row_table::of({{0, 0x10000, 4096}, {4096, 0x30000, 4096}}, 8192);
  const auto c = nvme::row_table::of({{0, 0x10000, 4096}, {4096, 0x40000, 4096}}, 8192);
  EXPECT_EQ(a.get(), b.get());
  EXPECT_NE(a.get(), c.get());
  EXPECT_PAIRS((a->shift(), 12u), (a->word() & dev::k_shift_bits, 12u), (a->address_of(4100), 0x30004u));
}

TEST(kmod_memory, runs_are_cut_into_rows_of_one_length) {
  constexpr std::uint64_t k_2m = 2 << 20;
  const auto a = nvme::row_table::of(
      {{0, 0x100000000, 2 * k_2m}, {2 * k_2m, 0x300000000, k_2m}, {3 * k_2m, 0x200000000, 2 * k_2m}}, 5 * k_2m);
  EXPECT_EQ(a->shift(), 21u);
  ASSERT_EQ(a->rows().size(), 5u);
  const std::uint64_t wanted[] = {0x100000000, 0x100000000 + k_2m, 0x300000000, 0x200000000, 0x200000000 + k_2m};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_PAIRS((a->address_of(i * k_2m), wanted[i]), (a->address_of(i * k_2m + k_2m - 1), wanted[i] + k_2m - 1));
  }
  // One page at the begin of a large run: a row for each page. The last run ends in the middle of one.
  const auto uneven = nvme::row_table::of({{0, 0x10000, 4096}, {4096, 0x100000000, 1 << 30}}, (1 << 30) + 512);
  EXPECT_PAIRS((uneven->shift(), 12u), (uneven->rows().size(), (1u << 18) + 1),
               (uneven->address_of(1 << 30), 0x100000000u + (1 << 30) - 4096));
}

TEST_F(opened_module, plain_memory_is_refused) {
  nvme::kmod_memory memory(module, "kmod:x");
  std::vector<unsigned char> plain(1 << 16);
  expect_refusal([&] { memory.map(plain.data(), plain.size()); }, XIO_ERR_UNSUPPORTED,
                 {"host memory without a file", "symmetric heap"});
}

TEST(kmod_name, of_a_function) {
  EXPECT_EQ(nvme::parse_function_name("kmod:0000:3b:00.0/2", "kmod").nsid, 2u);
  EXPECT_EQ(nvme::parse_function_name("kmod:3b:00.0", "kmod").bdf, "0000:3b:00.0");
  for (const char* name : {"nvme:0000:3b:00.0/1", "kmod:", "kmod:x", "kmod:0000:3b:00.0/0", "kmod:0000:3b:00.8/1"})
    expect_refusal([&] { nvme::parse_function_name(name, "kmod"); }, XIO_ERR_ARG, {name});
}

}  // namespace
