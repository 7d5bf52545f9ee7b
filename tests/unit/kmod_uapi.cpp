// SPDX-License-Identifier: MIT
// What programs and the kernel module agree on, and how a drive is found that the kernel has.
#include <filesystem>

#include "../../kernel/xio/xio_uapi.h"
#include "../gtest.hpp"
#include "base/error.hpp"
#include "config.h"
#include "transport/nvme/kmod_drive.hpp"

namespace {

using namespace xio;
namespace fs = std::filesystem;

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

class kmod : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/xio-kmod.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    where_.sysfs = root_ / "sys";
    where_.module = root_ / "xio";
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    const fs::path path = fs::path(where_.sysfs) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void refused(const std::string& path, xio_status_t status, const std::string& words) {
    try {
      nvme::find_kmod_drive("kmod:" + path, path, where_);
      ADD_FAILURE() << path << " is found";
    } catch (const error& e) {
      EXPECT_EQ(e.status(), status) << e.what();
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("kmod:" + path), std::string::npos) << e.what();
    }
  }
  fs::path root_;
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
  EXPECT_NE(
      nvme::why_no_queue(drive, where_).find("No such file or directory, and where the kernel module xio is loaded"),
      std::string::npos);
  std::ofstream(where_.module) << "not a device";
  EXPECT_NE(nvme::why_no_queue(drive, where_).find("is not of the kernel module xio that this version knows"),
            std::string::npos);
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

}  // namespace
